package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// realMessages are over a hundred messages that other people's programs wrote.
func realMessages(t testing.TB) [][]byte {
	t.Helper()
	var messages [][]byte
	err := filepath.WalkDir(filepath.Join("..", "..", "mail", "testdata", "real-emails"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(p) != ".eml" {
			return err
		}
		b, err := os.ReadFile(p)
		messages = append(messages, b)
		return err
	})
	if err != nil || len(messages) < 100 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	return messages
}

// schemaOf is the compiled outputSchema of a command, as the server gives it out.
func schemaOf(t testing.TB, h *testHouse, command string) *jsonschema.Schema {
	t.Helper()
	var pair struct {
		Output json.RawMessage `json:"outputSchema"`
	}
	h.do(t, "schema "+command, &pair)
	return gatewaytest.Schema(t, pair.Output)
}

func validate(t testing.TB, s *jsonschema.Schema, line string, a answer) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Data))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: the answer does not fit the outputSchema: %v\n%s", line, err, a.Data)
	}
}

type listData struct {
	Status   string `json:"status"`
	Issues   []any  `json:"issues"`
	Messages []struct {
		ID      string `json:"message_id"`
		Subject string `json:"subject"`
	} `json:"messages"`
	HasMore    bool `json:"has_more"`
	NextAction *struct {
		Arguments struct {
			Command string `json:"command"`
		} `json:"arguments"`
	} `json:"next_action"`
}

// TestRealMailOnDovecot reads real messages from a real server through the
// whole house: each is listed once, each is got, every answer fits its schema, and
// on the server nothing changes.
func TestRealMailOnDovecot(t *testing.T) {
	t.Parallel()
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	messages := realMessages(t)
	s.Deliver(t, user, "INBOX", messages...)
	v := newVault(t)
	v.add(t, dovecotAccount(s, user), servertest.Password)
	h := newHouse(t, v)

	// The first session moves messages from new to cur, before anything of ours
	// could be blamed for it.
	h.do(t, "mail folders --counts", nil)
	before := s.Files(t, user)
	if len(before) != len(messages) {
		t.Fatalf("%d messages on the server", len(before))
	}

	listSchema, getSchema := schemaOf(t, h, "mail list"), schemaOf(t, h, "mail get")
	var ids []string
	line := "mail list --limit 30 --full"
	for range 10 {
		var page listData
		a := h.do(t, line, &page)
		validate(t, listSchema, line, a)
		if page.Status != "ok" || len(page.Issues) != 0 {
			t.Errorf("%s: %s %v", line, page.Status, page.Issues)
		}
		for _, m := range page.Messages {
			ids = append(ids, m.ID)
		}
		if !page.HasMore {
			break
		}
		line = page.NextAction.Arguments.Command
	}
	if n := len(ids); n != len(messages) {
		t.Fatalf("%d messages listed, want %d", n, len(messages))
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(ids))); len(unique) != len(ids) {
		t.Fatal("a message is listed twice")
	}
	for _, id := range ids {
		for _, options := range []string{"", " --headers all --chars 20000", " --headers none --fields message.body_text"} {
			line := "mail get '" + id + "'" + options
			a := h.do(t, line, nil)
			if !a.Success {
				t.Errorf("%s: %s", line, a.raw)
				continue
			}
			if options != " --headers none --fields message.body_text" {
				validate(t, getSchema, line, a)
			}
		}
	}
	if after := s.Files(t, user); !slices.Equal(before, after) {
		t.Error("reading changed something on the server")
	}
	if n := h.entries(t); n < 300 {
		t.Errorf("%d entries", n)
	}
}

// TestServerFaults has the server's side wrong in each way a person will meet, and
// wants one envelope that says so, without the password and without a trace.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	good := servertest.SharedDovecot(t)
	expired := servertest.Dovecot(t, servertest.Config{Leaf: servertest.LeafOptions{NotAfter: time.Now().Add(-time.Hour), NotBefore: time.Now().Add(-2 * time.Hour)}})
	elsewhere := servertest.Dovecot(t, servertest.Config{Leaf: servertest.LeafOptions{Hosts: []string{"other.example.org"}}})
	dead := dovecotAccount(good, "ann")
	dead.IMAP.Port = closedPort(t)
	ca, err := servertest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	unknownCA := dovecotAccount(good, "ann")
	unknownCA.CAPEM = ca.PEM()
	for name, c := range map[string]struct {
		account  mail.Account
		password string
		code     string
		exit     int
	}{
		"dead server":    {dead, servertest.Password, "CONNECTION_FAILED", 8},
		"wrong password": {dovecotAccount(good, "ann"), "wrong-canary-password", "AUTH_FAILED", 4},
		"expired":        {dovecotAccount(expired, "ann"), servertest.Password, "CONNECTION_FAILED", 8},
		"other host":     {dovecotAccount(elsewhere, "ann"), servertest.Password, "CONNECTION_FAILED", 8},
		"unknown CA":     {unknownCA, servertest.Password, "CONNECTION_FAILED", 8},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			v.add(t, c.account, c.password)
			h := newHouse(t, v)
			for _, line := range []string{"mail list", "mail folders", "mail get --folder INBOX --uid 1"} {
				a := h.Gateway.Do(t.Context(), gateway.Request{Principal: h.Principal, Line: line})
				text := string(a.JSON)
				if string(a.Code) != c.code || a.ExitStatus() != c.exit || !strings.Contains(text, `"hint":"`) {
					t.Errorf("%s: %s", line, text)
				}
				if strings.Contains(text, c.password) || strings.Contains(text, "goroutine") {
					t.Errorf("%s: shows what it must not: %s", line, text)
				}
			}
			var verified struct {
				OK bool `json:"ok"`
			}
			var doctor struct {
				Status string `json:"status"`
				Checks []struct {
					OK   bool   `json:"ok"`
					Code string `json:"code"`
				} `json:"checks"`
			}
			h.do(t, "mail verify", &verified)
			h.do(t, "doctor", &doctor)
			if verified.OK || doctor.Status == "ok" || doctor.Checks[1].OK || doctor.Checks[1].Code != c.code {
				t.Errorf("verify %+v, doctor %+v", verified, doctor)
			}
			for _, line := range []string{"mail verify", "doctor"} { // a shell learns it from the status alone
				if a := h.Gateway.Do(t.Context(), gateway.Request{Principal: h.Principal, Line: line}); !a.Success() || a.ExitStatus() != c.exit {
					t.Errorf("%s: success %t, status %d, want %d", line, a.Success(), a.ExitStatus(), c.exit)
				} else if strings.Contains(string(a.JSON), "--password-from stdin'") != (c.code == "AUTH_FAILED") {
					t.Errorf("%s: how another password is stored: %s", line, a.JSON)
				}
			}
		})
	}
}

func plainMessages(n int) (all [][]byte) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, "From: bob@example.org\r\nTo: ann@example.org\r\nSubject: %d\r\n\r\nhi\r\n", i+1))
	}
	return all
}
