package imap

import (
	"context"
	"errors"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// everyGrant are the grants there are.
var everyGrant = []Grant{NoChange, MarkSeen, ChangeFlags, CopyMessages, MoveMessages, DeleteMessages, AppendMessages}

// Each line passes with the grants that are named, and with no other.
func TestGrantsLetOutWhatTheyName(t *testing.T) {
	only := func(g ...Grant) []Grant { return g }
	tests := []struct {
		line string
		by   []Grant
	}{
		{`a SELECT INBOX`, only(MarkSeen, ChangeFlags, MoveMessages, DeleteMessages)},
		{`a select "A b"`, only(MarkSeen, ChangeFlags, MoveMessages, DeleteMessages)},
		{`a NOOP`, everyGrant},
		{`a EXAMINE INBOX`, everyGrant},
		{`a UID FETCH 1 (UID BODY.PEEK[])`, everyGrant},

		{`a UID STORE 1 +FLAGS (\Seen)`, only(MarkSeen, ChangeFlags)},
		{`a uid store 1:3,7 +flags (\sEEN)`, only(MarkSeen, ChangeFlags)},
		{`a UID STORE 1 +FLAGS.SILENT (\Seen)`, only(MarkSeen, ChangeFlags)},
		{`a UID STORE 1 -FLAGS (\Seen)`, only(ChangeFlags)},
		{`a UID STORE 1 +FLAGS (\Seen \Flagged)`, only(ChangeFlags)},
		{`a UID STORE 1 +FLAGS (\Flagged)`, only(ChangeFlags)},
		{`a UID STORE 1 +FLAGS (project-x $Forwarded)`, only(ChangeFlags)},
		{`a UID STORE 1 +FLAGS (Deleted)`, only(ChangeFlags)}, // a keyword of that name deletes nothing
		{`a UID STORE 1 -FLAGS (\Deleted)`, only(ChangeFlags)},
		{`a UID STORE 1 -FLAGS.SILENT (\dELETED x)`, only(ChangeFlags)},
		{`a UID STORE 1 +FLAGS (\Deleted)`, only(MoveMessages, DeleteMessages)},
		{`a UID STORE 1 +flags.silent (\deleted)`, only(MoveMessages, DeleteMessages)},

		{`a UID STORE 1 +FLAGS (\Deleted \Seen)`, nil},
		{`a UID STORE 1 +FLAGS (\Seen \Deleted)`, nil},
		{`a UID STORE 1 +FLAGS (x\Deleted)`, nil},
		{"a UID STORE 1 +FLAGS (x\t\\Deleted)", nil},
		{`a UID STORE 1 +FLAGS (\Seen\Deleted)`, nil},
		{`a UID STORE 1 FLAGS (\Seen)`, nil},
		{`a UID STORE 1 FLAGS.SILENT (\Seen)`, nil},
		{`a UID STORE 1 FLAGS ()`, nil},
		{`a UID STORE 1 +FLAGS ()`, nil},
		{`a UID STORE 1 +FLAGS \Seen`, nil},
		{`a UID STORE 1 +FLAGS (\Seen) (\Deleted)`, nil},
		{`a UID STORE 1 +FLAGS ((\Seen))`, nil},
		{`a UID STORE 1 +FLAGS (\Seen`, nil},
		{`a UID STORE 1 +FLAGS ( \Seen)`, nil},
		{`a UID STORE 1 +FLAGS  (\Seen)`, nil},
		{`a UID STORE 1  +FLAGS (\Seen)`, nil},
		{`a UID STORE  1 +FLAGS (\Seen)`, nil},
		{`a UID  STORE 1 +FLAGS (\Seen)`, nil},
		{`a  UID STORE 1 +FLAGS (\Seen)`, nil},
		{`a UID STORE 1 (UNCHANGEDSINCE 3) +FLAGS (\Seen)`, nil},
		{`a UID STORE 1 ++FLAGS (\Seen)`, nil},
		{`a UID STORE 1 +FLAGS (\*)`, nil},
		{`a UID STORE 1 +FLAGS ("\Seen")`, nil},
		{`a UID STORE 1 +FLAGS {7}`, nil},
		{`a UID STORE 1 +FLAGS ({5+}`, nil},
		{`a UID STORE 1:* +FLAGS (\Seen)`, nil},
		{`a UID STORE * +FLAGS (\Deleted)`, nil},
		{`a UID STORE $ +FLAGS (\Seen)`, nil},
		{`a UID STORE +FLAGS (\Seen)`, nil},
		{`a UID STORE 1`, nil},
		{`a UID STORE`, nil},
		{`a STORE 1 +FLAGS (\Seen)`, nil}, // numbers change their meaning under the feet

		{`a UID COPY 1:3,9 Archive`, only(CopyMessages, MoveMessages)},
		{`a uid copy 1 "A b"`, only(CopyMessages, MoveMessages)},
		{`a UID MOVE 1:3 Archive`, only(MoveMessages)},
		{`a uid move 4 "Sent Items"`, only(MoveMessages)},
		{`a UID MOVE 1`, nil},
		{`a UID MOVE 1 `, nil},
		{`a UID MOVE`, nil},
		{`a UID MOVE Archive 1`, nil},
		{`a UID MOVE 1:* Archive`, nil},
		{`a UID MOVE $ Archive`, nil},
		{`a UID MOVE 1 {7}`, nil},
		{`a UID MOVE  1 Archive`, nil},
		{`a UID  MOVE 1 Archive`, nil},
		{`a MOVE 1 Archive`, nil},
		{`a COPY 1 Archive`, nil},
		{`a UID COPY * Archive`, nil},
		{`a UID COPY 1 {3+}`, nil},

		{`a UID EXPUNGE 1:3,9`, only(MoveMessages, DeleteMessages)},
		{`a uid expunge 4`, only(MoveMessages, DeleteMessages)},
		{`a UID EXPUNGE`, nil},
		{`a UID EXPUNGE `, nil},
		{`a UID EXPUNGE 1:*`, nil},
		{`a UID EXPUNGE $`, nil},
		{`a UID EXPUNGE 1 2`, nil},
		{`a UID  EXPUNGE 1`, nil},

		{`a APPEND Drafts (\Draft) {3}`, only(AppendMessages)},
		{`a append INBOX {3+}`, only(AppendMessages)},

		{`a EXPUNGE`, nil},
		{`a expunge`, nil},
		{`a EXPUNGE 1`, nil},
		{`a CLOSE`, nil},
		{`a Close`, nil},
		{`a CREATE x`, nil},
		{`a DELETE x`, nil},
		{`a RENAME x y`, nil},
		{`a SUBSCRIBE x`, nil},
		{`a UID REPLACE 1 x {3}`, nil},
		{`a SETMETADATA x (/a b)`, nil},
		{`a UID FETCH 1 (BODY[])`, nil},
		{`* UID STORE 1 +FLAGS (\Seen)`, nil},
		{` UID STORE 1 +FLAGS (\Seen)`, nil},
	}
	for _, tc := range tests {
		for _, g := range append(everyGrant, 99) {
			f := filter{verbs: verbsOf(g)}
			out, err := f.push([]byte(tc.line + "\r\n"))
			want := false
			for _, by := range tc.by {
				want = want || by == g
			}
			if g == 99 { // a grant nobody knows gives what none gives
				want = len(tc.by) == len(everyGrant)
			}
			if want && (err != nil || string(out) != tc.line+"\r\n") {
				t.Errorf("grant %d refused %q: %v, passed %q", g, tc.line, err, out)
			}
			if !want && (err == nil || len(out) > 0) {
				t.Errorf("grant %d let %q out", g, tc.line)
			}
		}
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
	scripted.Settle(t)
	sv := scripted.Serve(t, obedient)
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 1})
	var kept *Session
	seen := []goimap.Flag{goimap.FlagSeen}
	err := p.Change(t.Context(), "INBOX", MarkSeen, func(_ context.Context, s *Session) error {
		kept = s
		_, err := s.Store(goimap.UIDSetNum(1), goimap.StoreFlagsAdd, seen).Wait()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	forbidden := func(name string) {
		t.Helper()
		err := p.Lend(t.Context(), "INBOX", func(_ context.Context, s *Session) error {
			return second(s.Store(goimap.UIDSetNum(1), goimap.StoreFlagsAdd, seen).Wait())
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
		return second(s.Store(goimap.UIDSetNum(1), goimap.StoreFlagsDel, seen).Wait())
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
