package imap

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// A server that knows no charset is asked once more without one, for the part of the text that
// is ASCII; what it refuses for another reason stays refused. Where it refuses before it
// has seen the text, the search comes again on another connection.
func TestSearchWithoutACharsetWhereItIsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range testmain.Table[struct {
		Name, Subject, Answer, Caps string
		Commands                    int
		Ok                          bool
	}](t, "testdata/cases/charset.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			sv := scripted.Serve(t, func(s *scripted.Conn) {
				s.Greet("IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH" + tc.Caps)
				for {
					tag, command := s.Expect()
					if !strings.HasPrefix(command, "UID SEARCH") {
						s.Send(strings.ReplaceAll(scripted.Selected, "TAG", tag))
						continue
					}
					mu.Lock()
					seen = append(seen, command)
					mu.Unlock()
					accepted := tc.Ok && !strings.Contains(command, "CHARSET")
					if strings.HasSuffix(command, "+}") { // the text follows
						if text := s.Line(); text != tc.Subject {
							t.Errorf("searched for %q", text)
						}
					} else if accepted && !strings.HasSuffix(command, "SUBJECT "+strconv.Quote(asciiPart(tc.Subject))) {
						t.Errorf("searched with %q", command)
					}
					if accepted {
						s.Send("* ESEARCH (TAG \"" + tag + "\") UID ALL 3\r\n" + tag + " OK done\r\n")
					} else {
						s.Send(tag + " " + tc.Answer + "\r\n")
					}
				}
			})
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			for range 2 { // the second time it is known
				var set UIDSet
				err := p.Lend(t.Context(), "", func(_ context.Context, s *Session) (err error) {
					if _, err = s.Examine("INBOX").Wait(); err == nil {
						set, err = s.Search(HeaderHolds("Subject", tc.Subject)).Wait()
					}
					return err
				})
				if (err == nil) != tc.Ok || tc.Ok && !set.Contains(3) {
					t.Errorf("%v, %v", set, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(seen) != tc.Commands || strings.Contains(seen[0], " CHARSET UTF-8 SUBJECT") == (tc.Name == "ASCII") {
				t.Errorf("searched with %q", seen)
			}
		})
	}
}
