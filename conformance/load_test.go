package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/postern-mail/postern/internal/testmain"
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

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }

// clause is what a specification demands in one place: a section, an appendix, or an
// item that it numbers.
type clause struct {
	Document   string   `json:"document"` // number of the specification; empty stands for 002
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	By         []string `json:"by"`         // clauses of the document whose cases are about this one too
	Untestable string   `json:"untestable"` // why no case can observe it
	Partly     string   `json:"partly"`     // what of it no case can observe
}

// demands are the places of each specification that a case or a reason is wanted for.
func demands() map[string][]string {
	all := map[string][]string{
		// The headings of sections 3 to 9, and the appendices that make demands.
		"002": {"3", "3.1", "3.2", "4", "4.1", "4.1.1", "4.1.2", "4.2", "4.2.1", "4.2.2", "4.2.3", "4.3", "5", "5.1", "5.1.1", "5.1.2", "5.2", "5.3",
			"6", "6.1", "6.2", "6.2.1", "6.2.2", "6.3", "6.4", "7", "7.1", "7.2", "7.3", "7.4", "8", "8.1", "8.2", "8.3", "9", "9.1", "9.2", "A", "B"},
		"000": {"4", "5", "6", "7.1", "7.2", "7.2a", "7.3", "8", "9", "10", "11"},
		// Its headings that have no number go by a word, its tools by theirs.
		"001": {"INPUT", "OUTPUT", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "GUARDRAILS", "ENVIRONMENT"},
		"004": {"3"},
	}
	number := func(document, form string, n int) {
		for i := range n {
			all[document] = append(all[document], fmt.Sprintf(form, i+1))
		}
	}
	number("003", "AC%d", 46)
	number("003", "TC%d", 12)
	number("003", "NFR%d", 4)
	number("004", "INV-GLOBAL-%02d", 8)
	all["004"] = append(all["004"], "5", "6")
	number("004", "7.%d", 8)
	return all
}

func TestEveryClauseHasACaseOrAReason(t *testing.T) {
	var clauses []clause
	b, err := os.ReadFile("clauses.json")
	if err == nil {
		err = json.Unmarshal(b, &clauses)
	}
	must(t, err)
	for i := range clauses {
		clauses[i].Document = cmp.Or(clauses[i].Document, "002")
	}
	cases, err := Embedded()
	must(t, err)
	type place struct{ document, id string }
	count := map[place]int{}
	for _, c := range cases {
		count[place{c.Document, c.Clause}]++
	}
	ids := map[string][]string{}
	for _, c := range clauses {
		ids[c.Document] = append(ids[c.Document], c.ID)
		own, at := count[place{c.Document, c.ID}], c.Document+" "+c.ID
		for _, by := range c.By {
			if count[place{c.Document, by}] == 0 {
				t.Errorf("%s is said to be shown by %s, which has no case", at, by)
			}
		}
		switch {
		case c.Title == "":
			t.Errorf("%s has no title", at)
		case c.Untestable != "" && own+len(c.By) > 0:
			t.Errorf("%s is said to be untestable, and has %d cases and those of %v", at, own, c.By)
		case c.Untestable != "" && c.Partly != "":
			t.Errorf("%s is untestable and partly so", at)
		case c.Untestable == "" && own+len(c.By) == 0:
			t.Errorf("%s has neither a case nor a reason", at)
		}
	}
	for document, want := range demands() {
		if !slices.Equal(ids[document], want) {
			t.Errorf("of %s the table has %v, and not %v", document, ids[document], want)
		}
		delete(ids, document)
	}
	if len(ids) > 0 {
		t.Errorf("the table has clauses of other documents: %v", ids)
	}
	for p := range count {
		if !slices.ContainsFunc(clauses, func(c clause) bool { return c.Document == p.document && c.ID == p.id }) {
			t.Errorf("cases are about %s %s, which is not in the table", p.document, p.id)
		}
	}
	for document, least := range map[string]int{"000": 7, "001": 13, "002": 20, "003": 40, "004": 7} {
		n := 0
		for p := range count {
			if p.document == document {
				n++
			}
		}
		if n < least {
			t.Errorf("cases are about %d clauses of %s only", n, document)
		}
	}
}
