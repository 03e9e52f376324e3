package imap

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// grantNames are the grants there are, by their names in testdata/grants.txt.
var grantNames = map[string]Grant{"NoChange": NoChange, "MarkSeen": MarkSeen, "ChangeFlags": ChangeFlags, "CopyMessages": CopyMessages,
	"MoveMessages": MoveMessages, "DeleteMessages": DeleteMessages, "AppendMessages": AppendMessages}

// Each line passes with the grants that are named, and with no other. A grant nobody knows
// gives what none gives.
func TestGrantsLetOutWhatTheyName(t *testing.T) {
	n := 0
	for _, lines := range readCases(t, "grants.txt") {
		by, _ := strings.CutPrefix(lines[0], "by ")
		var named []Grant
		for name, g := range grantNames {
			if by == "every grant" || slices.Contains(strings.Fields(by), name) {
				named = append(named, g)
			}
		}
		if by == "every grant" {
			named = append(named, 99)
		}
		for _, line := range lines[1:] {
			n++
			line = unquoted(t, line) + "\r\n"
			for _, g := range append(slices.Collect(maps.Values(grantNames)), 99) {
				f := filter{verbs: verbsOf(g)}
				out, err := f.push([]byte(line))
				if want := slices.Contains(named, g); want && (err != nil || string(out) != line) {
					t.Errorf("grant %d refused %q: %v, passed %q", g, line, err, out)
				} else if !want && (err == nil || len(out) > 0) {
					t.Errorf("grant %d let %q out", g, line)
				}
			}
		}
	}
	if n != 159 {
		t.Errorf("%d lines", n)
	}
}

// What counts as a change is what cannot be taken for never sent.
func TestFilterNotesChanges(t *testing.T) {
	for line, want := range map[string]bool{
		"a SELECT INBOX\r\n": false, "a UID FETCH 1 (FLAGS)\r\n": false, "a NOOP\r\n": false,
		"a UID STORE 1 +FLAGS (\\Deleted)\r\n": true, "a UID EXPUNGE 1\r\n": true, "a UID MOVE 1 x\r\n": true, "a UID COPY 1 x\r\n": true,
	} {
		var f filter
		f.grant(verbsOf(MoveMessages), true)
		if _, err := f.push([]byte(line)); err != nil || f.changed != want {
			t.Errorf("%q: %v, changed is %v", line, err, f.changed)
		}
		f.grant(readOnlyVerbs, false)
		if f.changed != want {
			t.Errorf("%q: the end of the grant forgot what happened", line)
		}
		f.grant(verbsOf(MoveMessages), true)
		if f.changed {
			t.Errorf("%q: counts for the next grant as well", line)
		}
	}
}

func TestGrantEndsWithTheLend(t *testing.T) {
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 1})
	var kept *Session
	seen := []string{`\Seen`}
	err := p.Change(t.Context(), "INBOX", MarkSeen, func(_ context.Context, s *Session) error {
		kept = s
		_, err := s.Store(UIDs(1), false, seen).Wait()
		return err
	})
	must(t, err)
	forbidden := func(name string) {
		t.Helper()
		err := p.Lend(t.Context(), "INBOX", func(_ context.Context, s *Session) error {
			return second(s.Store(UIDs(1), false, seen).Wait())
		})
		if e := wantError(t, err, wire.KindProtocol, StageStore); !errors.Is(e, ErrForbidden) {
			t.Errorf("%s: ended by %v", name, e)
		}
	}
	forbidden("after a lend")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not arrive")
			}
		}()
		_ = p.Change(t.Context(), "INBOX", MarkSeen, func(_ context.Context, s *Session) error {
			kept = s
			panic("x")
		})
	}()
	if _, err := kept.guard.filter.push([]byte("a UID STORE 1 +FLAGS (\\Seen)\r\n")); !errors.Is(err, ErrForbidden) {
		t.Errorf("after a panic: %v", err)
	}
	forbidden("after a panic")
	// One grant says nothing about another.
	err = p.Change(t.Context(), "INBOX", MarkSeen, func(_ context.Context, s *Session) error {
		return second(s.Store(UIDs(1), true, seen).Wait())
	})
	if e := wantError(t, err, wire.KindProtocol, StageStore); !errors.Is(e, ErrForbidden) {
		t.Errorf("ended by %v", e)
	}
}

func TestValidFlag(t *testing.T) {
	for _, f := range []string{`\Seen`, `\Flagged`, `x`, `$Forwarded`, `project-x`, `a.b:c/d`, `\X`, strings.Repeat("x", 64)} {
		if !ValidFlag(f) {
			t.Errorf("%q is refused", f)
		}
	}
	for _, f := range []string{"", `\`, `\\x`, `a\b`, "a b", "a\r\nb", "a(b", "a)b", `a"b`, "a*", "a%", "a{3}", "a]", "ä", "\x7f", `\*`, strings.Repeat("x", 65)} {
		if ValidFlag(f) {
			t.Errorf("%q passes", f)
		}
	}
}
