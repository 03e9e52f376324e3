package mail

import (
	"strings"
	"testing"
)

func TestShortRefs(t *testing.T) {
	for _, c := range []struct {
		ref     Ref
		account bool
		want    string
	}{
		{Ref{Protocol: IMAP, Account: "work", Folder: "INBOX", UID: 50}, false, "50"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "INBOX", UID: 50}, true, "work:50"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "Sent", UID: 5}, true, "work:Sent/5"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "Projects/Été", UID: 3}, false, "Projects/Été/3"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "50", UID: 4294967295}, false, "50/4294967295"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "50/7", UID: 1}, false, "50/7/1"},
		{Ref{Protocol: IMAP, Account: "work", Folder: `a b,c:d%e\f"g'`, UID: 1}, false, "a%20b%2Cc%3Ad%25e%5Cf%22g%27/1"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "-x", UID: 1}, false, "%2Dx/1"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "a\u00a0b", UID: 1}, false, "a%C2%A0b/1"},
		{Ref{Protocol: IMAP, Account: "imap", Folder: "INBOX", UID: 1}, true, "imap:1"},
		{Ref{Protocol: IMAP, Account: "work", Folder: "INBOX/Sub", UID: 9}, false, "INBOX/Sub/9"},
	} {
		short := c.ref.Short(c.account)
		if short != c.want {
			t.Errorf("%+v is %q, not %q", c.ref, short, c.want)
		}
		if !c.account {
			c.ref.Account = ""
		}
		if got, err := ParseShortRef(short); err != nil || got != c.ref {
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
