package smtp_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// dialogue starts a fake server that gives the answers in turn, the first of them to EHLO,
// and then reads until the client goes. The channel gets the lines that it read, joined by
// "|".
func dialogue(t *testing.T, mechanisms string, answers ...string) (uint16, <-chan string) {
	t.Helper()
	heard := make(chan string, 4)
	return scripted.Serve(t, func(c *scripted.Conn) {
		var got []string
		defer func() { heard <- strings.Join(got, "|") }()
		c.Send("220 hello\r\n")
		for _, answer := range append([]string{"250-hello\r\n250 AUTH " + mechanisms}, answers...) {
			got = append(got, c.Line())
			c.Send(answer + "\r\n")
		}
		for line := ""; line != "QUIT"; {
			line = c.Line()
			got = append(got, line)
		}
	}).Port, heard
}

func TestLoginWays(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("t", 600)
	xoauth2 := func(token string) string { return b64("user=ann\x01auth=Bearer " + token + "\x01\x01") }
	for _, tc := range []struct {
		name, mechanisms string
		login            wire.Login
		answers          []string
		want             string
	}{
		{"PLAIN", "LOGIN PLAIN XOAUTH2", scripted.WithPassword("pw"), []string{"235 in"}, "AUTH PLAIN " + b64("\x00ann\x00pw")},
		{"LOGIN", "login xoauth2", scripted.WithPassword("pw"), []string{"334 " + b64("Username:"), "334 " + b64("Password:"), "235 in"}, "AUTH LOGIN|" + b64("ann") + "|" + b64("pw")},
		{"LOGIN, in other words", "LOGIN", scripted.WithPassword("pw"), []string{"334 " + b64("User Name\x00"), "334", "235 in"}, "AUTH LOGIN|" + b64("ann") + "|" + b64("pw")},
		{"OAUTHBEARER", "PLAIN XOAUTH2 OAUTHBEARER", scripted.WithToken("t0ken"), []string{"235 in"}, "AUTH OAUTHBEARER " + b64("n,a=ann,\x01auth=Bearer t0ken\x01\x01")},
		{"XOAUTH2", "PLAIN XOAUTH2", scripted.WithToken("t0ken"), []string{"235 in"}, "AUTH XOAUTH2 " + xoauth2("t0ken")},
		{"a token longer than a command", "XOAUTH2", scripted.WithToken(long), []string{"334 ", "235 in"}, "AUTH XOAUTH2|" + xoauth2(long)},
	} {
		p, heard := dialogue(t, tc.mechanisms, tc.answers...)
		c := config(p, wire.Plaintext, nil)
		c.Login = tc.login
		s, err := smtp.Dial(t.Context(), c)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		go func() { _ = s.Close() }()
		if got := <-heard; got != "EHLO localhost|"+tc.want+"|QUIT" {
			t.Errorf("%s: sent %s, want %s", tc.name, got, tc.want)
		}
	}
}

// Each failed login has its kind, and no error repeats the server's words or a secret.
func TestLoginsThatFail(t *testing.T) {
	t.Parallel()
	for _, tc := range testmain.Table[struct {
		Name                        string
		Kind                        wire.Kind
		Code                        int
		Asked                       bool
		Mechanisms, Password, Token string
		Answers                     []string
	}](t, "testdata/cases/login_failures.txt") {
		p, heard := dialogue(t, tc.Mechanisms, tc.Answers...)
		c := config(p, wire.Plaintext, nil)
		if c.Login = scripted.WithPassword(tc.Password); tc.Token != "" {
			c.Login = scripted.WithToken(tc.Token)
		}
		asked := false
		c.Login.Refused = func(context.Context, wire.Credential) bool { asked = true; return false }
		_, err := smtp.Dial(t.Context(), c)
		var e *wire.Error
		if !errors.As(err, &e) || e.Stage != wire.StageAuth || e.Kind != tc.Kind || e.Reply != tc.Code || e.Text != "" || asked != tc.Asked || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v (%+v), asked %v", tc.Name, err, e, asked)
		}
		if got := <-heard; tc.Answers == nil && strings.Contains(got, "AUTH") {
			t.Errorf("%s: sent %s", tc.Name, got)
		}
	}
}

