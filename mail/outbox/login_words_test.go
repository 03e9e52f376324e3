package outbox_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// What a server says when it refuses a login is shown, with what to do about it, and never where
// it repeats the secret.
func TestWordsOfARefusedLogin(t *testing.T) {
	t.Parallel()
	const secret = "correct-Horse battery?>~"
	refusing := map[string]func(mechanisms, answer string) func(*scripted.Conn){
		"imap": func(mechanisms, answer string) func(*scripted.Conn) {
			return func(s *scripted.Conn) {
				s.Send("* OK [CAPABILITY IMAP4rev1 " + mechanisms + "] ready\r\n")
				s.Answer(answer + "\r\n")
				s.Drain()
			}
		},
		"pop3": func(mechanisms, answer string) func(*scripted.Conn) {
			return scripted.AnswerLines("+OK ready\r\n", func(line string) (string, bool) {
				switch {
				case line == "CAPA":
					return "+OK\r\nSASL " + mechanisms + "\r\n.\r\n", false
				case strings.HasPrefix(line, "AUTH"):
					return answer + "\r\n", false
				}
				return "-ERR\r\n", false
			})
		},
		"smtp": func(mechanisms, answer string) func(*scripted.Conn) {
			return scripted.AnswerLines("220 ready\r\n", func(line string) (string, bool) {
				switch {
				case strings.HasPrefix(line, "EHLO"):
					return "250-mail.example.org\r\n250 " + mechanisms + "\r\n", false
				case strings.HasPrefix(line, "AUTH"):
					return answer + "\r\n", false
				}
				return "500 5.5.1 no\r\n", false
			})
		},
	}
	plain := map[string]string{"imap": "AUTH=PLAIN SASL-IR", "pop3": "PLAIN", "smtp": "AUTH PLAIN"}
	check := func(name, protocol, mechanisms, answer string) mail.Issue {
		t.Helper()
		a := mailtest.Settings("127.0.0.1", scripted.Serve(t, refusing[protocol](mechanisms, answer)).Port, "ann")
		a.Auth = mail.AuthPassword
		d := &mailtest.Directory{Known: map[string]mail.Account{account: a}, Password: secret}
		verify := mailbox.New(mailbox.Options{Directory: d})
		t.Cleanup(func() { _ = verify.Close() })
		do := verify.Verify
		switch protocol {
		case "pop3":
			a.Protocol, a.POP3, a.IMAP = mail.POP3, a.IMAP, mail.Endpoint{}
		case "smtp":
			a.SMTP = a.IMAP
			do = outbox.New(outbox.Options{Directory: d}).Verify
		}
		d.Known[account] = a
		v, err := do(t.Context(), account)
		if err != nil || len(v.Issues) != 1 {
			t.Fatalf("%s: %+v, %v", name, v, err)
		}
		return v.Issues[0]
	}
	const ask, none, password = mail.AdviceAskOperator, mail.AdviceNoPassword, mail.AdviceCheckLoginPassword
	for _, tc := range []struct {
		protocol, answer string
		kind             mail.Kind
		advice           mail.Advice
		later            bool
		said             string
	}{
		{"imap", "TAG NO [LIMIT] Too many\x07 connections", mail.KindRefused, ask, true, "Too many connections"},
		{"imap", "TAG NO [UNAVAILABLE] Try later", mail.KindRefused, ask, true, "Try later"},
		{"imap", "TAG NO [ALERT] Application password required", mail.KindAuth, password, false, "Application password required"},
		{"imap", "TAG NO [WEBALERT https://x.example.org] Log in there", mail.KindAuth, none, false, "Log in there"},
		{"imap", "TAG NO [NOPERM] IMAP is off", mail.KindAuth, none, false, "IMAP is off"},
		{"imap", "* BYE [UNAVAILABLE] Going down", mail.KindConnection, "", true, "Going down"},
		{"pop3", "-ERR [SYS/TEMP] Try later", mail.KindRefused, ask, true, "Try later"},
		{"pop3", "-ERR [AUTH] POP is off", mail.KindAuth, password, false, "POP is off"},
		{"smtp", "421 4.7.0 Too many", mail.KindRefused, ask, true, "Too many"},
		{"smtp", "454 4.7.0 Try later", mail.KindRefused, ask, true, "Try later"},
		{"smtp", "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant", mail.KindAuth, none, false, "Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant"},
		{"smtp", "535 5.7.139 Authentication unsuccessful, the user credentials were incorrect", mail.KindAuth, password, false, "Authentication unsuccessful, the user credentials were incorrect"},
		{"smtp", "538 5.7.11 TLS first", mail.KindAuth, none, false, "TLS first"},
		{"smtp", "535-5.7.8 Not\r\n535 5.7.8 accepted", mail.KindAuth, password, false, "Not accepted"},
	} {
		i := check(tc.answer, tc.protocol, plain[tc.protocol], tc.answer)
		_, said, _ := strings.Cut(i.Message, " The server said: ")
		if i.Kind != tc.kind || tc.advice != "" && i.Advice != tc.advice || i.Retryable != tc.later || said != tc.said {
			t.Errorf("%s: %+v", tc.answer, i)
		}
	}
	for protocol, mechanisms := range map[string]string{"imap": "LOGINDISABLED", "smtp": "SIZE"} {
		if i := check("no way", protocol, mechanisms, ""); i.Advice != none {
			t.Errorf("%s without a way to log in: %+v", protocol, i)
		}
	}
	std, url := base64.StdEncoding, base64.RawURLEncoding
	response := "\x00ann\x00" + secret
	for name, repeated := range map[string]string{"itself": secret, "other case": strings.ToUpper(secret), "base64": std.EncodeToString([]byte(secret)), "base64url": url.EncodeToString([]byte(secret)),
		"the response": std.EncodeToString([]byte(response)), "the response, in base64url": url.EncodeToString([]byte(response)), "a piece": secret[3:15], "a piece of the response": std.EncodeToString([]byte(response))[14:26],
		"inside other base64": std.EncodeToString([]byte("you said " + secret + " to me"))} {
		for protocol, answer := range map[string]string{"imap": "TAG NO [AUTHENTICATIONFAILED] CANARY ", "pop3": "-ERR [AUTH] CANARY ", "smtp": "535 5.7.8 CANARY "} {
			if i := check(name, protocol, plain[protocol], answer+repeated); i.Kind != mail.KindAuth || strings.Contains(i.Message, "CANARY") {
				t.Errorf("%s, %s: %+v", protocol, name, i)
			}
		}
	}
}
