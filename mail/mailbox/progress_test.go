package mailbox_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// progressTold collects what operations report.
type progressTold struct {
	mu   sync.Mutex
	list []string
}

func (p *progressTold) report(done, total float64, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, fmt.Sprintf("%v of %v %s", done, total, what))
}

func (p *progressTold) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.list
	p.list = nil
	return l
}

func TestLongOperationsReportHowFarTheyAre(t *testing.T) {
	b := open(t, mailtest.InMemory(t), "progress", writable)
	extra, body := mixed("Content-Type: text/plain\r\n\r\ntext", attachment("big", 3<<20))
	uids := b.Add("INBOX", append(make([]letter, 60), letter{Subject: "big", Extra: extra, Body: body})...)
	b.folder("Other")
	b.Dir.Edit(func(a *mail.Account) { a.Name = "other" })
	var told progressTold
	ctx := mail.WithProgress(t.Context(), told.report)
	big := b.Ref("INBOX", uids[60])
	for _, tc := range []struct {
		name, want string
		run        func() error
	}{
		{"list by date", "0 of 0 reading INBOX", func() error {
			return second(b.List(ctx, account, mailbox.ListQuery{Since: time.Now().AddDate(0, 0, -3)}))
		}},
		{"search", "0 of 0 reading INBOX", func() error { return second(b.Search(ctx, []string{account}, mailbox.SearchQuery{Attachments: true})) }},
		{"thread", "0 of 0 reading INBOX", func() error { return second(b.Thread(ctx, big, mailbox.ThreadQuery{})) }},
		{"attachment", "bytes read", func() error { return second(b.Attachment(ctx, big, "")) }},
		{"copy across accounts", "1 of 2 copying messages", func() error { return second(b.Copy(ctx, account, b.refs("INBOX", uids[0], uids[1]), "other", "Other")) }},
	} {
		if err := tc.run(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := told.take(); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tc.want) }) {
			t.Errorf("%s reported %q, want %q", tc.name, got, tc.want)
		}
	}
}

// What is reported of a folder is the same whatever it hides.
func TestProgressTellsNothingOfHiddenMail(t *testing.T) {
	e := mailtest.InMemory(t)
	var seen [2][]string
	for i, hidden := range []int{0, 700} {
		b := open(t, e, fmt.Sprint("progress-hidden-", i), allowing("bob@example.org"))
		b.Add("INBOX", letter{Subject: "shown"})
		b.Add("INBOX", slices.Repeat([]letter{{From: "eve@example.net"}}, hidden)...)
		var told progressTold
		ctx := mail.WithProgress(t.Context(), told.report)
		for _, run := range []func() error{
			func() error { return second(b.List(ctx, account, mailbox.ListQuery{})) },
			func() error { return second(b.Search(ctx, []string{account}, mailbox.SearchQuery{Attachments: true})) },
			func() error { return second(b.Thread(ctx, b.Ref("INBOX", 1), mailbox.ThreadQuery{})) },
		} {
			must(t, run())
		}
		// How often it is told is a matter of time, which a gateway makes even.
		seen[i] = slices.Compact(told.take())
	}
	if !slices.Equal(seen[0], seen[1]) || len(seen[0]) != 1 {
		t.Errorf("with hidden mail %q, without %q", seen[1], seen[0])
	}
}
