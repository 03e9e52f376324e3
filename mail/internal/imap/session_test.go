package imap

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
)

func dial(t *testing.T, cfg Config) *Session {
	t.Helper()
	s, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestLoginOverTLSAndSTARTTLS(t *testing.T) {
	settle(t)
	ca := newAuthority(t)
	cert := ca.issue(t, time.Now().Add(time.Hour), "mail.example.org")
	after := func(s *script) {
		for {
			tag, cmd := s.expect()
			switch {
			case strings.HasPrefix(cmd, "CAPABILITY"):
				s.send("* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR MOVE\r\n" + tag + " OK\r\n")
			case cmd == "AUTHENTICATE PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00ann\x00s3cret-pass")):
				s.send(tag + " OK in\r\n")
			case cmd == "NOOP":
				s.send(tag + " OK\r\n")
			default:
				s.send(tag + " BAD unknown\r\n")
			}
		}
	}
	for security, run := range map[wire.Security]func(*script){
		wire.TLS: overTLS(cert, func(s *script) { s.send("* OK ready\r\n"); after(s) }),
		wire.StartTLS: func(s *script) {
			// What is claimed in the clear does not count afterwards.
			s.send("* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=XSTEAL LOGINDISABLED] ready\r\n")
			tag, _ := s.expect()
			s.send(tag + " OK begin\r\n")
			overTLS(cert, after)(s)
		},
	} {
		cfg := serve(t, run).config(security)
		cfg.RootCAs, cfg.ServerName = ca.pool, "mail.example.org"
		s := dial(t, cfg)
		if err := s.Use(t.Context(), noop); err != nil {
			t.Errorf("%s: %v", security, err)
		}
		if !s.Has("MOVE") || s.Has("STARTTLS") || s.Has("AUTH=XSTEAL") {
			t.Errorf("%s: capabilities %v", security, s.Capabilities())
		}
	}
}

