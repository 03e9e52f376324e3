package conformance

import (
	"os"
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
	changes, err := os.ReadFile("testdata/load.txt")
	must(t, err)
	n := 0
	for block := range strings.SplitSeq(string(changes), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if len(lines) != 3 {
			continue // the comment
		}
		n++
		t.Run(lines[0], func(t *testing.T) {
			changed := strings.Replace(caseText, strings.TrimPrefix(lines[1], "- "), strings.TrimPrefix(lines[2], "+ "), 1)
			if changed == caseText {
				t.Fatalf("%q is not in the case", lines[1])
			}
			if _, err := loadText(changed); err == nil {
				t.Errorf("accepted: %s", changed)
			}
		})
	}
	if n != 42 {
		t.Errorf("%d changes", n)
	}
}

// TestEmbeddedCasesLoad also counts: fewer cases would be cases that were lost.
func TestEmbeddedCasesLoad(t *testing.T) {
	cases, err := Embedded()
	must(t, err)
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

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
