package imap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// dovecotConfig logs in at a Dovecot, at the port given, over TLS.
func dovecotConfig(d *servertest.DovecotServer, port uint16, user string) Config {
	return Config{Target: wire.Target{Host: d.Host, Port: port, Security: wire.TLS, RootCAs: d.CA.Pool(),
		Login: wire.Login{Username: user, Credential: scripted.WithPassword(servertest.Password).Credential}}}
}

func letter(subject string) []byte {
	return []byte("From: Ann <ann@example.org>\r\nSubject: " + subject + "\r\n\r\nThe body of " + subject + ".\r\n")
}

// A cold read is four round trips: TCP, TLS, the greeting, and one flight for the
// login together with what it is for. The proxy counts from behind TCP.
func TestColdReadIsOneFlightAfterTheGreeting(t *testing.T) {
	t.Parallel()
	d, user := servertest.SharedDovecot(t), servertest.User("ann")
	d.Deliver(t, user, "INBOX", letter("one"))
	proxy := servertest.NewProxy(t, d.IMAPSAddr(), servertest.ProxyOptions{})
	read := func(t *testing.T, p *Pool, begin func()) {
		mustLend(t, p, "", func(_ context.Context, s *Session) error {
			begin()
			var e *Examining
			var f *Fetching
			s.Together(func() {
				e = s.Examine("INBOX")
				f = s.Fetch(UIDs(1), Items{Sections: []Section{{}}})
			})
			if _, err := e.Wait(); err != nil {
				return err
			}
			data, err := f.Wait()
			if err == nil && (len(data) != 1 || !strings.Contains(string(data[0].Sections[0].Bytes), "The body of one")) {
				err = fmt.Errorf("got %d messages", len(data))
			}
			return err
		})
	}
	pool := func() *Pool {
		return newPool(t, PoolOptions{Config: dovecotConfig(d, proxy.Port, user)})
	}
	t.Run("after the greeting", func(t *testing.T) {
		p := pool()
		read(t, p, func() { proxy.Reset() })
		if got := proxy.Stats().Flights; got != 1 {
			t.Errorf("%d flights for login, EXAMINE and FETCH", got)
		}
		proxy.Reset()
		read(t, p, func() {})
		if got := proxy.Stats().Flights; got != 1 {
			t.Errorf("%d flights for a warm read", got)
		}
	})
	t.Run("in all", func(t *testing.T) {
		p := pool()
		proxy.Reset()
		read(t, p, func() {})
		if got := proxy.Stats().Flights; got != 3 {
			t.Errorf("%d flights: want TLS, its end, and the rest", got)
		}
	})
}

// A held login with a token that is refused: the server first says why in a
// challenge, for which it takes what came behind the login as the answer. The next
// token logs in, with the same commands.
func TestHeldTokenRefusedByDovecot(t *testing.T) {
	t.Parallel()
	d := servertest.SharedDovecot(t)
	old, valid := servertest.OAuthToken("ann", time.Now().Add(-time.Hour)), servertest.OAuthToken("ann", time.Now().Add(time.Hour))
	read := func(_ context.Context, s *Session) error { a, b := openAndFetch(s); return errors.Join(a, b) }
	for name, run := range map[string]func(cfg Config) error{
		"with commands": func(cfg Config) error { return newPool(t, PoolOptions{Config: cfg}).Lend(t.Context(), "", read) },
		"alone":         func(cfg Config) error { return newPool(t, PoolOptions{Config: cfg}).Warm(t.Context()) },
		"directly": func(cfg Config) error {
			s, err := Dial(t.Context(), cfg)
			if err == nil {
				_ = s.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dovecotConfig(d, d.IMAPSPort, "ann")
			cfg.Login = scripted.WithToken(old)
			wantError(t, run(cfg), wire.KindAuth, wire.StageAuth)
			var told func() int
			cfg.Login, told = scripted.Renewing(old, valid)
			if err := run(cfg); err != nil || told() != 1 {
				t.Errorf("%d refusals told, %v", told(), err)
			}
		})
	}
}
