package conformance

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// WriteTable writes a report for people: the failures in detail, then the counts
// and the level. Text of the server is shown without control characters.
func WriteTable(w io.Writer, r *Report, strict bool) error {
	b := bufio.NewWriter(w)
	for _, c := range r.Results {
		if c.Status == Failed {
			writeFailure(b, c)
		}
	}
	for _, id := range r.Stale {
		fmt.Fprintf(b, "STALE  %s\n  The baseline expects it to fail, and it passes or does not exist: take it out.\n\n", id)
	}
	if reasons := skipped(r); len(reasons) > 0 {
		fmt.Fprintf(b, "Not applicable, and so not shown to hold:\n")
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(b, "  %4d  %s\n", reasons[reason], clean(reason))
		}
		fmt.Fprintln(b)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "Note: %s\n", clean(note))
	}
	if r.Server != "" {
		fmt.Fprintf(b, "%s, %d commands; %d messages\n\n", clean(r.Server), r.Commands, r.Messages)
	}
	fmt.Fprintf(b, "%-10s %7s %7s %7s %9s %15s\n", "level", "passed", "failed", "advice", "expected", "not applicable")
	for _, l := range levels {
		n, ok := r.Counts[l]
		if ok {
			fmt.Fprintf(b, "%-10s %7d %7d %7d %9d %15d\n", l, n.Passed, n.Failed, n.Advice, n.Expected, n.NotApplicable)
		}
	}
	reached := "level reached: " + string(r.Reached)
	switch {
	case !slices.ContainsFunc(r.Results, func(c *Result) bool { return c.Suite == "acli" }):
		reached = "The levels are those of the suite acli, which was not asked."
	case r.Partial:
		reached += " (of the cases that were chosen)"
	}
	fmt.Fprintf(b, "\n%s\n", reached)
	if r.Reached == Full {
		fmt.Fprintln(b, "That commands are audited cannot be seen from outside and is not shown by this.")
	}
	if strict && r.Counts != nil && len(r.Failed(true)) > len(r.Failed(false)) {
		fmt.Fprintln(b, "Advice counts as failure, as was asked.")
	}
	return b.Flush()
}

func skipped(r *Report) map[string]int {
	n := map[string]int{}
	for _, c := range r.Results {
		if c.Status == NotApplicable {
			n[c.Reason]++
		}
	}
	return n
}

// clause names the clause with its document.
func (r *Result) clause() string {
	if unicode.IsDigit(rune(r.Clause[0])) {
		return r.Document + " section " + r.Clause
	}
	return r.Document + " " + r.Clause
}

func writeFailure(b *bufio.Writer, c *Result) {
	word := "FAILED"
	switch {
	case c.Baseline != "":
		word = "EXPECTED"
	case c.Strength == Should:
		word = "ADVICE"
	}
	fmt.Fprintf(b, "%s  %s  (%s, %s)\n  %s\n", word, c.ID, c.clause(), c.Level, c.Title)
	if c.Baseline != "" {
		fmt.Fprintf(b, "  known: %s\n", clean(c.Baseline))
	}
	for _, f := range c.Findings {
		if f.Instance != "" {
			fmt.Fprintf(b, "  - %s\n", clean(f.Instance))
		}
		if f.Sent != "" {
			fmt.Fprintf(b, "    sent      %s\n", clean(f.Sent))
		}
		if f.Got != "" {
			fmt.Fprintf(b, "    came      %s\n", clean(f.Got))
		}
		if f.Detail != "" {
			fmt.Fprintf(b, "    but       %s\n", clean(f.Detail))
		}
		for _, m := range f.Mismatches {
			fmt.Fprintf(b, "    expected  %s: %s\n    found     %s\n", cmp.Or(m.At, "/"), clean(m.Want), clean(m.Got))
		}
	}
	if more := c.Failures - len(c.Findings); more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
	fmt.Fprintln(b)
}

// clean makes text of the server safe for a terminal: a control or format
// character becomes its escape.
func clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == ' ' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a report in the XML form that continuous integration reads, as one
// suite. Failures that do not fail the run are skipped tests with the reason.
func WriteJUnit(w io.Writer, r *Report, strict bool) error {
	s := junitSuite{Name: "acli"}
	failing := r.Failed(strict)
	for _, c := range r.Results {
		t := junitCase{Class: fmt.Sprintf("%s.%s.%s.%s", c.Suite, c.Category, c.Level, c.Clause), Name: c.ID}
		var text strings.Builder
		b := bufio.NewWriter(&text)
		writeFailure(b, c)
		_ = b.Flush() // into memory
		switch {
		case c.Status == Passed:
		case slices.Contains(failing, c):
			t.Failure = &junitMessage{clean(c.Title), text.String()}
		case c.Status == NotApplicable:
			t.Skipped = &junitMessage{Message: clean(c.Reason)}
		default:
			t.Skipped = &junitMessage{"advice: " + cmp.Or(c.Baseline, c.Title), text.String()}
		}
		s.Cases = append(s.Cases, t)
	}
	for _, id := range r.Stale {
		s.Cases = append(s.Cases, junitCase{Class: "baseline", Name: id, Failure: &junitMessage{Message: "the baseline expects a failure, and there is none"}})
	}
	for _, t := range s.Cases {
		s.Tests++
		if t.Failure != nil {
			s.Failures++
		} else if t.Skipped != nil {
			s.Skipped++
		}
	}
	b, err := xml.MarshalIndent(s, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	}
	return err
}
