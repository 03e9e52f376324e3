package wire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"

	"github.com/postern-mail/postern/internal/testmain"
)

var must = testmain.Must

// The mechanism follows from the kind of credential and what is offered, and the
// credential leaves in no other form.
func TestSASL(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, Offered, User string
		Password, Token     string
		Mechanism, First    string
	}](t, "testdata/cases/sasl.txt") {
		client, err := SASL(offers(tc.Offered), tc.User, Credential{Password: tc.Password, Token: tc.Token})
		if err != nil {
			t.Errorf("%s: %v", tc.Name, err)
			continue
		}
		mechanism, first, err := client.Start()
		if err != nil || mechanism != tc.Mechanism || string(first) != tc.First || (first == nil) != (tc.Mechanism == "LOGIN") {
			t.Errorf("%s: %s %q, %v", tc.Name, mechanism, first, err)
		}
	}
}

func offers(list string) func(string) bool {
	return func(m string) bool { return slices.Contains(strings.Fields(list), m) }
}

func TestSASLThatCannotBe(t *testing.T) {
	for _, tc := range testmain.Table[struct {
		Name, Offered, User string
		Password, Token     string
		None                bool
	}](t, "testdata/cases/sasl_refused.txt") {
		client, err := SASL(offers(tc.Offered), tc.User, Credential{Password: tc.Password, Token: tc.Token})
		if client != nil || err == nil || errors.Is(err, ErrNoMechanism) != tc.None || strings.Contains(err.Error(), "canar") {
			t.Errorf("%s: %v, %v", tc.Name, client, err)
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
		must(t, err)
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
