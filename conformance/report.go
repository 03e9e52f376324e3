package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Status is the outcome of a case.
type Status string

// The statuses.
const (
	Passed        Status = "passed"
	Failed        Status = "failed"
	NotApplicable Status = "not_applicable"
)

// Finding is one way in which a server failed a case.
type Finding struct {
	Instance   string     `json:"instance,omitempty"` // the item of a template
	Step       int        `json:"step,omitempty"`     // from 1
	Sent       string     `json:"sent,omitempty"`     // a command string, or a message
	Got        string     `json:"got,omitempty"`      // the answer, clipped
	Detail     string     `json:"detail,omitempty"`   // what happened, where no answer was compared
	Mismatches []Mismatch `json:"mismatches,omitempty"`
}

// Result is the outcome of one case.
type Result struct {
	ID       string    `json:"id"`
	Document string    `json:"document"` // the specification that Clause is of
	Clause   string    `json:"clause"`
	Level    Level     `json:"level"`
	Category Category  `json:"category"`
	Strength Strength  `json:"strength"`
	Suite    string    `json:"suite"`
	Title    string    `json:"title"`
	Status   Status    `json:"status"`
	Reason   string    `json:"reason,omitempty"` // why it is not applicable
	Asked    int       `json:"asked"`            // instances that were judged
	Failures int       `json:"failures"`         // of these
	Findings []Finding `json:"findings,omitempty"`
	Baseline string    `json:"baseline,omitempty"` // why its failure was expected
}

// maxFindings bounds the findings that a result keeps; Failures counts all.
const maxFindings = 5

func (r *Result) fail(f Finding) {
	r.Status = Failed
	r.Failures++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
	}
}

// Count counts the outcomes of a level's cases.
type Count struct {
	Passed        int `json:"passed"`
	Failed        int `json:"failed"`   // of strength must
	Advice        int `json:"advice"`   // failed ones of strength should
	Expected      int `json:"expected"` // failed ones that the baseline names
	NotApplicable int `json:"not_applicable"`
}

// Report is the outcome of a run.
type Report struct {
	Server   string          `json:"server,omitempty"` // as version or the handshake names it
	Reached  Level           `json:"reached"`
	Partial  bool            `json:"partial"` // cases of these levels were left out
	Counts   map[Level]Count `json:"counts"`
	Commands int             `json:"commands"` // that the server's help lists
	Messages int             `json:"messages"` // that were sent
	Notes    []string        `json:"notes,omitempty"`
	Results  []*Result       `json:"results"`
	Stale    []string        `json:"stale,omitempty"` // baseline entries that passed or do not exist
}

// Failed returns the results that make a run fail: those of strength must that the
// baseline does not name, and with strict the others too.
func (r *Report) Failed(strict bool) []*Result {
	var list []*Result
	for _, c := range r.Results {
		if c.Status == Failed && c.Baseline == "" && (strict || c.Strength == Must) {
			list = append(list, c)
		}
	}
	return list
}

// OK reports whether a server passed all cases asked: nothing failed, and the
// baseline has no unneeded entry.
func (r *Report) OK(strict bool) bool { return len(r.Failed(strict)) == 0 && len(r.Stale) == 0 }

// count derives the counts from the results.
func (r *Report) count(left bool) {
	r.Counts, r.Partial = map[Level]Count{}, left
	for _, c := range r.Results {
		n := r.Counts[c.Level]
		switch {
		case c.Status == Passed:
			n.Passed++
		case c.Status == NotApplicable:
			n.NotApplicable++
		case c.Baseline != "":
			n.Expected++
		case c.Strength == Should:
			n.Advice++
		default:
			n.Failed++
		}
		r.Counts[c.Level] = n
	}
	r.Reached = NoLevel
	for _, l := range levels {
		// A failure that was expected is a failure: a level is not reached by
		// expecting not to.
		broken := slices.ContainsFunc(r.Results, func(c *Result) bool {
			return c.Suite == "acli" && c.Level == l && c.Status == Failed && c.Strength == Must
		})
		if broken || r.Counts[l].Passed == 0 {
			return
		}
		r.Reached = l
	}
}

// Baseline names cases that are known to fail, each with the reason. Its file is a
// JSON object of ids and reasons.
type Baseline map[string]string

// ReadBaseline reads a baseline file. An entry without a reason is an error.
func ReadBaseline(b []byte) (Baseline, error) {
	var list Baseline
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("a baseline is a JSON object of case ids and reasons: %w", err)
	}
	for id, reason := range list {
		if reason == "" {
			return nil, fmt.Errorf("the baseline gives no reason for %s", id)
		}
	}
	return list, nil
}

// apply marks expected failures and finds unneeded entries. Entries of cases that
// were left out of a run are neither.
func (b Baseline) apply(r *Report, known func(id string) bool) {
	ran := map[string]*Result{}
	for _, c := range r.Results {
		ran[c.ID] = c
	}
	for id, reason := range b {
		switch c := ran[id]; {
		case c == nil && !known(id), c != nil && c.Status == Passed:
			r.Stale = append(r.Stale, id)
		case c != nil && c.Status == Failed:
			c.Baseline = reason
		}
	}
	slices.Sort(r.Stale)
}
