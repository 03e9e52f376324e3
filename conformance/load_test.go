package conformance

import (
	"strings"
	"testing"
	"testing/fstest"
)

func loadText(text string) ([]*Case, error) {
	return Load(fstest.MapFS{"a.json": {Data: []byte(text)}})
}

// caseText is a file with one good case, in which a test replaces a part.
const caseText = `{"format":1,"suite":"acli","cases":[{"id":"a.b","clause":"4.1.2","level":"Minimal","category":"Response","title":"t","steps":[{"command":"help","expect":{"success":true}}]}]}`

func TestLoadRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := loadText(caseText); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown member of a file":      {`"format":1`, `"format":1,"x":1`},
		"unknown member of a case":      {`"title":"t"`, `"title":"t","expects":{}`},
		"unknown member of a step":      {`"command":"help"`, `"command":"help","expected":{}`},
		"unknown matcher":               {`"success":true`, `"success":{"$like":true}`},
		"matcher mixed with a value":    {`"success":true`, `"success":{"$any":true,"x":1}`},
		"operand of a wrong type":       {`"success":true`, `"success":{"$any":false}`},
		"bad regular expression":        {`"success":true`, `"success":{"$pattern":"("}`},
		"bad type":                      {`"success":true`, `"success":{"$type":"int"}`},
		"bound that is no number":       {`"success":true`, `"success":{"$minimum":"1"}`},
		"empty anyOf":                   {`"success":true`, `"success":{"$anyOf":[]}`},
		"schema that is no placeholder": {`"success":true`, `"success":{"$schema":{}}`},
		"set of no array":               {`"success":true`, `"success":{"$set":1}`},
		"unknown matcher below":         {`"success":true`, `"success":{"$not":{"$items":{"$x":1}}}`},
		"other format":                  {`"format":1`, `"format":2`},
		"other suite":                   {`"acli"`, `"other"`},
		"no cases":                      {caseText[strings.Index(caseText, `[`):], `[]}`},
		"bad id":                        {`"a.b"`, `"A b"`},
		"bad clause":                    {`4.1.2`, `4.1.2.3`},
		"bad level":                     {`Minimal`, `minimal`},
		"bad category":                  {`"Response"`, `"Other"`},
		"bad strength":                  {`"title":"t"`, `"title":"t","strength":"may"`},
		"bad quantifier":                {`"title":"t"`, `"title":"t","for":{"each":"x"}`},
		"no title":                      {`"title":"t"`, `"title":""`},
		"no steps":                      {`"steps":[{"command":"help","expect":{"success":true}}]`, `"steps":[]`},
		"two messages in a step":        {`"command":"help"`, `"command":"help","arguments":{}`},
		"no message in a step":          {`"command":"help",`, ``},
		"bad session":                   {`"command":"help"`, `"command":"help","session":"own"`},
		"protocol of a shared session":  {`"command":"help"`, `"command":"help","protocol":"2025-06-18"`},
		"bad outcome":                   {`"command":"help"`, `"command":"help","outcome":["fine"]`},
		"bad name of what is saved":     {`"command":"help"`, `"command":"help","save":{"A":"/x"}`},
		"bad pointer":                   {`"command":"help"`, `"command":"help","save":{"a":"x"}`},
		"text without parts":            {`"command":"help"`, `"command":[]`},
		"text part without times":       {`"command":"help"`, `"command":[{"repeat":"x"}]`},
		"endless text":                  {`"command":"help"`, `"command":[{"repeat":"xxxx","times":1000000}]`},
		"option without command":        {`"title":"t"`, `"title":"t","requires":{"option":"--x"}`},
		"expect beside steps":           {`"title":"t"`, `"title":"t","expect":{}`},
		"placeholder without an end":    {`"command":"help"`, `"command":"help ${x"`},
		"placeholder in a pattern":      {`"success":true`, `"success":"${X}"`},
		"unknown filter":                {`"command":"help"`, `"command":"help ${x|shout}"`},
		"expect without a quantifier":   {`"steps":[{"command":"help","expect":{"success":true}}]`, `"expect":{}`},
		"steps for each answer":         {`"title":"t"`, `"title":"t","for":{"each":"answer"}`},
		"something after the file":      {`}]}]}`, `}]}]} {}`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(caseText, change[0], change[1], 1)
			if changed == caseText {
				t.Fatalf("%q is not in the case", change[0])
			}
			if _, err := loadText(changed); err == nil {
				t.Errorf("accepted: %s", changed)
			}
		})
	}
}

// TestEmbeddedCasesLoad also counts: fewer cases would be cases that were lost.
func TestEmbeddedCasesLoad(t *testing.T) {
	cases, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range cases {
		if c.Suite == "acli" {
			n++
		}
	}
	if n < 300 {
		t.Errorf("%d cases of the protocol", n)
	}
}

func TestLoadRefusesAnIDTwice(t *testing.T) {
	_, err := Load(fstest.MapFS{"a.json": {Data: []byte(caseText)}, "b.json": {Data: []byte(caseText)}})
	if err == nil || !strings.Contains(err.Error(), "a.b") || !strings.Contains(err.Error(), "a.json") {
		t.Errorf("error %v", err)
	}
}
