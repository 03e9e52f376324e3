// Package commandtest runs the commands of a gateway for tests, and compares their answers with
// those that stand in files.
package commandtest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// Store is a vault as the commands see it.
type Store struct{ *vault.Vault }

// AllSettings implements the commands' Store.
func (s Store) AllSettings(ctx context.Context) ([]vault.Setting, error) { return s.Settings(ctx) }

// Vault returns a temporary vault with accounts, whose secret is "secret".
func Vault(t testing.TB, o *vault.Options, accounts ...mail.Account) *vault.Vault {
	t.Helper()
	v, remove, err := vault.Temporary(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	for _, a := range accounts {
		if err := v.AddAccount(t.Context(), a, mail.NewSecret([]byte("secret"))); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// Work is an account of that name.
func Work(name string, mode mail.Mode) mail.Account {
	return mail.Account{Name: name, Email: "desk@example.org", Protocol: mail.IMAP, Username: "desk", Auth: mail.AuthPassword, Mode: mode,
		IMAP:     mail.Endpoint{Host: "imap.example.org", Port: 993, Security: mail.TLS},
		SMTP:     mail.Endpoint{Host: "smtp.example.org", Port: 465, Security: mail.TLS},
		AllowOut: mail.AllowList{Enabled: true}}
}

// Envelope is an answer taken apart.
type Envelope struct {
	Success bool           `json:"success"`
	Data    map[string]any `json:"data"`
	Message string         `json:"message"`
	Error   struct {
		Code     string   `json:"code"`
		Message  string   `json:"message"`
		Hint     string   `json:"hint"`
		Examples []string `json:"examples"`
	} `json:"error"`
	Meta struct {
		Untrusted []string `json:"untrusted"`
	} `json:"_meta"`
	Size int `json:"-"` // bytes of the answer
}

// Next is the command that an answer suggests, empty for none.
func (e Envelope) Next() string {
	n, _ := e.Data["next_action"].(map[string]any)
	arguments, _ := n["arguments"].(map[string]any)
	command, _ := arguments["command"].(string)
	return command
}

// Caller runs commands as a principal.
type Caller struct {
	Gateway   *gateway.Gateway
	Registry  *discovery.Registry
	Principal gateway.Principal
	Compact   bool // answers without --full
}

// Do runs a command.
func (c *Caller) Do(t testing.TB, line string) Envelope {
	t.Helper()
	a := c.Gateway.Do(t.Context(), gateway.Request{Principal: c.Principal, Line: line, Full: !c.Compact})
	e := Envelope{Size: len(a.JSON)}
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return e
}

// OK is Do for a command that must work.
func (c *Caller) OK(t testing.TB, line string) Envelope {
	t.Helper()
	e := c.Do(t, line)
	if !e.Success {
		t.Fatalf("%s: %s %s", line, e.Error.Code, e.Error.Message)
	}
	return e
}

// Fails is Do for a command that must fail this way.
func (c *Caller) Fails(t testing.TB, line string, code discovery.Code, says string) Envelope {
	t.Helper()
	e := c.Do(t, line)
	if e.Success || e.Error.Code != string(code) || !strings.Contains(e.Error.Message+" "+e.Error.Hint, says) {
		t.Errorf("%s: success %v, %s %q %q; want %s with %q", line, e.Success, e.Error.Code, e.Error.Message, e.Error.Hint, code, says)
	}
	return e
}

// Data is the data of a compact answer, as it was written.
func (c *Caller) Data(t testing.TB, line string) string {
	t.Helper()
	a := c.Gateway.Do(t.Context(), gateway.Request{Principal: c.Principal, Line: line})
	text := strings.TrimSuffix(strings.TrimPrefix(string(a.JSON), `{"success":true,"data":`), "}")
	if !a.Success() || strings.Contains(text, `"_meta"`) {
		t.Errorf("%s: %s", line, a.JSON)
	}
	return text
}
