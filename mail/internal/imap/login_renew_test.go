package imap

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// tokenServer logs in whoever has the token that is valid, by XOAUTH2, and obeys; it
// counts the logins by token.
type tokenServer struct {
	valid string
	caps  string // empty: with SASL-IR
	mu    sync.Mutex
	tries []string
}

func (c *tokenServer) run(s *scripted.Conn) {
	caps := c.caps
	if caps == "" {
		caps = "IMAP4rev1 AUTH=XOAUTH2 SASL-IR"
	}
	s.Send("* OK [CAPABILITY " + caps + "] ready\r\n")
	tag, command := s.Expect()
	first := strings.TrimPrefix(command, "AUTHENTICATE XOAUTH2")
	if first == "" {
		s.Send("+ \r\n")
		first, _ = s.Expect()
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(first))
	_, token, ok := strings.Cut(string(plain), "auth=Bearer ")
	if err != nil || !ok {
		s.Send("* BYE what is " + first + "\r\n")
		return
	}
	token = strings.TrimRight(token, "\x01")
	c.mu.Lock()
	c.tries = append(c.tries, token)
	c.mu.Unlock()
	if token == c.valid {
		s.Send(tag + " OK [CAPABILITY " + scripted.Caps + "] in\r\n")
		obey(s)
		return
	}
	s.Send("+ " + base64.StdEncoding.EncodeToString([]byte(`{"status":"401"}`)) + "\r\n")
	s.Expect()
	s.Send(tag + " NO [AUTHENTICATIONFAILED] no\r\n")
	s.Drain()
}

func (c *tokenServer) tried() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.tries, " ")
}

// A login that was refused is tried once more where there is something newer to log
// in with, and never a third time.
func TestRefusedLoginIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	lend := func(cfg Config) error {
		return newPool(t, PoolOptions{Config: cfg}).Lend(t.Context(), "", func(_ context.Context, s *Session) error {
			a, b := openAndFetch(s)
			if a != nil {
				return a
			}
			return b
		})
	}
	ways := map[string]func(cfg Config) error{
		"pool":              lend,
		"pool, saying less": func(cfg Config) error { return newPool(t, PoolOptions{Config: cfg}).Lend(t.Context(), "", noop) },
		"pool, and nothing sent": func(cfg Config) error {
			return newPool(t, PoolOptions{Config: cfg}).Warm(t.Context())
		},
		"change": func(cfg Config) error {
			return newPool(t, PoolOptions{Config: cfg}).Change(t.Context(), "INBOX", MarkSeen, noop)
		},
		"direct": func(cfg Config) error {
			s, err := Dial(t.Context(), cfg)
			if err == nil {
				_ = s.Close()
			}
			return err
		},
	}
	for way, run := range ways {
		for _, caps := range []string{"IMAP4rev1 AUTH=XOAUTH2 SASL-IR", "IMAP4rev1 AUTH=XOAUTH2"} {
			for _, tc := range []struct {
				name   string
				tokens []string
				tried  string
				ok     bool
			}{
				{"the second is good", []string{"old", "good"}, "old good", true},
				{"the second is bad as well", []string{"old", "bad", "good"}, "old bad", false},
				{"there is no second", []string{"old"}, "old", false},
				{"the first is good", []string{"good", "unused"}, "good", true},
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", way, caps, tc.name), func(t *testing.T) {
					c := &tokenServer{valid: "good", caps: caps}
					cfg := serve(t, c.run)
					var told func() int
					cfg.Login, told = scripted.Renewing(tc.tokens...)
					err := run(cfg)
					if tc.ok && err != nil {
						t.Error(err)
					} else if !tc.ok {
						wantError(t, err, wire.KindAuth, wire.StageAuth)
					}
					if got := c.tried(); got != tc.tried || told() > 2 {
						t.Errorf("tried %q, want %q; %d refusals told", got, tc.tried, told())
					}
				})
			}
		}
	}
}

// A token that expires under many callers costs each connection of before one
// refusal at most, and nobody fails.
func TestManyCallersAndAnExpiredToken(t *testing.T) {
	t.Parallel()
	c := &tokenServer{valid: "good"}
	cfg := serve(t, c.run)
	cfg.Login, _ = scripted.Renewing("old", "good")
	p := newPool(t, PoolOptions{Config: cfg, Sessions: 4})
	p.logins.proven = true // as after a login that worked, so that several are made at once
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { lend(t, p, "", noop) })
	}
	wg.Wait()
	if n := strings.Count(c.tried(), "old"); n < 1 || n > 4 {
		t.Errorf("%d logins with the old token", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.logins.proven || p.logins.renewing || len(p.queue) != 0 {
		t.Errorf("proven %v, renewing %v, %d wait", p.logins.proven, p.logins.renewing, len(p.queue))
	}
}

// Fifty callers with a wrong token are one attempt, and two where it is said that there
// is a newer one.
func TestFiftyCallersWithAWrongToken(t *testing.T) {
	t.Parallel()
	for tries, refused := range map[string]func(context.Context, wire.Credential) bool{
		"old": nil, "old old": func(context.Context, wire.Credential) bool { return true },
	} {
		t.Run(tries, func(t *testing.T) {
			hold := make(chan struct{})
			c := &tokenServer{valid: "none"}
			cfg := serve(t, func(s *scripted.Conn) { <-hold; c.run(s) })
			cfg.Login = scripted.WithToken("old")
			cfg.Login.Refused = refused
			p := newPool(t, PoolOptions{Config: cfg})
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() { wantError(t, p.Lend(t.Context(), "", noop), wire.KindAuth, wire.StageAuth) })
			}
			p.queued(50)
			close(hold)
			wg.Wait()
			if got := c.tried(); got != tries {
				t.Errorf("tried %q", got)
			}
		})
	}
}

// A session that died is replaced, and what it is replaced with may need the new
// token: both repairs are for one lend.
func TestDeadSessionAndExpiredToken(t *testing.T) {
	c := &tokenServer{valid: "good"}
	die := make(chan struct{})
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		if s.N > 1 {
			c.run(s)
			return
		}
		s.Send("* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2 SASL-IR] ready\r\n")
		s.Answer("TAG OK [CAPABILITY " + scripted.Caps + "] in\r\n")
		s.Answer("TAG OK done\r\n")
		<-die
		s.Expect()
	})
	cfg := configOf(sv)
	cfg.Login, _ = scripted.Renewing("old", "good")
	p := newPool(t, PoolOptions{Config: cfg, Sessions: 1})
	mustLend(t, p, "", noop)
	close(die)
	mustLend(t, p, "", noop)
	if got := c.tried(); got != "old good" {
		t.Errorf("tried %q", got)
	}
}

// A round that nobody saw to its end does not take the next caller's second try.
func TestRoundThatWasGivenUp(t *testing.T) {
	c := &tokenServer{valid: "good"}
	cfg := serve(t, c.run)
	cfg.Login, _ = scripted.Renewing("old", "older", "good")
	p := newPool(t, PoolOptions{Config: cfg, Sessions: 1})
	ctx, cancel := context.WithCancel(t.Context())
	err := p.Lend(ctx, "", func(_ context.Context, s *Session) error {
		defer cancel()
		return s.Ready()
	})
	wantError(t, err, wire.KindAuth, wire.StageAuth)
	lend(t, p, "", noop)
	if got := c.tried(); got != "old older good" {
		t.Errorf("tried %q", got)
	}
}
