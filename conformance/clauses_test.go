package conformance

import (
	"slices"
	"testing"
)

// sections are the headings of sections 3 to 9 of specification 002 and the
// appendices that make demands.
var sections = []string{
	"3", "3.1", "3.2", "4", "4.1", "4.1.1", "4.1.2", "4.2", "4.2.1", "4.2.2", "4.2.3", "4.3", "5", "5.1", "5.1.1", "5.1.2", "5.2", "5.3",
	"6", "6.1", "6.2", "6.2.1", "6.2.2", "6.3", "6.4", "7", "7.1", "7.2", "7.3", "7.4", "8", "8.1", "8.2", "8.3", "9", "9.1", "9.2", "A", "B",
}

func TestEveryClauseHasACaseOrAReason(t *testing.T) {
	clauses, err := Clauses()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range cases {
		if c.Suite == "acli" {
			count[c.Clause]++
		}
	}
	var ids []string
	for _, c := range clauses {
		ids = append(ids, c.ID)
		switch {
		case c.Title == "":
			t.Errorf("%s has no title", c.ID)
		case c.Untestable != "" && count[c.ID] > 0:
			t.Errorf("%s is said to be untestable, and has %d cases", c.ID, count[c.ID])
		case c.Untestable != "" && c.Partly != "":
			t.Errorf("%s is untestable and partly so", c.ID)
		case c.Untestable == "" && count[c.ID] == 0:
			t.Errorf("%s has neither a case nor a reason", c.ID)
		}
	}
	if !slices.Equal(ids, sections) {
		t.Errorf("the table has %v", ids)
	}
	for id := range count {
		if !slices.Contains(ids, id) {
			t.Errorf("cases are about %s, which is not in the table", id)
		}
	}
	if len(count) < 20 {
		t.Errorf("cases about %d clauses", len(count))
	}
}
