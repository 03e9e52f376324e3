package mailbox_test

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// TestAMissingFolderIsToldWithThoseThatExist, by one round trip more.
func TestAMissingFolderIsToldWithThoseThatExist(t *testing.T) {
	e := dovecot(t)
	proxy := servertest.NewProxy(t, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), servertest.ProxyOptions{})
	b := open(t, e, "missing", writable, func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
	u := b.Add("INBOX", letter{Subject: "one"})[0]
	b.folder("Projects/2026")
	b.list(mailbox.ListQuery{})
	for name, do := range map[string]func() error{
		"list": func() error { return second(b.List(t.Context(), account, mailbox.ListQuery{Folder: "projects"})) },
		"get":  func() error { return second(b.Get(t.Context(), b.Ref("projects", 1), mailbox.GetQuery{})) },
		"raw":  func() error { return second(b.Raw(t.Context(), b.Ref("projects", 1), 10_000)) },
		"search": func() error {
			return second(b.Search(t.Context(), []string{account}, mailbox.SearchQuery{Folders: []string{"projects"}}))
		},
		"mark-read": func() error { return second(b.MarkRead(t.Context(), account, []mail.Ref{b.Ref("projects", 1)})) },
		"copy to": func() error {
			return second(b.Copy(t.Context(), account, []mail.Ref{b.Ref("INBOX", u)}, account, "projects"))
		},
		"move to": func() error { return second(b.Move(t.Context(), account, []mail.Ref{b.Ref("INBOX", u)}, "projects")) },
	} {
		e := mailtest.WantKind(t, do(), mail.KindNotFound)
		if e.Missing != "projects" || !slices.Contains(e.Known, "Projects/2026") || !slices.Contains(e.Known, "INBOX") || slices.Contains(e.Known, "Projects") {
			t.Errorf("%s: missing %q, known %q", name, e.Missing, e.Known)
		}
	}
	proxy.Reset()
	mailtest.WantKind(t, second(b.List(t.Context(), account, mailbox.ListQuery{Folder: "projects"})), mail.KindNotFound)
	if n := proxy.Stats().Flights; n > 2 {
		t.Errorf("%d round trips", n)
	}
}

// TestALostServerIsWorthAnotherTryLaterAndLater: as long as it has been away, within bounds,
// and from the beginning after it was back.
func TestALostServerIsWorthAnotherTryLaterAndLater(t *testing.T) {
	e := dovecot(t)
	b := open(t, e, "lost")
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	m := mailbox.New(mailbox.Options{Directory: b.Dir, Now: func() time.Time { return now }})
	defer m.Close()
	here := mailtest.Settings(e.Host, e.Port, e.User("lost"))
	gone := here
	gone.IMAP.Port = closedPort(t)
	for _, step := range []struct {
		after time.Duration
		gone  bool
		want  time.Duration
	}{
		{0, true, 5 * time.Second}, {time.Second, true, 5 * time.Second}, {39 * time.Second, true, 40 * time.Second}, {time.Hour, true, 5 * time.Minute},
		{0, false, 0}, {time.Hour, true, 5 * time.Second},
	} {
		now = now.Add(step.after)
		a := here
		if step.gone {
			a = gone
		}
		b.Dir.Set(a)
		_, err := m.List(t.Context(), account, mailbox.ListQuery{})
		if !step.gone {
			must(t, err)
			continue
		}
		if e := mailtest.WantKind(t, err, mail.KindConnection); e.Wait != step.want || !e.Retryable {
			t.Errorf("after %s: wait %s, want %s", step.after, e.Wait, step.want)
		}
	}
}
