package mail

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestShortRefs(t *testing.T) {
	for _, c := range testmain.Table[struct {
		Account, Folder string
		UID             int
		Named           bool
		Want            string
	}](t, "testdata/cases/ref_short.txt") {
		ref := Ref{Protocol: IMAP, Account: c.Account, Folder: c.Folder, UID: uint32(c.UID)}
		short := ref.Short(c.Named)
		if short != c.Want {
			t.Errorf("%+v is %q, not %q", ref, short, c.Want)
		}
		if !c.Named {
			ref.Account = ""
		}
		if got, err := ParseShortRef(short); err != nil || got != ref {
			t.Errorf("%q is read as %+v (%v)", short, got, err)
		}
	}
	if pop := (Ref{Protocol: POP3, Account: "old", UIDL: "a1"}); pop.Short(true) != pop.String() {
		t.Errorf("a POP3 message is %q", pop.Short(true))
	}
	for _, s := range []string{"", "0", "050", "+5", "5 ", "4294967296", "/5", "Sent/", "Sent", "a%/5", "a%ff/5", "%00/1", ":5", "Bad Name:5", "a:b:5",
		"a:b:c/5", "pop3:work:a/5",
		"imap:work:INBOX:7:5", "pop3:work:5", strings.Repeat("x", 257) + "/1"} {
		if r, err := ParseShortRef(s); err == nil {
			t.Errorf("%q is read as %+v", s, r)
		}
	}
}

func TestIdsWithACommaBetween(t *testing.T) {
	if _, err := ParseShortRef("50,49"); err == nil || !strings.Contains(err.Error(), "separated by spaces") {
		t.Errorf("50,49: %v", err)
	}
}

func FuzzShortRef(f *testing.F) {
	for _, s := range []string{"50", "work:Sent/5", "Projects/Été/3", "a%20b%2Cc/1", "50/7/1", "inbox/4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseShortRef(s)
		if err != nil {
			return
		}
		if long, err := ParseRef(s); err == nil {
			t.Fatalf("%q is short as %+v and long as %+v", s, r, long)
		}
		short := r.Short(r.Account != "")
		if again, err := ParseShortRef(short); err != nil || again != r {
			t.Fatalf("%q is %+v, written %q, read again %+v (%v)", s, r, short, again, err)
		}
		if strings.ContainsAny(short, " \t\r\n\"',\\") || strings.HasPrefix(short, "-") {
			t.Fatalf("%q does not stand alone as a word", short)
		}
	})
}