func TestLoginWays(t *testing.T) {
	settle(t)
	tests := []struct {
		name, caps, password string
		want                 []string
		answers              []string
	}{
		{"PLAIN at once", "AUTH=PLAIN SASL-IR", "pw", []string{"AUTHENTICATE PLAIN AGFubgBwdw=="}, []string{"OK in"}},
		{"PLAIN when asked", "AUTH=PLAIN", "pw", []string{"AUTHENTICATE PLAIN", "AGFubgBwdw=="}, []string{"+ ", "OK in"}},
		{"PLAIN before LOGIN", "AUTH=PLAIN AUTH=LOGIN LOGINDISABLED SASL-IR", "pw", []string{"AUTHENTICATE PLAIN AGFubgBwdw=="}, []string{"OK in"}},
		{"LOGIN", "", `p"w\`, []string{`LOGIN "ann" "p\"w\\"`}, []string{"OK in"}},
		{"LOGIN by SASL", "AUTH=LOGIN LOGINDISABLED SASL-IR", "pw", []string{"AUTHENTICATE LOGIN", "YW5u", "cHc="}, []string{"+ ", "+ AAAA", "OK in"}},
		{"LOGIN with one round trip", "AUTH=LOGIN", "pw", []string{`LOGIN "ann" "pw"`}, []string{"OK in"}},
		{"LOGIN with a literal", "", "pä", []string{`LOGIN "ann" {3}`, "pä"}, []string{"+ go", "OK in"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan string, 8)
			cfg := serve(t, func(s *script) {
				s.send("* OK [CAPABILITY IMAP4rev1 " + tc.caps + "] ready\r\n")
				var tag string
				for i, a := range tc.answers {
					first, rest := s.expect()
					if i == 0 {
						tag = first
						got <- rest
					} else {
						got <- strings.TrimSuffix(first+" "+rest, " ")
					}
					if strings.HasPrefix(a, "+") {
						s.send(a + "\r\n")
					} else {
						s.send(tag + " " + a + "\r\n")
					}
				}
				tag, _ = s.expect()
				s.send("* CAPABILITY IMAP4rev1\r\n" + tag + " OK\r\n")
				s.drain()
			}).config(wire.Plaintext)
			cfg.Login = withPassword(tc.password)
			dial(t, cfg)
			for _, want := range tc.want {
				if g := <-got; g != want {
					t.Errorf("sent %q, want %q", g, want)
				}
			}
		})
	}
}

func TestTokenThatIsRefused(t *testing.T) {
	settle(t)
	for mechanism, dummy := range map[string]string{"XOAUTH2": "", "OAUTHBEARER": "AQ=="} {
		cfg := serve(t, func(s *script) {
			s.send("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN AUTH=" + mechanism + " SASL-IR] ready\r\n")
			tag, cmd := s.expect()
			if !strings.HasPrefix(cmd, "AUTHENTICATE "+mechanism+" ") {
				s.send("* BYE sent " + cmd)
				return
			}
			s.send("+ " + base64.StdEncoding.EncodeToString([]byte(`{"status":"401"}`)) + "\r\n")
			if got, _ := s.expect(); got != dummy {
				s.send("* BYE sent " + got)
				return
			}
			s.send(tag + " NO [AUTHENTICATIONFAILED] bad " + strings.Fields(cmd)[2] + "\r\n")
			s.drain()
		}).config(wire.Plaintext)
		cfg.Login = withToken("t0ken")
		_, err := Dial(t.Context(), cfg)
		e := wantError(t, err, wire.KindAuth, wire.StageAuth)
		if e.Code != "AUTHENTICATIONFAILED" || !e.Permanent || strings.Contains(e.Error(), "bad") {
			t.Errorf("error %v", e)
		}
	}
}

// What must not be sent, or cannot, is not, and counts as no refusal of the server.
func TestCredentialsThatDoNotLeave(t *testing.T) {
	settle(t)
	for name, tc := range map[string]struct {
		caps string
		c    wire.Credential
	}{
		"a token for a server of passwords": {"AUTH=PLAIN AUTH=LOGIN", wire.Credential{Token: "t0ken"}},
		"a password for a server of tokens": {"AUTH=XOAUTH2 AUTH=OAUTHBEARER LOGINDISABLED", wire.Credential{Password: "pw"}},
		"a token that ends its field":       {"AUTH=XOAUTH2", wire.Credential{Token: "t0ken\x01\x01"}},
		"a password of two lines":           {"", wire.Credential{Password: "pw\r\nL2 DELETE INBOX"}},
		"a password with a zero byte":       {"AUTH=PLAIN", wire.Credential{Password: "pw\x00"}},
		"neither":                           {"AUTH=PLAIN", wire.Credential{}},
		"both":                              {"AUTH=PLAIN", wire.Credential{Password: "pw", Token: "t0ken"}},
	} {
		sent := make(chan string, 1)
		cfg := serve(t, func(s *script) {
			s.send("* OK [CAPABILITY IMAP4rev1 SASL-IR " + tc.caps + "] ready\r\n")
			b, _ := io.ReadAll(s.br)
			sent <- string(b)
		}).config(wire.Plaintext)
		cfg.Login.Credential = func(context.Context) (wire.Credential, error) { return tc.c, nil }
		cfg.Login.Refused = func(context.Context, wire.Credential) bool {
			t.Errorf("%s: counts as refused", name)
			return false
		}
		_, err := Dial(t.Context(), cfg)
		e := wantError(t, err, wire.KindAuth, wire.StageAuth)
		if got := <-sent; got != "" || !e.Permanent || strings.Contains(e.Error(), "t0ken") || strings.Contains(e.Error(), "pw") {
			t.Errorf("%s: sent %q, %v", name, got, e)
		}
	}
}

// A server that is only busy did not refuse the password.
func TestBusyLoginIsNoWrongPassword(t *testing.T) {
	settle(t)
	cfg := serve(t, func(s *script) {
		s.send("* OK [CAPABILITY " + scriptCaps + "] ready\r\n")
		tag, _ := s.expect()
		s.send(tag + " NO [UNAVAILABLE] later\r\n")
		s.drain()
	}).config(wire.Plaintext)
	_, err := Dial(t.Context(), cfg)
	if e := wantError(t, err, wire.KindRefused, wire.StageAuth); e.Permanent {
		t.Error("counts as permanent")
	}
}

func TestSelectedFollowsTheServer(t *testing.T) {
	settle(t)
	cfg := serve(t, func(s *script) {
		s.login()
		s.examine()
		for _, more := range []string{"* 9 EXISTS\r\n", "* 1 EXPUNGE\r\n* 1 EXPUNGE\r\n", "* OK [CLOSED] gone\r\n"} {
			tag, _ := s.expect()
			s.send(more + tag + " OK done\r\n")
		}
		s.drain()
	}).config(wire.Plaintext)
	s := dial(t, cfg)
	err := s.Use(t.Context(), func(ctx context.Context, s *Session) error {
		f, err := s.Examine("inbox").Wait()
		if err != nil || f != (Folder{Name: "INBOX", UIDValidity: 7, UIDNext: 4, Exists: 3}) {
			return fmt.Errorf("examined %+v: %v", f, err)
		}
		for _, want := range []uint32{9, 7} {
			if err := noop(ctx, s); err != nil {
				return err
			}
			if f, ok := s.Selected(); !ok || f.Exists != want {
				return fmt.Errorf("selected %+v, want %d messages", f, want)
			}
		}
		if err := noop(ctx, s); err != nil {
			return err
		}
		if f, ok := s.Selected(); ok {
			return fmt.Errorf("still selected %+v", f)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The library loses these: an answer displaced by a flag change that came first,
// one whose UID stands behind a literal, one in another order than asked.
func TestFetchFindsEveryAnswer(t *testing.T) {
	settle(t)
	part := func(uid int) string { return fmt.Sprintf("BODY[TEXT] {5}\r\nmsg%02d", uid) }
	answers := map[string]string{
		"flag change first": "* 2 FETCH (FLAGS (\\Seen))\r\n* 1 FETCH (UID 11 " + part(11) + ")\r\n* 2 FETCH (UID 12 " + part(12) + ")\r\n",
		"with UID as well":  "* 2 FETCH (UID 12 FLAGS (\\Seen))\r\n* 1 FETCH (UID 11 " + part(11) + ")\r\n* 2 FETCH (UID 12 " + part(12) + ")\r\n",
		"UID last":          "* 1 FETCH (" + part(11) + " UID 11)\r\n* 2 FETCH (" + part(12) + " UID 12)\r\n",
		"flag change last":  "* 2 FETCH (UID 12 " + part(12) + ")\r\n* 1 FETCH (UID 11 " + part(11) + ")\r\n* 2 FETCH (UID 12 FLAGS (\\Seen))\r\n",
	}
	for name, answer := range answers {
		for kind, set := range map[string]goimap.NumSet{"by UID": goimap.UIDSetNum(11, 12), "by number": goimap.SeqSetNum(1, 2)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				cfg := serve(t, func(s *script) {
					s.login()
					for {
						tag, cmd := s.expect()
						if !strings.Contains(cmd, "BODY.PEEK[TEXT]") {
							s.send(tag + " BAD not a peek\r\n")
							continue
						}
						s.send(answer + tag + " OK done\r\n")
					}
				}).config(wire.Plaintext)
				s := dial(t, cfg)
				for range 3 {
					err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
						got, err := s.Fetch(set, goimap.FetchOptions{Flags: true, BodySection: []*goimap.FetchItemBodySection{{Specifier: goimap.PartSpecifierText}}}).Wait()
						if err != nil {
							return err
						}
						var text strings.Builder
						for _, m := range got {
							fmt.Fprintf(&text, "%d:", m.UID)
							for _, b := range m.BodySection {
								text.Write(b.Bytes)
							}
							text.WriteString(" ")
						}
						if text.String() != "11:msg11 12:msg12 " {
							return fmt.Errorf("got %q", text.String())
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// Commands that were started leave before the first answer is read.
func TestCommandsArePipelined(t *testing.T) {
	settle(t)
	cfg := serve(t, func(s *script) {
		s.login()
		var tags []string
		for range 3 {
			tag, _ := s.expect()
			tags = append(tags, tag)
		}
		s.send("* 1 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n" + tags[0] + " OK\r\n" + tags[1] + " OK\r\n" + tags[2] + " OK\r\n")
		s.drain()
	}).config(wire.Plaintext)
	s := dial(t, cfg)
	err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
		e, n, f := s.Examine("A"), s.Noop(), s.Fetch(goimap.UIDSetNum(1), goimap.FetchOptions{Flags: true})
		if _, err := e.Wait(); err != nil {
			return err
		}
		if err := n.Wait(); err != nil {
			return err
		}
		_, err := f.Wait()
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Commands that leave together are one write, unless one of them has to wait for
// the server on its way.
func TestTogetherIsOneWrite(t *testing.T) {
	settle(t)
	got := make(chan string, 2)
	cfg := serve(t, func(s *script) {
		s.send("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR ESEARCH] ready\r\n")
		tag, _ := s.expect()
		s.send(tag + " OK [CAPABILITY IMAP4rev1 ESEARCH] in\r\n")
		buf := make([]byte, 4096)
		n, _ := s.Read(buf)
		got <- string(buf[:n])
		s.send("* 9 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\nT1 OK\r\n* ESEARCH (TAG \"T2\") COUNT 4\r\nT2 OK\r\nT3 OK\r\n")
		_, line := s.expect() // SEARCH CHARSET UTF-8 SUBJECT {n}
		got <- line
		s.send("+ go\r\n")
		s.expect()
		s.send("* ESEARCH (TAG \"T4\") UID ALL 2:3\r\nT4 OK\r\n")
		s.drain()
	}).config(wire.Plaintext)
	s := dial(t, cfg)
	err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
		var e *Examining
		var c *Counting
		var f *Fetching
		s.Together(func() {
			e, c = s.Examine("A"), s.Count(&goimap.SearchCriteria{UID: []goimap.UIDSet{goimap.UIDSetNum(1)}})
			f = s.Fetch(goimap.UIDSetNum(1), goimap.FetchOptions{Flags: true})
		})
		if box, err := e.Wait(); err != nil || box.Exists != 9 {
			return fmt.Errorf("%+v %w", box, err)
		}
		if n, err := c.Wait(); err != nil || n != 4 {
			return fmt.Errorf("%d %w", n, err)
		}
		if _, err := f.Wait(); err != nil {
			return err
		}
		var x *Searching
		s.Together(func() {
			x = s.Search(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "Subject", Value: "Grüße"}}})
		})
		set, err := x.Wait()
		if err != nil || set.String() != "2:3" {
			return fmt.Errorf("%v %w", set, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if first := <-got; strings.Count(first, "\r\n") != 3 {
		t.Errorf("first write %q", first)
	}
	if line := <-got; !strings.HasSuffix(line, "{7}") {
		t.Errorf("then %q", line)
	}
}

// A connection can end between two commands, and in the middle of several that are
// to leave in one write. None of them may wait for an answer that cannot come.
func TestCommandsOnAConnectionThatEndedFail(t *testing.T) {
	for _, test := range []struct {
		name  string
		start func(s *Session, waits chan<- func() error, end func())
	}{
		{"alone", func(s *Session, waits chan<- func() error, end func()) {
			end()
			waits <- s.Noop().Wait
			waits <- func() error { _, err := s.Examine("A").Wait(); return err }
		}},
		{"together", func(s *Session, waits chan<- func() error, end func()) {
			end()
			s.Together(func() {
				f, n := s.Fetch(goimap.UIDSetNum(1), goimap.FetchOptions{Flags: true}), s.Noop()
				waits <- func() error { _, err := f.Wait(); return err }
				waits <- n.Wait
			})
		}},
		{"between two that leave together", func(s *Session, waits chan<- func() error, end func()) {
			s.Together(func() {
				first := s.Noop()
				end()
				l := s.List("*", nil)
				waits <- first.Wait
				waits <- func() error { _, err := l.Wait(); return err }
			})
		}},
		{"with a literal", func(s *Session, waits chan<- func() error, end func()) {
			end()
			s.Together(func() {
				x := s.Search(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "Subject", Value: "Grüße"}}})
				waits <- func() error { _, err := x.Wait(); return err }
				waits <- s.Noop().Wait
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			settle(t)
			hangUp := make(chan struct{})
			cfg := serve(t, func(s *script) {
				s.login()
				<-hangUp
			}).config(wire.Plaintext)
			s := dial(t, cfg)
			err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
				waits := make(chan func() error, 2)
				test.start(s, waits, func() {
					close(hangUp)
					<-s.client.Closed()
				})
				for range 2 {
					wait := <-waits
					ended := make(chan error, 1)
					go func() { ended <- wait() }()
					select {
					case err := <-ended:
						var e *wire.Error
						if !errors.As(err, &e) || e.Kind != wire.KindClosed || !e.OutOfStep {
							t.Errorf("got %+v, want that the connection was closed", err)
						}
					case <-time.After(30 * time.Second):
						t.Fatal("a command waits for an answer on a connection that has ended")
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFolderNamesAreCheckedBeforeTheyLeave(t *testing.T) {
	settle(t)
	sent := make(chan string, 1)
	cfg := serve(t, func(s *script) {
		s.login()
		b, _ := io.ReadAll(s.br)
		sent <- string(b)
	}).config(wire.Plaintext)
	s := dial(t, cfg)
	for _, name := range []string{"", "a\r\nb LOGOUT", "a\nb", "a\x00", "a\x7f", "a\u0085", strings.Repeat("x", 1025)} {
		err := s.Use(t.Context(), func(_ context.Context, s *Session) error {
			if _, err := s.Status(name, nil).Wait(); err == nil {
				t.Errorf("STATUS %q passed", name)
			}
			if _, err := s.List(name, nil).Wait(); err == nil {
				t.Errorf("LIST %q passed", name)
			}
			_, err := s.Examine(name).Wait()
			return err
		})
		wantError(t, err, wire.KindRefused, StageExamine)
	}
	_ = s.Close()
	if got := <-sent; got != "" {
		t.Errorf("sent %q", got)
	}
}
