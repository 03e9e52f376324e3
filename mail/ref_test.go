package mail

import (
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

func TestRefRoundTrips(t *testing.T) {
	for text, want := range map[string]Ref{
		"imap:default:INBOX:1:2":                      {Protocol: IMAP, Account: "default", Folder: "INBOX", UIDValidity: 1, UID: 2},
		"imap:a-B_9:a:b:c:4294967295:4294967295":      {Protocol: IMAP, Account: "a-B_9", Folder: "a:b:c", UIDValidity: 4294967295, UID: 4294967295},
		"imap:x:::1:2":                                {Protocol: IMAP, Account: "x", Folder: ":", UIDValidity: 1, UID: 2},
		"imap:x:7:8:1:2":                              {Protocol: IMAP, Account: "x", Folder: "7:8", UIDValidity: 1, UID: 2},
		"imap:x:Entwürfe/你 好:1:2":                     {Protocol: IMAP, Account: "x", Folder: "Entwürfe/你 好", UIDValidity: 1, UID: 2},
		"imap:x:" + strings.Repeat("ü", 256) + ":1:2": {Protocol: IMAP, Account: "x", Folder: strings.Repeat("ü", 256), UIDValidity: 1, UID: 2},
		"pop3:x:!~:":                                  {Protocol: POP3, Account: "x", UIDL: "!~:"},
		"pop3:x:" + strings.Repeat("u", 70):           {Protocol: POP3, Account: "x", UIDL: strings.Repeat("u", 70)},
	} {
		got, err := ParseRef(text)
		if err != nil || got != want {
			t.Errorf("ParseRef(%q) = %+v, %v", text, got, err)
		}
		if s := want.String(); s != text {
			t.Errorf("%+v is written %q, want %q", want, s, text)
		}
	}
}

func TestParseRefTakesNothingElse(t *testing.T) {
	for _, c := range testmain.Table[struct{ In string }](t, "testdata/cases/ref_refused.txt") {
		text := c.In
		got, err := ParseRef(text)
		if err == nil {
			t.Errorf("ParseRef(%q) = %+v", text, got)
		} else if secret := strings.TrimSpace(text); len(secret) > 8 && strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats its input: %v", err)
		}
		if err != nil && got != (Ref{}) {
			t.Errorf("ParseRef(%q) failed and still gave %+v", text, got)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("imap:default:INBOX:1:2")
	f.Add("pop3:default:uidl")
	f.Add("imap:x:a:b:1:02")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRef(s)
		if err != nil {
			if r != (Ref{}) {
				t.Fatalf("%q failed and still gave %+v", s, r)
			}
			return
		}
		if r.String() != s {
			t.Fatalf("%q became %q", s, r.String())
		}
		if !ValidAccountName(r.Account) || (r.Protocol == IMAP) != (r.UID != 0 && r.UIDValidity != 0 && r.Folder != "" && r.UIDL == "") {
			t.Fatalf("%q gave %+v", s, r)
		}
	})
}
