package mailbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

var dayOne = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func allowing(entries ...string) func(*mail.Account) {
	return func(a *mail.Account) { a.AllowIn = mail.AllowList{Enabled: true, Entries: entries} }
}

// A message that the policy hides is in no list, no count and no answer, and
// asking for it gives, byte for byte, what asking for nothing gives.
func TestHiddenMessagesAreNowhere(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "hidden", allowing("friend@example.org"))
		var shown []uint32
		for i := range 40 {
			l := letter{From: "Friend <friend@example.org>", Subject: "s", Date: dayOne.AddDate(0, 0, i).Format(time.RFC1123Z), Received: dayOne}
			if i%4 != 0 {
				l.From = []string{"evil@example.net", "friend@example.org, evil@example.net", `"friend@example.org" <evil@example.net>`}[i%3]
			}
			if i%8 == 0 {
				l.Flags = []imap.Flag{imap.FlagSeen}
			}
			u := b.Add("INBOX", l)[0]
			if i%4 == 0 {
				shown = append(shown, u)
			}
		}
		for range 2 { // cold, warm
			for _, q := range []mailbox.ListQuery{{}, {Limit: 10}, {Limit: 9}, {Since: dayOne}, {Until: dayOne.AddDate(1, 0, 0)}, {BeforeUID: 1000}} {
				q.OldestFirst = true
				p := b.list(q)
				want := shown
				if q.Limit == 9 {
					want = shown[:9]
				}
				if !slices.Equal(uidsOf(p), want) || p.HasMore != (q.Limit == 9) || len(p.Issues) > 0 || p.UIDNext != 0 {
					t.Errorf("%+v: %v more %v uidnext %d issues %v", q, uidsOf(p), p.HasMore, p.UIDNext, p.Issues)
				}
			}
			if p := b.list(mailbox.ListQuery{Unread: true}); len(p.Messages) != 5 {
				t.Errorf("%d unread", len(p.Messages))
			}
		}
		validity := b.list(mailbox.ListQuery{}).UIDValidity
		for _, u := range shown {
			if m := b.Read("INBOX", u, mailbox.GetQuery{}); m.Subject != "s" {
				t.Errorf("%+v", m)
			}
		}
		if c := counts(t, b, "INBOX"); c == nil || *c != (mailbox.Counts{Messages: 10, Unread: 5, UIDValidity: validity}) {
			t.Errorf("counts %+v", c)
		}
	})
}

func counts(t *testing.T, b *box, folder string) *mailbox.Counts {
	t.Helper()
	l, err := b.Folders(t.Context(), account, mailbox.FolderQuery{Counts: true})
	must(t, err)
	for _, f := range l.Folders {
		if f.Name == folder {
			return f.Counts
		}
	}
	t.Fatalf("no folder %q in %+v", folder, l)
	return nil
}

func TestSubjectPatternHides(t *testing.T) {
	b := onDovecot(t, "subject", func(a *mail.Account) { a.SubjectPattern = `\[ticket\]` })
	u := b.Add("INBOX", letter{Subject: "[ticket] 1"}, letter{Subject: "private"}, letter{Subject: "=?utf-8?q?=5Bticket=5D?= 2"})
	if got := uidsOf(b.list(mailbox.ListQuery{OldestFirst: true})); !slices.Equal(got, []uint32{u[0], u[2]}) {
		t.Errorf("%v", got)
	}
	mailtest.WantKind(t, second(b.Get(t.Context(), b.Ref("INBOX", u[1]), mailbox.GetQuery{})), mail.KindNotFound)
}

// What a sender does to the header to be seen as somebody else does not help.
func TestHeadersThatHideTheirSender(t *testing.T) {
	t.Parallel()
	s, e := mailtest.Shared(t, servertest.Config{})
	b := open(t, e, "tricks", allowing("friend@example.org"))
	tricks := map[string]string{
		"second From":            "From: friend@example.org\r\nFrom: evil@example.net\r\nSubject: x\r\n\r\nb\r\n",
		"From beyond the bound":  "From: friend@example.org\r\nX-Long: " + strings.Repeat("x", 70<<10) + "\r\nFrom: evil@example.net\r\n\r\nb\r\n",
		"From beyond many lines": "From: friend@example.org\r\n" + strings.Repeat("X-A: "+strings.Repeat("y", 900)+"\r\n", 80) + "From: evil@example.net\r\n\r\nb\r\n",
		"no From":                "Subject: x\r\n\r\nb\r\n",
		"From behind a bare CR":  "From: friend@example.org\r\nX: y\rFrom: evil@example.net\r\n\r\nb\r\n",
		"no header":              "\r\nFrom: friend@example.org\r\n",
		"empty":                  "",
	}
	for name, raw := range tricks {
		folder := strings.ReplaceAll(name, " ", "")
		s.Deliver(t, e.User("tricks"), folder, []byte(raw))
		for _, q := range []mailbox.ListQuery{{Folder: folder}, {Folder: folder, Unread: true}, {Folder: folder, Full: true}} {
			if p := b.list(q); len(p.Messages) > 0 || len(p.Issues) > 0 || p.HasMore {
				t.Errorf("%s: listed %+v", name, p)
			}
		}
		_, err := b.Get(t.Context(), b.Ref(folder, 1), mailbox.GetQuery{})
		var e *mail.Error
		if !errors.As(err, &e) || e.Reason != "filtered" {
			t.Errorf("%s: %v", name, err)
		}
		if c := counts(t, b, folder); c == nil || c.Messages != 0 || c.Unread != 0 {
			t.Errorf("%s: counts %+v", name, c)
		}
	}
}

// A folder too large to look at every message shows all that it may, and nothing
// tells that there is more.
func TestLargeFolderWithFewVisible(t *testing.T) {
	b := onDovecot(t, "many", allowing("friend@example.org"))
	b.SetBounds(100, 100, 100)
	crowd := slices.Repeat([]letter{{From: "evil@example.net"}}, 150)
	b.Add("INBOX", letter{From: "friend@example.org", Subject: "first"})
	b.Add("INBOX", crowd...)
	b.Add("INBOX", letter{From: "friend@example.org", Subject: "last"})
	for range 2 { // cold, and where the folder is open
		if p := b.list(mailbox.ListQuery{}); !slices.Equal(subjects(p), []string{"last", "first"}) || p.HasMore || len(p.Issues) != 0 {
			t.Errorf("%+v", p)
		}
	}
	if p := b.list(mailbox.ListQuery{BeforeUID: 120}); !slices.Equal(subjects(p), []string{"first"}) || p.HasMore || len(p.Issues) != 0 {
		t.Errorf("%+v", p)
	}
	if p := b.list(mailbox.ListQuery{Unread: true, Limit: 1, OldestFirst: true}); !slices.Equal(subjects(p), []string{"first"}) || !p.HasMore {
		t.Errorf("%+v", p)
	}
	if c := counts(t, b, "INBOX"); c == nil || c.Messages != 2 || c.Unread != 2 {
		t.Errorf("counted %+v", c)
	}
}
