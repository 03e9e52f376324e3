package wire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
)

// The mechanism follows from the kind of credential and what is offered, and the
// credential leaves in no other form.
func TestSASL(t *testing.T) {
	for _, tc := range []struct {
		name, offered, user string
		c                   Credential
		mechanism, first    string
	}{
		{"password", "PLAIN LOGIN OAUTHBEARER XOAUTH2", "ann", Credential{Password: "pw"}, "PLAIN", "\x00ann\x00pw"},
		{"password without PLAIN", "LOGIN OAUTHBEARER XOAUTH2", "ann", Credential{Password: "pw"}, "LOGIN", ""},
		{"token", "PLAIN LOGIN XOAUTH2 OAUTHBEARER", "ann@example.org", Credential{Token: "t.0-k_e~n+/="}, "OAUTHBEARER", "n,a=ann@example.org,\x01auth=Bearer t.0-k_e~n+/=\x01\x01"},
		{"token without OAUTHBEARER", "PLAIN LOGIN XOAUTH2", "ann@example.org", Credential{Token: "t0ken"}, "XOAUTH2", "user=ann@example.org\x01auth=Bearer t0ken\x01\x01"},
		{"a name that has to be escaped", "OAUTHBEARER", "a,b=c", Credential{Token: "t0ken"}, "OAUTHBEARER", "n,a=a=2Cb=3Dc,\x01auth=Bearer t0ken\x01\x01"},
		{"a name and a password beyond ASCII", "PLAIN", "jörg", Credential{Password: "geheim\u00e9"}, "PLAIN", "\x00jörg\x00geheim\u00e9"},
	} {
		client, err := SASL(offers(tc.offered), tc.user, tc.c)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		mechanism, first, err := client.Start()
		if err != nil || mechanism != tc.mechanism || string(first) != tc.first || (first == nil) != (tc.mechanism == "LOGIN") {
			t.Errorf("%s: %s %q, %v", tc.name, mechanism, first, err)
		}
	}
}

func offers(list string) func(string) bool {
	return func(m string) bool { return slices.Contains(strings.Fields(list), m) }
}

func TestSASLThatCannotBe(t *testing.T) {
	const all = "PLAIN LOGIN OAUTHBEARER XOAUTH2"
	for _, tc := range []struct {
		name, offered, user string
		c                   Credential
		none                bool // for want of a mechanism
	}{
		{"token, and only passwords", "PLAIN LOGIN", "ann", Credential{Token: "canary"}, true},
		{"password, and only tokens", "OAUTHBEARER XOAUTH2", "ann", Credential{Password: "canary"}, true},
		{"nothing offered", "", "ann", Credential{Password: "canary"}, true},
		{"no credential", all, "ann", Credential{}, false},
		{"two credentials", all, "ann", Credential{Password: "canary", Token: "canary"}, false},
		{"zero byte", all, "ann", Credential{Password: "canary\x00"}, false},
		{"line end", all, "ann", Credential{Password: "canary\r\n"}, false},
		{"C1 control", all, "ann", Credential{Password: "canary\u0085"}, false},
		{"separator in a token", all, "ann", Credential{Token: "canary\x01\x01"}, false},
		{"space in a token", all, "ann", Credential{Token: "canary bird"}, false},
		{"token beyond ASCII", all, "ann", Credential{Token: "canarié"}, false},
		{"no name", all, "", Credential{Password: "canary"}, false},
		{"separator in the name", all, "ann\x01auth=Bearer x", Credential{Token: "canary"}, false},
		{"zero byte in the name", all, "ann\x00", Credential{Password: "canary"}, false},
	} {
		client, err := SASL(offers(tc.offered), tc.user, tc.c)
		if client != nil || err == nil || errors.Is(err, ErrNoMechanism) != tc.none || strings.Contains(err.Error(), "canar") {
			t.Errorf("%s: %v, %v", tc.name, client, err)
		}
	}
}

// The clients answer what a server may ask before it refuses.
func TestSASLChallenges(t *testing.T) {
	token, password := Credential{Token: "t0ken"}, Credential{Password: "pw"}
	for _, tc := range []struct {
		mechanism string
		c         Credential
		answers   []string
	}{
		{"OAUTHBEARER", token, []string{"\x01", "\x01"}},
		{"XOAUTH2", token, []string{"", ""}},
		{"LOGIN", password, []string{"ann", "pw"}},
		{"PLAIN", password, nil},
	} {
		client, err := SASL(offers(tc.mechanism), "ann", tc.c)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.Start(); err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.answers {
			got, err := client.Next([]byte(`{"status":"401"}`))
			if err != nil || got == nil || string(got) != want {
				t.Errorf("%s: %q, %v", tc.mechanism, got, err)
			}
		}
		if tc.c == password {
			if got, err := client.Next(nil); !errors.Is(err, sasl.ErrUnexpectedServerChallenge) {
				t.Errorf("%s: then %q, %v", tc.mechanism, got, err)
			}
		}
	}
}

func TestLoginCheck(t *testing.T) {
	give := func(context.Context) (Credential, error) { return Credential{}, nil }
	for name, l := range map[string]Login{"no name": {Credential: give}, "a name of two lines": {Username: "a\nb", Credential: give}, "no credential": {Username: "ann"}} {
		if l.Check() == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := (&Login{Username: "ann", Credential: give}).Check(); err != nil {
		t.Error(err)
	}
}

// Nobody is asked for another try who cannot give one, or has no time for it.
func TestLoginNewer(t *testing.T) {
	var asked []string
	l := Login{}
	if l.Newer(t.Context(), Credential{Token: "one"}) {
		t.Error("without Refused")
	}
	l.Refused = func(_ context.Context, c Credential) bool { asked = append(asked, c.Token); return true }
	if !l.Newer(t.Context(), Credential{Token: "two"}) {
		t.Error("Refused says yes")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if l.Newer(ended, Credential{Token: "three"}) || strings.Join(asked, " ") != "two" {
		t.Errorf("asked for %v", asked)
	}
}
