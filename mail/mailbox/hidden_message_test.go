package mailbox_test

import (
	"context"
	"errors"
	"fmt"
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

// doors is every method that takes the name of a message.
var doors = map[string]func(c context.Context, b *box, r []mail.Ref) (any, error){
	"get": func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.Get(c, r[0], mailbox.GetQuery{}) },
	"get all": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Get(c, r[0], mailbox.GetQuery{Headers: mailbox.HeadersAll, HTML: true, AttachmentText: true, Content: true})
	},
	"get several": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.GetEach(c, account, r, mailbox.GetQuery{})
	},
	"raw": func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.Raw(c, r[0], 0) },
	"draft": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Draft(c, "mail send", r[0])
	},
	"original": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Original(c, "mail reply", r[0], mailbox.OriginalQuery{})
	},
	"attachment": func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.Attachment(c, r[0], "2") },
	"thread": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Thread(c, r[0], mailbox.ThreadQuery{})
	},
	"ack":       func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.Ack(c, account, r) },
	"mark-read": func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.MarkRead(c, account, r) },
	"flags": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.SetFlags(c, account, r, []string{"x"}, nil)
	},
	"copy": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Copy(c, account, r, "", b.In("Archive"))
	},
	"copy away": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Copy(c, account, r, "far", "INBOX")
	},
	"move": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Move(c, account, r, b.In("Archive"))
	},
	"archive": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.Do(c, mailbox.Batch{Op: "mail archive", Account: account, Refs: r, Action: mail.Action{Do: mail.DoArchive}})
	},
	"trash":     func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.Trash(c, account, r) },
	"delete":    func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.Delete(c, account, r) },
	"to delete": func(c context.Context, b *box, r []mail.Ref) (any, error) { return b.ToDelete(c, account, r) },
	"delete approved": func(c context.Context, b *box, r []mail.Ref) (any, error) {
		return b.DeleteApproved(c, account, r)
	},
}

// Of the doors those that only read, those that change a mailbox, and those that take several
// messages.
var (
	readers = []string{"get", "raw", "attachment", "thread", "original"}
	changes = []string{"flags", "mark-read", "copy", "move", "archive", "trash", "delete"}
	batches = append([]string{"get several", "ack", "copy away", "to delete", "delete approved"}, changes...)
)

func (b *box) through(door string, r ...mail.Ref) error {
	return second(doors[door](b.T.Context(), b, r))
}

// hiding makes a mailbox with shown and hidden messages and a second account that
// copies may go to.
func hiding(t *testing.T, e mailtest.Endpoint, user string) (b *box, shown, hidden uint32) {
	t.Helper()
	b = open(t, e, user, writable, allowing("bob@example.org"))
	far := b.Dir.Known[account]
	far.Name, far.AllowIn = "far", mail.AllowList{}
	b.Dir.Set(far)
	b.remembering()
	b.folders("Archive", "Trash")
	extra, body := mixed("Content-Type: text/plain\r\n\r\nsecret", attachment("secret.bin", 100))
	b.Add("INBOX", letter{Subject: "first"})
	hidden = b.Add("INBOX", letter{Subject: "secret", From: "eve@evil.example", Extra: extra, Body: body})[0]
	shown = b.Add("INBOX", letter{Subject: "shown", Extra: extra, Body: body})[0]
	return b, shown, hidden
}

// told is everything that an answer tells.
func told(v any, err error) string {
	var e *mail.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s|%s|%s|%s|%s|%v", e.Op, e.Kind, e.Stage, e.Message, e.Advice, e.Retryable)
	}
	return fmt.Sprintf("%+v %v", v, err)
}

// Whatever is asked about a hidden message, the answer is that for one that does
// not exist, and nothing happens to it.
func Test000_9_NoDoorLeadsToAHiddenMessage(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b, _, hidden := hiding(t, e, "doors")
		before := b.subjects("INBOX")
		for name, door := range doors {
			for range 2 { // also where the folder is open already
				got, hiddenErr := door(t.Context(), b, b.refs("INBOX", hidden))
				want, missingErr := door(t.Context(), b, b.refs("INBOX", 4711))
				if told(got, hiddenErr) != told(want, missingErr) {
					t.Errorf("%s:\nhidden  %s\nmissing %s", name, told(got, hiddenErr), told(want, missingErr))
				}
				// The audit is told why; the answer is not.
				if h, m := mailtest.WantKind(t, hiddenErr, mail.KindNotFound), mailtest.WantKind(t, missingErr, mail.KindNotFound); h.Reason != "filtered" || m.Reason != "" {
					t.Errorf("%s: the audit is told %q and %q", name, h.Reason, m.Reason)
				}
			}
		}
		if after := b.subjects("INBOX"); !slices.Equal(before, after) {
			t.Errorf("before %q, after %q", before, after)
		}
		b.want("Archive")
	})
}

