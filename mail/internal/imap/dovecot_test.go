package imap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// dovecotConfig logs in at a Dovecot, at the port given, over TLS.
func dovecotConfig(d *servertest.DovecotServer, port uint16, user string) Config {
	return Config{Target: wire.Target{Host: d.Host, Port: port, Security: wire.TLS, RootCAs: d.CA.Pool(),
		Login: wire.Login{Username: user, Credential: scripted.WithPassword(servertest.Password).Credential}}}
}

func letter(subject, id, parent string) []byte {
	text := "From: Ann <ann@example.org>\r\nSubject: " + subject + "\r\nMessage-ID: <" + id + "@example.org>\r\n"
	if parent != "" {
		text += "In-Reply-To: <" + parent + "@example.org>\r\nReferences: <" + parent + "@example.org>\r\n"
	}
	return []byte(text + "\r\nThe body of " + subject + ".\r\n")
}

// A cold read is four round trips: TCP, TLS, the greeting, and one flight for the
// login together with what it is for. The proxy counts from behind TCP.
func TestColdReadIsOneFlightAfterTheGreeting(t *testing.T) {
	d := servertest.Dovecot(t, servertest.Config{})
	d.Deliver(t, "ann", "INBOX", letter("one", "1", ""))
	proxy := servertest.NewProxy(t, d.IMAPSAddr(), servertest.ProxyOptions{})
	read := func(t *testing.T, p *Pool, begin func()) {
		mustLend(t, p, "", func(_ context.Context, s *Session) error {
			begin()
			var e *Examining
			var f *Fetching
			s.Together(func() {
				e = s.Examine("INBOX")
				f = s.Fetch(goimap.UIDSetNum(1), goimap.FetchOptions{BodySection: []*goimap.FetchItemBodySection{{}}})
			})
			if _, err := e.Wait(); err != nil {
				return err
			}
			data, err := f.Wait()
			if err == nil && (len(data) != 1 || !strings.Contains(string(data[0].BodySection[0].Bytes), "The body of one")) {
				err = fmt.Errorf("got %d messages", len(data))
			}
			return err
		})
	}
	pool := func() *Pool {
		return newPool(t, PoolOptions{Config: dovecotConfig(d, proxy.Port, "ann")})
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
	t.Run("a refused login", func(t *testing.T) {
		cfg := dovecotConfig(d, proxy.Port, "ann")
		cfg.Login = scripted.WithPassword("wrong")
		p := newPool(t, PoolOptions{Config: cfg})
		err := p.Lend(t.Context(), "", lookAt("INBOX"))
		if e := wantError(t, err, wire.KindAuth, wire.StageAuth); e.Code != "AUTHENTICATIONFAILED" {
			t.Errorf("error %+v", e)
		}
	})
}

// A held login with a token that is refused: the server first says why in a
// challenge, for which it takes what came behind the login as the answer. The next
// token logs in, with the same commands.
func TestHeldTokenRefusedByDovecot(t *testing.T) {
	d := servertest.Dovecot(t, servertest.Config{})
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
			cfg := dovecotConfig(d, d.IMAPSPort, "ann")
			cfg.Login = scripted.WithToken(old)
			wantError(t, run(cfg), wire.KindAuth, wire.StageAuth)
			told := 0
			cfg.Login, _ = renewing(&told, old, valid)
			if err := run(cfg); err != nil || told != 1 {
				t.Errorf("%d refusals told, %v", told, err)
			}
		})
	}
}

