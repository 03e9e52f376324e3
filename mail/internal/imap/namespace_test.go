package imap

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

func TestOwnIsDecidedByTheLongestBeginning(t *testing.T) {
	for _, lines := range readCases(t, "namespaces.txt") {
		var n Namespaces
		for _, line := range lines {
			what, text, _ := strings.Cut(line, " ")
			text = unquoted(t, strings.TrimLeft(text, " "))
			switch what {
			case "told", "broken":
				var ok bool
				if n, ok = readNamespaces(text); ok != (what == "told") {
					t.Errorf("%s is read as %+v, %v", text, n, ok)
				}
			default:
				if own := n.Own(text); own != (what == "own") {
					t.Errorf("%s: %s own: %v", lines[0], text, own)
				}
			}
		}
	}
}

func TestNamespacesAreAskedForOnceAndTogetherWithOthers(t *testing.T) {
	t.Parallel()
	d := servertest.Dovecot(t, servertest.Config{ACL: true, Others: true})
	proxy := servertest.NewProxy(t, d.IMAPSAddr(), servertest.ProxyOptions{})
	s := dial(t, dovecotConfig(d, proxy.Port, "ann"))
	for _, flights := range []int{1, 0} {
		proxy.Reset()
		_ = s.Use(t.Context(), func(context.Context, *Session) error {
			var told *Pending[Namespaces]
			s.Together(func() { told = s.Namespaces() })
			n, err := told.Wait()
			if err != nil || !n.Own("Archive") || n.Own("Public/board") || n.Own("shared/eve/Team") {
				t.Errorf("%+v, %v", n, err)
			}
			return nil
		})
		if got := proxy.Stats().Flights; got != flights {
			t.Errorf("%d flights, want %d", got, flights)
		}
	}
}

// A hidden folder is answered as one that does not exist, by its own name.
func TestHiddenFoldersHaveNoNameOnTheWire(t *testing.T) {
	t.Parallel()
	d, user := servertest.SharedDovecot(t), servertest.User("ann")
	d.Deliver(t, user, "Secret", letter("one"))
	d.Deliver(t, user, "INBOX", letter("two"))
	times := regexp.MustCompile(` \([^)]* secs\)\.`)
	cfg := dovecotConfig(d, d.IMAPSPort, user)
	cfg.Hides = func(folder string) bool { return folder == "Secret" }
	p := newPool(t, PoolOptions{Config: cfg})
	look := func(folder string) (text string) {
		_ = p.Change(t.Context(), "", CopyMessages, func(_ context.Context, s *Session) error {
			_, err := s.Examine(folder).Wait()
			text = err.(*wire.Error).Text
			_, err = s.Status(folder).Wait()
			text += "|" + err.(*wire.Error).Text
			_, _ = s.Examine("INBOX").Wait()
			_, err = s.Copy(UIDs(1), folder).Wait()
			text += "|" + err.(*wire.Error).Text
			return nil
		})
		return times.ReplaceAllString(text, "")
	}
	secret, missing := look("Secret"), look("Nosuch")
	if secret != strings.ReplaceAll(missing, "Nosuch", "Secret") || !strings.Contains(secret, "Mailbox doesn't exist: Secret|") {
		t.Errorf("hidden  %s\nmissing %s", secret, missing)
	}
	mustLend(t, p, "", func(_ context.Context, s *Session) error {
		s.Reveal()
		f, err := s.Examine("Secret").Wait()
		if err != nil || f.Exists != 1 {
			t.Errorf("revealed: %+v, %v", f, err)
		}
		return err
	})
	mustLend(t, p, "", func(_ context.Context, s *Session) error {
		if f, open := s.Selected(); open {
			t.Errorf("%+v is still open", f)
		}
		return nil
	})
}
