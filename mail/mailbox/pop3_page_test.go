package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// numbered are so many notes, the first with number from.
func numbered(from, n int) (raw []string) {
	for i := from; i < from+n; i++ {
		raw = append(raw, note("bob@example.org", fmt.Sprint("m", i), fmt.Sprint("n", i), "", i%60))
	}
	return raw
}

// pages follows a list to its end, and runs between before each further page.
func (b *popBox) pages(q mailbox.ListQuery, between func(page int)) (all []string, n int) {
	b.t.Helper()
	for n = 1; ; n++ {
		p := b.list(q)
		all = append(all, subjects(p)...)
		if p.HasMore == (p.Next == mail.Ref{}) {
			b.t.Fatalf("has more: %t, goes on behind %+v", p.HasMore, p.Next)
		}
		if !p.HasMore || n > 100 {
			return all, n
		}
		if q.OldestFirst {
			q.After = p.Next
		} else {
			q.Before = p.Next
		}
		between(n)
	}
}

// Pages are of what there was, each message once, whatever comes meanwhile; the
// other way round what came is at the end.
func Test004_5_PagesOfPOP3StayApartUnderArrivals(t *testing.T) {
	b := openPop(t, "poppages")
	b.deliver(numbered(0, 23)...)
	var want []string
	for i := range 23 {
		want = append(want, fmt.Sprint("m", i))
	}
	next := 23
	arrive := func(page int) {
		if page <= 3 {
			b.deliver(numbered(next, 1)...)
			next++
		}
	}
	newest, n := b.pages(mailbox.ListQuery{Limit: 5}, arrive)
	slices.Reverse(newest)
	if !slices.Equal(newest, want) || n != 5 {
		t.Errorf("%d pages, newest first: %v", n, newest)
	}
	want = append(want, "m23", "m24", "m25")
	oldest, n := b.pages(mailbox.ListQuery{Limit: 5, OldestFirst: true}, arrive)
	if want = append(want, "m26", "m27", "m28"); !slices.Equal(oldest, want) || n != 6 {
		t.Errorf("%d pages, oldest first: %v", n, oldest)
	}
	// Dates filter what lies between.
	p := b.list(mailbox.ListQuery{OldestFirst: true, Limit: 500})
	at := func(i int) mailbox.Summary { return p.Messages[i] }
	dated := b.list(mailbox.ListQuery{After: at(2).Ref, Before: at(9).Ref, Since: at(5).Date, Until: at(20).Date})
	if got := subjects(dated); !slices.Equal(got, []string{"m8", "m7", "m6", "m5"}) || dated.HasMore {
		t.Errorf("between two and in time: %v", got)
	}
	if p := b.list(mailbox.ListQuery{After: at(9).Ref, Before: at(2).Ref}); len(p.Messages) != 0 || p.HasMore {
		t.Errorf("between none: %v", subjects(p))
	}
}

// A message to go on from that went meanwhile is a conflict, and one that is hidden
// is told in the same words.
func Test004_5_PagesOfPOP3GoOnFromNothingThatIsGone(t *testing.T) {
	b := openPop(t, "popgone")
	b.deliver(append(numbered(0, 3), note("eve@evil.example", "hidden", "h", "", 9))...)
	p := b.list(mailbox.ListQuery{Limit: 2})
	all := b.list(mailbox.ListQuery{})
	hidden, last := all.Messages[0].Ref, p.Next
	_ = b.Close()
	files, err := filepath.Glob(filepath.Join(b.s.Home, b.user, "Maildir", "cur", "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files { // somebody else deletes it
		raw, err := os.ReadFile(f)
		must(t, err)
		if strings.Contains(string(raw), "Subject: m2\r\n") {
			must(t, os.Remove(f))
		}
	}
	only := openPopOn(t, b.s, b.user, allowing("bob@example.org"))
	conflict := func(r mail.Ref) *mail.Error {
		t.Helper()
		var e *mail.Error
		if _, err := only.List(t.Context(), account, mailbox.ListQuery{Before: r}); !errors.As(err, &e) || e.Kind != mail.KindConflict {
			t.Fatalf("%+v: %v", r, err)
		}
		return e
	}
	gone, secret, never := conflict(last), conflict(hidden), conflict(mail.Ref{Protocol: mail.POP3, Account: account, UIDL: "nosuch"})
	conflict(mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UIDValidity: 1, UID: 1})
	if secret.Message != never.Message || secret.Advice != never.Advice || secret.Stage != never.Stage || gone.Message != never.Message {
		t.Errorf("%+v\n%+v\n%+v", gone, secret, never)
	}
	if secret.Reason != "filtered" || gone.Reason != "" {
		t.Errorf("the audit is told %q and %q", secret.Reason, gone.Reason)
	}
	// Nor does the place to go on from name what is hidden.
	for p := only.list(mailbox.ListQuery{Limit: 1}); p.HasMore; p = only.list(mailbox.ListQuery{Limit: 1, Before: p.Next}) {
		if p.Next != p.Messages[0].Ref || p.Next == hidden {
			t.Errorf("goes on from %+v", p.Next)
		}
	}
}

// With IMAP a message to go on from stands for its UID, in the folder as it is now.
func Test004_5_ListsOfIMAPGoOnFromAMessage(t *testing.T) {
	everywhere(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "anchors")
		u := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"}, letter{Subject: "c"}, letter{Subject: "d"})
		page := func(q mailbox.ListQuery) (*mailbox.Page, error) { return b.List(t.Context(), account, q) }
		all, err := page(mailbox.ListQuery{})
		if err != nil || len(all.Messages) != 4 {
			t.Fatal(all, err)
		}
		last, first := all.Messages[0].Ref, all.Messages[3].Ref
		p, err := page(mailbox.ListQuery{Before: last, After: first, BeforeUID: u[3], AfterUID: 1})
		if err != nil || !slices.Equal(subjects(p), []string{"c", "b"}) {
			t.Errorf("%v, %v", p, err)
		}
		stale := last
		stale.UIDValidity++
		mailtest.WantKind(t, second(page(mailbox.ListQuery{Before: stale})), mail.KindConflict)
		elsewhere := last
		elsewhere.Folder = "Archive"
		mailtest.WantKind(t, second(page(mailbox.ListQuery{Before: elsewhere})), mail.KindConflict)
		mailtest.WantKind(t, second(page(mailbox.ListQuery{Before: first, After: last})), mail.KindInvalid)
	})
}

// A session serves the commands that follow the one that began it, whose context has
// ended by then: logging in again and again is what servers refuse.
func TestAPOP3SessionOutlivesTheCommandThatBeganIt(t *testing.T) {
	b := openPop(t, "poplives")
	b.deliver(numbered(0, 2)...)
	proxy := servertest.NewProxy(t, b.s.POP3SAddr(), servertest.ProxyOptions{})
	over := openPopOn(t, b.s, b.user, func(a *mail.Account) { a.POP3.Host, a.POP3.Port = proxy.Host, proxy.Port })
	_ = b.Close()
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		if p, err := over.List(ctx, account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 2 {
			t.Errorf("%+v, %v", p, err)
		}
		cancel()
	}
	if n := proxy.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	// One that ends in the middle takes the session with it, and the next begins another.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := over.List(ctx, account, mailbox.ListQuery{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if p, err := over.List(t.Context(), account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}
