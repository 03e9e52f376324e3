package imap

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// A server that knows no charset is asked once more without one, and gets the
// same bytes; what it refuses for another reason stays refused.
func TestSearchWithoutACharsetWhereItIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		subject, answer string
		commands        int
		ok              bool
	}{
		"BADCHARSET": {"Grüße", "NO [BADCHARSET (US-ASCII)] no", 2, true},
		"a bare BAD": {"Grüße", "BAD what is CHARSET", 2, true},
		"ASCII":      {"plain", "NO no", 1, false},
		"still no":   {"Grüße still", "NO no", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan string, 8)
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				s.Login()
				s.Examine()
				for {
					tag, command := s.Expect()
					if !strings.HasPrefix(command, "UID SEARCH") {
						return
					}
					if strings.HasSuffix(command, "+}") { // the text follows
						_, rest := s.Expect()
						command += rest
					}
					seen <- command
					if tc.ok && !strings.Contains(command, "CHARSET") {
						s.Send("* ESEARCH (TAG \"" + tag + "\") UID ALL 3\r\n" + tag + " OK done\r\n")
						continue
					}
					s.Send(tag + " " + tc.answer + "\r\n")
				}
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			var set goimap.UIDSet
			err := p.Lend(t.Context(), "", func(_ context.Context, s *Session) error {
				if _, err := s.Examine("INBOX").Wait(); err != nil {
					return err
				}
				var err error
				set, err = s.Search(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "Subject", Value: tc.subject}}}).Wait()
				return err
			})
			if (err == nil) != tc.ok || tc.ok && !set.Contains(3) || len(seen) != tc.commands {
				t.Errorf("%v, %v after %d searches", set, err, len(seen))
			}
			if first := <-seen; strings.Contains(first, "CHARSET") == (name == "ASCII") {
				t.Errorf("the first search is %q", first)
			}
		})
	}
}

// A server that has to be asked before text is sent to it can refuse the charset
// there. That costs the connection, and the search comes again on another.
func TestSearchWithoutACharsetWhereItIsRefusedBeforeTheText(t *testing.T) {
	scripted.Settle(t)
	const caps = "IMAP4rev1 SASL-IR AUTH=PLAIN"
	var mu sync.Mutex
	var seen []string
	refuse := true
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Greet(caps)
		for {
			tag, command := s.Expect()
			if !strings.HasPrefix(command, "UID SEARCH") {
				s.Send(strings.ReplaceAll(scripted.Selected, "TAG", tag))
				continue
			}
			mu.Lock()
			seen = append(seen, command)
			no := refuse || strings.Contains(command, "CHARSET")
			mu.Unlock()
			if no {
				s.Send(tag + " NO [BADCHARSET] no\r\n")
				continue
			}
			s.Send("+ go\r\n")
			s.Expect()
			s.Send("* SEARCH 2\r\n" + tag + " OK done\r\n")
		}
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	search := func() (set goimap.UIDSet, err error) {
		err = p.Lend(t.Context(), "", func(_ context.Context, s *Session) error {
			var e *Examining
			var x *Searching
			s.Together(func() {
				e = s.Examine("INBOX")
				x = s.Search(&goimap.SearchCriteria{Text: []string{"jörg"}})
			})
			_, err := e.Wait()
			found, searchErr := x.Wait()
			set = found
			return errors.Join(err, searchErr)
		})
		return set, err
	}
	_, err := search() // refused in either form
	wantError(t, err, wire.KindRefused, StageSearch)
	mu.Lock()
	if refuse = false; len(seen) != 2 || strings.Contains(seen[1], "CHARSET") {
		t.Errorf("searched with %q", seen)
	}
	mu.Unlock()
	set, err := search()
	if err != nil || set.String() != "2" {
		t.Errorf("%v, %v", set, err)
	}
}
