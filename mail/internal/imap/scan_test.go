package imap

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
)

func newScanner() *scanner {
	return &scanner{limits: Limits{Line: 1 << 20, Literal: 1 << 20, Depth: 50}}
}

// Ordinary traffic passes, however it is cut into reads.
func TestScannerPassesOrdinaryTraffic(t *testing.T) {
	deep := strings.Repeat("(", 40) + strings.Repeat(")", 40)
	in := strings.Join([]string{
		"* OK it's a \"quote and ((((( a {5}",
		"T1 NO can't [open \"it",
		"+ go {3} \"on",
		"* 5 EXISTS",
		"* FLAGS (\\Seen \\Deleted)",
		"* LIST (\\HasNoChildren) \"/\" \"a \\\" (b\"",
		"* LIST () NIL {4}\r\na\"(b",
		"* 1 FETCH (UID 1 FLAGS () BODY[HEADER.FIELDS (\"FROM\" SUBJECT)] {10000}\r\n" + strings.Repeat("(\"", 5000) + " BODY[TEXT]<0> {3}\r\n(((" + ")",
		"* 2 FETCH (BODY[] \"" + strings.Repeat("x", 20000) + "\")",
		"* 3 FETCH (BODYSTRUCTURE " + deep + ")",
		"* 4 FETCH (BODYSTRUCTURE " + deep + ")",
		"* SEARCH " + strings.Repeat("1234567 ", 10000),
		"* BYE so \"long",
		"T2 OK [READ-ONLY] done",
	}, "\r\n") + "\r\n"
	for _, step := range []int{1, 2, 3, 7, 64, 4096, len(in)} {
		s := newScanner()
		var tags []string
		var bye string
		s.tagged = func(tag string) error { tags = append(tags, tag); return nil }
		s.bye = func(text string) { bye = text }
		for b := []byte(in); len(b) > 0; {
			n := min(step, len(b))
			if err := s.feed(b[:n]); err != nil {
				t.Fatalf("step %d: %v near %q", step, err, b[:min(n, 60)])
			}
			b = b[n:]
		}
		if s.complete != 14 || strings.Join(tags, " ") != "T1 T2" || bye != "so \"long" {
			t.Fatalf("step %d: %d responses, tags %q, bye %q", step, s.complete, tags, bye)
		}
	}
}

func TestScannerBounds(t *testing.T) {
	lines := slices.Concat(readCases(t, "scan.txt")...)
	for _, line := range lines {
		what, text, _ := strings.Cut(line, " ")
		in := expanded(t, strings.TrimLeft(text, " "))
		switch err := newScanner().feed([]byte(in)); {
		case what == "broken" && !errors.Is(err, errNotIMAP), what != "broken" && !overLimit(err, what):
			t.Errorf("%.60q: %v, want %s", in, err, what)
		}
	}
	if len(lines) != 20 {
		t.Errorf("%d lines", len(lines))
	}
}

// overLimit reports whether err is the breach of that limit.
func overLimit(err error, what string) bool {
	return wire.KindOf(err) == wire.KindLimit && strings.HasSuffix(err.Error(), " on "+what)
}