// After a refused token a newer one is tried on a new connection, and never a third one.
func TestRefusedLoginIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"XOAUTH2", "OAUTHBEARER"} {
		for name, tc := range map[string]struct {
			tokens []string
			tried  string
			ok     bool
		}{
			"the second is good":            {[]string{"old", "good"}, "old good", true},
			"the second is refused as well": {[]string{"old", "older", "good"}, "old older", false},
			"there is no second":            {[]string{"old"}, "old", false},
			"the first is good":             {[]string{"good", "unused"}, "good", true},
		} {
			var mu sync.Mutex
			var tried []string
			port := scripted.Serve(t, scripted.AnswerLines("220 hello\r\n", func(line string) (string, bool) {
				first, auth := strings.CutPrefix(line, "AUTH "+mechanism+" ")
				switch {
				case auth:
					said, _ := base64.StdEncoding.DecodeString(first)
					_, token, _ := strings.Cut(strings.TrimRight(string(said), "\x01"), "Bearer ")
					mu.Lock()
					defer mu.Unlock()
					if tried = append(tried, token); token == "good" {
						return "235 in\r\n", false
					}
					return "334 " + b64(`{"status":"401"}`) + "\r\n", false
				case strings.HasPrefix(line, "EHLO"):
					return "250-hello\r\n250 AUTH " + mechanism + "\r\n", false
				case line == "QUIT":
					return "221 bye\r\n", true
				}
				return "535 5.7.8 no\r\n", false // the answer to the challenge
			})).Port
			c := config(port, wire.Plaintext, nil)
			c.Login, _ = scripted.Renewing(tc.tokens...)
			s, err := smtp.Dial(t.Context(), c)
			var e *wire.Error
			if tc.ok && err != nil || !tc.ok && (!errors.As(err, &e) || e.Kind != wire.KindAuth || e.Reply != 535) {
				t.Errorf("%s: %v", name, err)
			}
			if s != nil {
				_ = s.Close()
			}
			mu.Lock()
			if got := strings.Join(tried, " "); got != tc.tried {
				t.Errorf("%s, %s: tried %q, want %q", mechanism, name, got, tc.tried)
			}
			mu.Unlock()
		}
	}
}

// The server offers or answers STARTTLS in different ways, and says more before or after
// the upgrade.
func TestStartTLS(t *testing.T) {
	t.Parallel()
	ca := scripted.Authority(t)
	leaf := scripted.Leaf(t, ca, time.Time{})
	for _, tc := range testmain.Table[struct {
		Name, Clear, Ready, After string
		Kind                      wire.Kind
	}](t, "testdata/cases/starttls.txt") {
		var mu sync.Mutex
		clear := ""
		port := scripted.Serve(t, func(c *scripted.Conn) {
			hear := func() {
				line := c.Line()
				mu.Lock()
				defer mu.Unlock()
				clear += line + "\n"
			}
			c.Send("220 hello\r\n")
			hear()
			c.Send(tc.Clear)
			hear()
			c.Send(tc.Ready)
			for tc.After == "" {
				hear()
			}
			scripted.OverTLS(leaf, func(s *scripted.Conn) {
				for _, answer := range []string{tc.After, "235 in\r\n", "221 bye\r\n"} {
					s.Line()
					s.Send(answer)
				}
			})(c)
		}).Port
		c := config(port, wire.StartTLS, ca)
		asked := false
		c.Login.Credential = func(context.Context) (wire.Credential, error) {
			asked = true
			return wire.Credential{Password: password}, nil
		}
		s, err := smtp.Dial(t.Context(), c)
		var e *wire.Error
		if tc.Kind == "" && err != nil || tc.Kind != "" && (!errors.As(err, &e) || e.Kind != tc.Kind) {
			t.Errorf("%s: %v", tc.Name, err)
		}
		if s != nil {
			_ = s.Close()
		}
		mu.Lock()
		if strings.Contains(clear, "AUTH ") || tc.After == "" && asked {
			t.Errorf("%s: said in the clear %q, credential asked for %v", tc.Name, clear, asked)
		}
		mu.Unlock()
	}
}
