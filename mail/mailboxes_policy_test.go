package mail_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

var dayOne = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func allowing(entries ...string) func(*mail.Account) {
	return func(a *mail.Account) { a.AllowIn = mail.AllowList{Enabled: true, Entries: entries} }
}

// A message that the policy hides is in no list, no count and no answer, and
// asking for it gives, byte for byte, what asking for nothing gives.
func TestHiddenMessagesAreNowhere(t *testing.T) {
	for _, e := range endpoints(t) {
		t.Run(e.name, func(t *testing.T) {
			b := open(t, e, "hidden", allowing("friend@example.org"))
			var shown, hidden []uint32
			for i := range 40 {
				l := letter{from: "Friend <friend@example.org>", subject: "s", date: dayOne.AddDate(0, 0, i).Format(time.RFC1123Z), received: dayOne}
				if i%4 != 0 {
					l.from = []string{"evil@example.net", "friend@example.org, evil@example.net", `"friend@example.org" <evil@example.net>`}[i%3]
				}
				if i%8 == 0 {
					l.flags = []imap.Flag{imap.FlagSeen}
				}
				u := b.add("INBOX", l)[0]
				if i%4 == 0 {
					shown = append(shown, u)
				} else {
					hidden = append(hidden, u)
				}
			}
			for range 2 { // cold, warm
				for _, q := range []mail.ListQuery{{}, {Limit: 10}, {Limit: 9}, {Since: dayOne}, {Until: dayOne.AddDate(1, 0, 0)}, {BeforeUID: 1000}} {
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
				if p := b.list(mail.ListQuery{Unread: true}); len(p.Messages) != 5 {
					t.Errorf("%d unread", len(p.Messages))
				}
			}
			validity := b.list(mail.ListQuery{}).UIDValidity
			for _, u := range hidden {
				for _, v := range []uint32{0, validity} {
					ref, none := b.ref("INBOX", u), b.ref("INBOX", 1<<31)
					ref.UIDValidity, none.UIDValidity = v, v
					m, err := b.Get(t.Context(), ref, mail.GetQuery{})
					_, missing := b.Get(t.Context(), none, mail.GetQuery{})
					he, me := wantKind(t, err, mail.KindNotFound), wantKind(t, missing, mail.KindNotFound)
					if m != nil || he.Reason != "filtered" || me.Reason != "" {
						t.Fatalf("%+v: %v reason %q", m, err, he.Reason)
					}
					same := *he
					same.Reason = ""
					if same != *me || err.Error() != missing.Error() || errors.Unwrap(err) != nil {
						t.Fatalf("hidden %#v\nmissing %#v", *he, *me)
					}
				}
			}
			for _, u := range shown {
				if m := b.get("INBOX", u, mail.GetQuery{}); m.Subject != "s" {
					t.Errorf("%+v", m)
				}
			}
			if c := counts(t, b, "INBOX"); c == nil || *c != (mail.Counts{Messages: 10, Unread: 5, UIDValidity: validity}) {
				t.Errorf("counts %+v", c)
			}
		})
	}
}

func counts(t *testing.T, b *box, folder string) *mail.Counts {
	t.Helper()
	l, err := b.Folders(t.Context(), account, mail.FolderQuery{Counts: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Folders {
		if f.Name == folder {
			return f.Counts
		}
	}
	t.Fatalf("no folder %q in %+v", folder, l)
	return nil
}

func TestSubjectPatternHides(t *testing.T) {
	_, e := dovecot(t, servertest.Config{})
	b := open(t, e, "subject", func(a *mail.Account) { a.SubjectPattern = `\[ticket\]` })
	u := b.add("INBOX", letter{subject: "[ticket] 1"}, letter{subject: "private"}, letter{subject: "=?utf-8?q?=5Bticket=5D?= 2"})
	if got := uidsOf(b.list(mail.ListQuery{OldestFirst: true})); !slices.Equal(got, []uint32{u[0], u[2]}) {
		t.Errorf("%v", got)
	}
	_, err := b.Get(t.Context(), b.ref("INBOX", u[1]), mail.GetQuery{})
	wantKind(t, err, mail.KindNotFound)
}

// What a sender does to the header to be seen as somebody else does not help.
func TestHeadersThatHideTheirSender(t *testing.T) {
	s, e := dovecot(t, servertest.Config{})
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
		s.Deliver(t, "tricks", folder, []byte(raw))
		for _, q := range []mail.ListQuery{{Folder: folder}, {Folder: folder, Unread: true}, {Folder: folder, Full: true}} {
			if p := b.list(q); len(p.Messages) > 0 || len(p.Issues) > 0 || p.HasMore {
				t.Errorf("%s: listed %+v", name, p)
			}
		}
		_, err := b.Get(t.Context(), b.ref(folder, 1), mail.GetQuery{})
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
	if testing.Short() {
		t.Skip("delivers 20,100 messages")
	}
	s, e := dovecot(t, servertest.Config{})
	b := open(t, e, "many", allowing("friend@example.org"))
	raw := make([][]byte, 20_100)
	for i := range raw {
		raw[i] = []byte(fmt.Sprintf("From: evil%d@example.net\r\nSubject: x\r\n\r\nb\r\n", i))
	}
	raw[0] = []byte("From: friend@example.org\r\nSubject: first\r\n\r\nb\r\n")
	raw[len(raw)-1] = []byte("From: friend@example.org\r\nSubject: last\r\n\r\nb\r\n")
	s.Deliver(t, "many", "INBOX", raw...)
	for range 2 { // cold, and where the folder is open
		p := b.list(mail.ListQuery{})
		if len(p.Messages) != 2 || p.Messages[0].Subject != "last" || p.Messages[1].Subject != "first" || p.HasMore || len(p.Issues) != 0 {
			t.Errorf("%+v", p)
		}
	}
	if p := b.list(mail.ListQuery{BeforeUID: 200}); len(p.Messages) != 1 || p.Messages[0].Subject != "first" || p.HasMore || len(p.Issues) != 0 {
		t.Errorf("%+v", p)
	}
	if p := b.list(mail.ListQuery{Unread: true, Limit: 1, OldestFirst: true}); len(p.Messages) != 1 || p.Messages[0].Subject != "first" || !p.HasMore {
		t.Errorf("%+v", p)
	}
	if c := counts(t, b, "INBOX"); c == nil || c.Messages != 2 || c.Unread != 2 {
		t.Errorf("counted %+v", c)
	}
}

func Test001_3_FoldersTellTheirRoleAndCounts(t *testing.T) {
	for _, e := range endpoints(t) {
		t.Run(e.name, func(t *testing.T) {
			b := open(t, e, "folders")
			for _, f := range []string{"Projekte/Bücher", "Archiv"} {
				b.folder(f)
			}
			b.add("INBOX", letter{subject: "1"}, letter{subject: "2", flags: []imap.Flag{imap.FlagSeen}})
			b.add("Projekte/Bücher", letter{subject: "3"})
			l, err := b.Folders(t.Context(), account, mail.FolderQuery{Counts: true})
			if err != nil || len(l.Issues) > 0 || l.Truncated {
				t.Fatalf("%+v %v", l, err)
			}
			found := map[string]mail.Folder{}
			for _, f := range l.Folders {
				found[f.Name] = f
				if (f.Counts == nil) != f.NoSelect() {
					t.Errorf("%+v", f)
				}
			}
			inbox, books := found["INBOX"], found[b.in("Projekte/Bücher")]
			if inbox.Role != "inbox" || inbox.Delimiter != map[bool]string{true: ".", false: "/"}[b.root != ""] || inbox.Counts.Messages != 2 || inbox.Counts.Unread != 1 || inbox.Counts.UIDNext != 3 || inbox.Counts.UIDValidity == 0 {
				t.Errorf("%+v %+v", inbox, inbox.Counts)
			}
			if books.Counts == nil || books.Counts.Messages != 1 {
				t.Errorf("%+v of %+v", books, l.Folders)
			}
			if e.name == "dovecot" && found["Sent"].Role != "sent" {
				t.Errorf("%+v", found["Sent"])
			}
			if l, err = b.Folders(t.Context(), account, mail.FolderQuery{}); err != nil || l.Folders[0].Counts != nil {
				t.Errorf("%+v %v", l, err)
			}
			if l, err = b.Folders(t.Context(), account, mail.FolderQuery{Limit: 1}); err != nil || len(l.Folders) != 1 || !l.Truncated {
				t.Errorf("%+v %v", l, err)
			}
			if l, err = b.Folders(t.Context(), account, mail.FolderQuery{Pattern: b.in("Arch") + "*"}); err != nil || !slices.ContainsFunc(l.Folders, func(f mail.Folder) bool { return f.Name == b.in("Archiv") }) || slices.ContainsFunc(l.Folders, func(f mail.Folder) bool { return f.Name == "INBOX" }) {
				t.Errorf("%+v %v", l, err)
			}
		})
	}
}
