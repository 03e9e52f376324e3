package imap

import (
	"context"
	"regexp"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest"
)

func TestOwnIsDecidedByTheLongestBeginning(t *testing.T) {
	for told, folders := range map[string]map[string]bool{
		`(("" "/")) (("shared/" "/")) (("Public/" "/"))`: {"INBOX": true, "inbox": true, "Archive": true, "Publicity": true, "Public/board": false, "public/Board": false,
			"Public": false, "Public//board": false, "shared/eve/INBOX": false, "#news.x": false},
		`(("INBOX." ".")) NIL (("#shared." ".")("shared." "."))`:                   {"INBOX": true, "INBOX.Sent": true, "inbox.Sent": true, "shared.x": false, "#shared.x": false, "Else": false},
		`(("INBOX." ".")) (("user." ".")) (("" "."))`:                              {"INBOX.a": true, "user.eve": false, "board": false},
		`(("" "/" "X-PARAM" ("a" "b"))("#mh/" "/")) NIL (("&ANY-ffentlich/" "/"))`: {"a": true, "#mh/a": true, "#mhx": false, "Öffentlich/a": false, "öffentlich": false},
		"(({0}\r\n \"/\")) ((\"~\" \"/\")) NIL":                                    {"a": true, "~eve/a": false},
		`NIL NIL NIL`:                                                              {"a": true, "Public/a": false, "Public Folders.a": false, "Shared Folders": false, "Other Users/eve": false, "user.eve": false, "#x": false, "Publicity": true, "INBOX.user": true},
		`NIL NIL (("" "/"))`:                                                       {"INBOX": true, "a": false},
	} {
		n, ok := readNamespaces(told)
		if !ok {
			t.Errorf("%s is not read", told)
		}
		for folder, own := range folders {
			if n.Own(folder) != own {
				t.Errorf("%s: %s own: %v", told, folder, !own)
			}
		}
	}
	for _, broken := range []string{"", `(("" "/")) NIL`, `(("" "/") NIL NIL`, `((x "/")) NIL NIL`, `(("&&" "/")) NIL NIL`, `((""`, `("") NIL NIL`} {
		if n, ok := readNamespaces(broken); ok {
			t.Errorf("%s is read as %+v", broken, n)
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
			_, err = s.Status(folder, &goimap.StatusOptions{NumMessages: true}).Wait()
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