// Every change on a real server, with the changes of the others left alone.
func TestChangesOnDovecot(t *testing.T) {
	full := servertest.Dovecot(t, servertest.Config{})
	poor := servertest.Dovecot(t, servertest.Config{HideCapabilities: []string{"MOVE", "LITERAL+"}})
	for name, d := range map[string]*servertest.DovecotServer{"with MOVE": full, "without MOVE": poor} {
		t.Run(name, func(t *testing.T) {
			scripted.Settle(t)
			for i := range 6 {
				d.Deliver(t, "ann", "INBOX", letter(fmt.Sprint("number ", i+1), fmt.Sprint(i+1), ""))
			}
			p := newPool(t, PoolOptions{Config: dovecotConfig(d, d.IMAPSPort, "ann"), Sessions: 1})
			change := func(grant Grant, fn func(s *Session) error) {
				t.Helper()
				err := p.Change(t.Context(), "INBOX", grant, func(_ context.Context, s *Session) error {
					if grant == AppendMessages {
						return fn(s) // it may not open a folder for writing
					}
					if _, err := s.Select("INBOX").Wait(); err != nil {
						return err
					}
					return fn(s)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			flags := func() map[uint32]string {
				got := map[uint32]string{}
				mustLend(t, p, "INBOX", func(_ context.Context, s *Session) error {
					if _, err := s.Examine("INBOX").Wait(); err != nil {
						return err
					}
					var all goimap.UIDSet
					all.AddRange(1, 0)
					data, err := s.Fetch(all, goimap.FetchOptions{Flags: true}).Wait()
					for _, m := range data {
						var names []string
						for _, f := range m.Flags {
							if f != `\Recent` {
								names = append(names, string(f))
							}
						}
						slices.Sort(names)
						got[uint32(m.UID)] = strings.Join(names, " ")
					}
					return err
				})
				return got
			}
			add := func(op goimap.StoreFlagsOp, uid goimap.UID, f ...goimap.Flag) func(s *Session) error {
				return func(s *Session) error {
					data, err := s.Store(goimap.UIDSetNum(uid), op, f).Wait()
					if err == nil && (len(data) != 1 || data[0].UID != uid) {
						err = fmt.Errorf("answered for %d messages", len(data))
					}
					return err
				}
			}

			change(MarkSeen, add(goimap.StoreFlagsAdd, 1, goimap.FlagSeen))
			change(ChangeFlags, add(goimap.StoreFlagsAdd, 2, goimap.FlagFlagged, "project-x"))
			change(ChangeFlags, add(goimap.StoreFlagsDel, 2, "project-x"))
			change(DeleteMessages, add(goimap.StoreFlagsAdd, 6, goimap.FlagDeleted)) // as another client would

			var copied Copied
			err := p.Change(t.Context(), "INBOX", CopyMessages, func(_ context.Context, s *Session) error {
				if _, err := s.Examine("INBOX").Wait(); err != nil {
					return err
				}
				var err error
				copied, err = s.Copy(goimap.UIDSetNum(1, 2), "Archive").Wait()
				return err
			})
			if want := map[uint32]uint32{1: 1, 2: 2}; err != nil || !maps.Equal(copied.Target, want) || copied.UIDValidity == 0 {
				t.Errorf("copied %+v: %v", copied, err)
			}
			change(MoveMessages, func(s *Session) error {
				moved, err := s.Move(goimap.UIDSetNum(3), "Archive").Wait()
				if d == poor {
					if e := wantError(t, err, wire.KindRefused, StageMove); e.OutOfStep {
						t.Error("out of step")
					}
					return nil
				}
				if err == nil && moved.Target[3] != 3 {
					err = fmt.Errorf("moved %+v", moved)
				}
				return err
			})
			change(MoveMessages, func(s *Session) error {
				_, err := s.Copy(goimap.UIDSetNum(4), "No such folder").Wait()
				if e := wantError(t, err, wire.KindRefused, StageCopy); e.Code != "TRYCREATE" {
					t.Errorf("code %q", e.Code)
				}
				return nil
			})
			change(DeleteMessages, func(s *Session) error {
				if err := add(goimap.StoreFlagsAdd, 5, goimap.FlagDeleted)(s); err != nil {
					return err
				}
				_, err := s.Expunge(goimap.UIDSetNum(5)).Wait()
				return err
			})
			date := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
			var at uint32
			change(AppendMessages, func(s *Session) error {
				var err error
				_, at, err = s.Append("INBOX", []goimap.Flag{goimap.FlagDraft, goimap.FlagSeen}, date, letter("appended", "7", "1"))
				return err
			})
			want := map[uint32]string{1: `\Seen`, 2: `\Flagged`, 3: "", 4: "", 6: `\Deleted`, 7: `\Draft \Seen`}
			if d == full {
				delete(want, 3)
			}
			if got := flags(); !maps.Equal(got, want) || at != 7 {
				t.Errorf("appended %d; messages %v, want %v", at, got, want)
			}

			lend(t, p, "INBOX", func(_ context.Context, s *Session) error {
				threads, err := s.Thread(&goimap.SearchCriteria{}).Wait()
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(threads, func(th imapclient.ThreadData) bool { return slices.Equal(th.Chain, []uint32{1, 7}) }) {
					t.Errorf("threads %v", threads)
				}
				part := func(s goimap.PartSpecifier) goimap.FetchOptions {
					return goimap.FetchOptions{InternalDate: true, BodySection: []*goimap.FetchItemBodySection{{Specifier: s}}}
				}
				data, err := s.FetchEach([]FetchRequest{{goimap.UIDSetNum(2, 7), part(goimap.PartSpecifierText)}, {goimap.UIDSetNum(1, 99), part(goimap.PartSpecifierHeader)}}).Wait()
				if err != nil {
					return err
				}
				var got []string
				for _, m := range data {
					got = append(got, fmt.Sprintf("%d %.13q", m.UID, m.BodySection[0].Bytes))
				}
				if want := []string{`1 "From: Ann <an"`, `2 "The body of n"`, `7 "The body of a"`}; !slices.Equal(got, want) {
					t.Errorf("fetched %q, want %q", got, want)
				}
				if !data[2].InternalDate.Equal(date) {
					t.Errorf("dated %v", data[2].InternalDate)
				}
				return nil
			})
		})
	}
}