// Beside a visible message a hidden one is an issue like any other that is not
// there, and nothing happens to it.
func Test000_9_NoBatchTakesAHiddenMessageAlong(t *testing.T) {
	e := dovecot(t)
	for _, name := range batches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := func(user string, other func(hidden uint32) uint32) string {
				b, shown, hidden := hiding(t, e, user+strings.ReplaceAll(name, " ", ""))
				v, err := doors[name](t.Context(), b, b.refs("INBOX", shown, other(hidden)))
				text := told(nil, err)
				var issues []mail.Issue
				switch a := v.(type) {
				case *mailbox.Changed:
					if a != nil {
						issues, text = a.Issues, fmt.Sprintf("%d of %d, %d done", a.Succeeded, a.Attempted, len(a.Messages))
					}
				case *mailbox.Messages:
					issues, text = a.Issues, fmt.Sprint(len(a.Messages))
				}
				for _, i := range issues {
					i.Reason = "" // for the audit alone
					text += fmt.Sprintf(", issue %+v", i)
				}
				if left := b.subjects("INBOX"); !slices.Contains(left, "secret") {
					t.Errorf("something happened to the hidden message: %q", left)
				}
				text = validity.ReplaceAllString(text, "V") // that of a mailbox made a second later differs
				for _, written := range []string{"UID:%d ", "V%d", "UID %d."} {
					text = strings.ReplaceAll(text, fmt.Sprintf(written, other(hidden)), "N")
				}
				return text
			}
			got, want := answer("h", func(h uint32) uint32 { return h }), answer("m", func(uint32) uint32 { return 4711 })
			if got != want {
				t.Errorf("hidden:\n%s\nmissing:\n%s", got, want)
			}
		})
	}
}

// What a hidden message is made of, however unreadable, changes nothing about the
// visible ones.
func Test000_9_AHiddenMessageCannotSpoilTheOthers(t *testing.T) {
	e := dovecot(t)
	answers := func(user string, poison bool) string {
		b := open(t, e, user, allowing("bob@example.org"))
		textOnly, textBody := mixed("Content-Type: text/plain\r\n\r\nhi")
		filed, filedBody := mixed("Content-Type: text/plain\r\n\r\nhi", attachment("f", 100))
		b.Add("INBOX", letter{Subject: "good", Extra: textOnly, Body: textBody}, letter{Subject: "good", Extra: filed, Body: filedBody})
		if poison {
			b.Add("INBOX", letter{Subject: "Re: good", From: "eve@evil.example", Extra: "Content-Type: application/pdf; name=\"" + strings.Repeat("x", 200_000) + "\"\r\n"})
		} else {
			b.Add("INBOX", letter{Subject: "Re: good", From: "eve@evil.example"})
		}
		var out strings.Builder
		for _, q := range []mailbox.ListQuery{{}, {Full: true}, {Unread: true}} {
			for _, m := range b.list(q).Messages {
				fmt.Fprintln(&out, m.Ref.UID, m.HasAttachments)
			}
		}
		for _, q := range []mailbox.SearchQuery{{Subject: "good"}, {Attachments: true}, {Attachments: true, Snippet: 200}} {
			p := b.search(q)
			fmt.Fprintln(&out, p.Total, p.Attempted, p.Failed, p.HasMore, len(p.Issues))
			for _, m := range p.Messages {
				fmt.Fprintln(&out, m.Ref.UID, m.HasAttachments, m.Snippet)
			}
		}
		th, lines := b.thread(1, mailbox.ThreadQuery{})
		fmt.Fprintln(&out, lines, th.Truncated, th.Messages[0].HasAttachments)
		return out.String()
	}
	if poisoned, clean := answers("poisoned", true), answers("clean", false); poisoned != clean || !strings.Contains(clean, "2 true") || !strings.Contains(clean, "1 false") {
		t.Errorf("with a hidden message nobody can read:\n%s\nwith a plain one:\n%s", poisoned, clean)
	}
}

// However many hidden messages have the subject of a conversation, it is the same.
func Test000_9_HiddenMessagesDoNotCountInAThread(t *testing.T) {
	b := onDovecot(t, "crowded", allowing("bob@example.org"))
	b.SetBounds(1000, 50, 1000)
	b.Add("INBOX", talk(1, "plan", "a@x"), talk(2, "Re: plan", "b@x", "a@x"))
	hidden := talk(3, "Re: plan", "e@x", "a@x")
	hidden.From = "eve@evil.example"
	b.Add("INBOX", slices.Repeat([]letter{hidden}, 70)...)
	if th, got := b.thread(1, mailbox.ThreadQuery{}); len(got) != 2 || th.Truncated {
		t.Errorf("%q, truncated %v", got, th.Truncated)
	}
}

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
			for _, q := range []mailbox.ListQuery{{}, {Limit: 10}, {Limit: 9}, {Since: dayOne}, {Until: dayOne.AddDate(1, 0, 0)}, {Before: b.Ref("INBOX", 1000)}} {
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
	if p := b.list(mailbox.ListQuery{Before: b.Ref("INBOX", 120)}); !slices.Equal(subjects(p), []string{"first"}) || p.HasMore || len(p.Issues) != 0 {
		t.Errorf("%+v", p)
	}
	if p := b.list(mailbox.ListQuery{Unread: true, Limit: 1, OldestFirst: true}); !slices.Equal(subjects(p), []string{"first"}) || !p.HasMore {
		t.Errorf("%+v", p)
	}
	if c := counts(t, b, "INBOX"); c == nil || c.Messages != 2 || c.Unread != 2 {
		t.Errorf("counted %+v", c)
	}
}
