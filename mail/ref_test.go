package mail

import (
	"strings"
	"testing"
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
	for _, text := range []string{
		"", ":", "imap", "imap:", "imap::", "IMAP:x:f:1:2", " imap:x:f:1:2", "smtp:x:f:1:2",
		"imap:x:f:1", "imap:x:1:2", "imap:x::1:2", "imap::f:1:2", "imap:a b:f:1:2", "imap:é:f:1:2",
		"imap:" + strings.Repeat("x", 65) + ":f:1:2", "imap:x\n:f:1:2",
		"imap:x:f:0:2", "imap:x:f:1:0", "imap:x:f:01:2", "imap:x:f:1:02", "imap:x:f:+1:2", "imap:x:f:1:-2",
		"imap:x:f:1:2 ", "imap:x:f:1:2\n", "imap:x:f:4294967296:2", "imap:x:f:1:4294967296", "imap:x:f:1:99999999999999999999",
		"imap:x:f:1:٣", "imap:x:f:1:1_0", "imap:x:f:1:0x1", "imap:x:f::", "imap:x:f:1:",
		"imap:x:f\x00:1:2", "imap:x:f\r\n:1:2", "imap:x:f\x7f:1:2", "imap:x:f\xff:1:2",
		"imap:x:" + strings.Repeat("f", 257) + ":1:2",
		"pop3:x", "pop3:x:", "pop3::u", "pop3:x:a b", "pop3:x:a\n", "pop3:x:é", "pop3:x:" + strings.Repeat("u", 71),
	} {
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
