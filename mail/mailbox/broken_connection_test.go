package mailbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// A network that breaks at any moment, between two commands and in the middle of
// one, costs a caller an error at most: no call waits for an answer that cannot
// come, none is answered with what another asked for, and no message is lost.
func TestANetworkThatBreaksAtAnyMoment(t *testing.T) {
	calls := testmain.Rounds(12, 60) // of each caller
	const (
		callers  = 4
		letters  = 5 // of each caller
		patience = 10 * time.Second
		late     = 60 * time.Second // beyond that a call waits for good
	)
	onWriters(t, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, "cut", writable)
		// Some end within the login, most within the commands that follow it.
		proxy := servertest.NewProxy(t, fmt.Sprintf("%s:%d", e.Host, e.Port), servertest.ProxyOptions{
			Lifetime: func() int64 { return int64(rand.IntN(2_000 << rand.IntN(5))) },
		})
		b.Dir.Edit(func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
		b.folders("Box", "Copies")
		folders := []string{b.In("INBOX"), b.In("Box")}
		want := map[string]bool{}
		for i := range callers * letters {
			subject := fmt.Sprintf("%d-%d", i%callers, i/callers)
			want[subject] = true
			b.Add("INBOX", letter{Subject: subject, Body: strings.Repeat("of "+subject+"\r\n", 1+i*20)})
		}
		var everybody sync.WaitGroup
		var worked, broken atomic.Int32
		// call runs one call and returns whether it worked.
		call := func(name string, do func(ctx context.Context) error) bool {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- do(ctx) }()
			select {
			case err := <-done:
				var e *mail.Error
				if err != nil && (!errors.As(err, &e) || e.Kind != mail.KindConnection && e.Kind != mail.KindTimeout && e.Kind != mail.KindNotFound) {
					t.Errorf("%s: %v (%v)", name, err, errors.Unwrap(err))
				}
				if err != nil {
					broken.Add(1)
				} else {
					worked.Add(1)
				}
				return err == nil
			case <-time.After(late):
				t.Errorf("%s waits for good", name)
				return false
			}
		}
		actions := []func(ctx context.Context, m *mailbox.Summary, to string) error{
			func(ctx context.Context, m *mailbox.Summary, _ string) error {
				got, err := b.Get(ctx, m.Ref, mailbox.GetQuery{})
				if err == nil && (got.Subject != m.Subject || !strings.HasPrefix(got.BodyText, "of "+m.Subject)) {
					t.Errorf("asked for %q, got %q", m.Subject, got.Subject)
				}
				return err
			},
			func(ctx context.Context, m *mailbox.Summary, _ string) error {
				got, err := b.Raw(ctx, m.Ref, 1<<20)
				if err == nil && !bytes.Contains(got.Source, []byte("Subject: "+m.Subject+"\r\n")) {
					t.Errorf("asked for %q, got %q", m.Subject, got.Source)
				}
				return err
			},
			func(ctx context.Context, m *mailbox.Summary, _ string) error {
				return second(b.Search(ctx, []string{account}, mailbox.SearchQuery{Folders: []string{m.Ref.Folder}, Subject: m.Subject}))
			},
			func(ctx context.Context, m *mailbox.Summary, _ string) error {
				return second(b.SetFlags(ctx, account, []mail.Ref{m.Ref}, []string{`\Flagged`}, nil))
			},
			func(ctx context.Context, m *mailbox.Summary, to string) error {
				return second(b.Move(ctx, account, []mail.Ref{m.Ref}, to))
			},
			func(ctx context.Context, m *mailbox.Summary, _ string) error {
				return second(b.Copy(ctx, account, []mail.Ref{m.Ref}, account, b.In("Copies")))
			},
			func(ctx context.Context, m *mailbox.Summary, _ string) error {
				return second(b.Watch(ctx, account, mailbox.WatchQuery{Folder: m.Ref.Folder, FromNow: true, Until: time.Now().Add(20 * time.Millisecond)}))
			},
		}
		for caller := range callers {
			everybody.Go(func() {
				for n := 0; n < calls && !t.Failed(); n++ {
					at := rand.IntN(2)
					var own []mailbox.Summary
					if !call("list", func(ctx context.Context) error {
						p, err := b.List(ctx, account, mailbox.ListQuery{Folder: folders[at], Limit: callers * letters * 2})
						if err == nil {
							own = slices.DeleteFunc(p.Messages, func(m mailbox.Summary) bool { return !strings.HasPrefix(m.Subject, fmt.Sprint(caller, "-")) })
						}
						return err
					}) || len(own) == 0 {
						continue
					}
					action := rand.IntN(len(actions))
					call(fmt.Sprint("action ", action), func(ctx context.Context) error {
						return actions[action](ctx, &own[rand.IntN(len(own))], folders[1-at])
					})
				}
			})
		}
		everybody.Wait()
		for _, folder := range []string{"INBOX", "Box"} {
			for _, s := range b.subjects(folder) {
				subject, _, _ := strings.Cut(s, " ")
				delete(want, subject)
			}
		}
		if len(want) > 0 {
			t.Errorf("messages are gone: %v", want)
		}
		if worked.Load() == 0 || broken.Load() == 0 {
			t.Errorf("%d calls worked and %d did not: this shows nothing", worked.Load(), broken.Load())
		}
	})
}

// What a FETCH brought before the connection broke, or before the time was over, is in the
// answer: the newest without a gap, whole, with an issue, and the answer goes on behind them.
func TestWhatCameBeforeABreakIsTold(t *testing.T) {
	const letters = 60
	for _, stalls := range []bool{false, true} {
		t.Run(map[bool]string{false: "cut", true: "slow line"}[stalls], func(t *testing.T) {
			t.Parallel()
			_, e := mailtest.Dovecot(t, servertest.Config{})
			b := open(t, e, fmt.Sprint("partial-", stalls))
			b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, Drafts: everyDraft{}})
			t.Cleanup(func() { _ = b.Close() })
			var uids []uint32
			for i := range letters {
				l := letter{Extra: fmt.Sprintf("Message-ID: <part-%d@example.org>\r\n", i), Subject: fmt.Sprint("about ", i), Body: strings.Repeat(fmt.Sprintf("line of %d\r\n", i), 100)}
				if i > 0 {
					l.Extra += "In-Reply-To: <part-0@example.org>\r\n"
				}
				if i == letters-1 {
					l.Flags = append(l.Flags, imap.FlagDraft)
				}
				uids = append(uids, b.Add("INBOX", l)...)
			}
			slices.Reverse(uids)
			var left atomic.Int64
			proxy := servertest.NewProxy(t, fmt.Sprintf("%s:%d", e.Host, e.Port), servertest.ProxyOptions{Lifetime: func() int64 { return left.Load() }, Stalls: stalls})
			a := b.Dir.Known[account]
			a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port
			// fresh calls with a new connection that ends after so many bytes.
			fresh := func(bytes int64, call func(ctx context.Context)) {
				left.Store(bytes)
				a.Timeouts.Connect += 10 * time.Second // another connection
				b.Dir.Set(a)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				call(ctx)
			}
			check := func(what string, got []mailbox.Summary, issues []mail.Issue, more bool, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				var have []uint32
				for _, m := range got {
					have = append(have, m.Ref.UID)
				}
				if len(have) < 8 || len(have) == letters || !slices.Equal(have, uids[:len(have)]) || len(issues) == 0 || !more {
					t.Errorf("%s: %d messages %v, issues %v, more %v", what, len(have), have, issues, more)
				}
			}
			for _, snippet := range []int{0, 200} {
				bytes := map[int]int64{0: 16_000, 200: 60_000}[snippet]
				fresh(bytes, func(ctx context.Context) {
					p, err := b.List(ctx, account, mailbox.ListQuery{Limit: letters, Snippet: snippet})
					if err != nil {
						p = &mailbox.Page{}
					}
					check(fmt.Sprint("list ", snippet), p.Messages, p.Issues, p.HasMore, err)
					if n := len(p.Messages); n > 0 && !p.Messages[0].ByAgent {
						t.Error("the draft is not marked")
					}
					if n := len(p.Messages); n > 0 && snippet > 0 && !strings.HasPrefix(p.Messages[n-1].Snippet, "line of ") {
						t.Errorf("the snippet is %q", p.Messages[n-1].Snippet)
					}
				})
				fresh(bytes, func(ctx context.Context) {
					p, err := b.Search(ctx, []string{account}, mailbox.SearchQuery{Folders: []string{"INBOX"}, Subject: "about", Limit: 50, Snippet: snippet})
					if err != nil {
						p = &mailbox.SearchPage{}
					}
					check(fmt.Sprint("search ", snippet), p.Messages, p.Issues, p.HasMore && p.NextCursor != "", err)
				})
			}
			fresh(16_000, func(ctx context.Context) {
				p, err := b.List(ctx, account, mailbox.ListQuery{Limit: letters, OldestFirst: true})
				must(t, err)
				if n := len(p.Messages); n < 8 || n == letters || p.Messages[0].Ref.UID != uids[letters-1] || !p.HasMore {
					t.Errorf("oldest first: %d messages", n)
				}
			})
			fresh(14_000, func(ctx context.Context) {
				all, err := b.GetEach(ctx, account, b.refs("INBOX", uids[:12]...), mailbox.GetQuery{})
				must(t, err)
				if n := len(all.Messages); n < 2 || n+len(all.Issues) != 12 {
					t.Errorf("get: %d messages, %v", n, all.Issues)
				}
				for _, m := range all.Messages {
					if !strings.HasPrefix(m.BodyText, "line of ") || !strings.HasSuffix(strings.TrimSpace(m.BodyText), strings.TrimPrefix(m.Subject, "about ")) && !m.BodyTruncated {
						t.Errorf("get: %q of %q", m.BodyText, m.Subject)
					}
				}
			})
			fresh(60_000, func(ctx context.Context) {
				th, err := b.Thread(ctx, b.refs("INBOX", uids[0])[0], mailbox.ThreadQuery{Chars: 100})
				must(t, err)
				texts := 0
				for _, m := range th.Messages {
					if m.Text != "" {
						texts++
					}
				}
				if n := len(th.Messages); n < 2 || n == letters && texts == letters || !th.Truncated || len(th.Issues) == 0 || texts < 2 {
					t.Errorf("thread: %d messages, %d texts, truncated %v, %v", n, texts, th.Truncated, th.Issues)
				}
			})
		})
	}
}

// everyDraft says of every draft that an agent wrote it, within the time there is.
type everyDraft struct{}

func (everyDraft) NoteDraft(context.Context, mail.Ref) error { return nil }

func (everyDraft) Drafts(ctx context.Context, refs []mail.Ref) ([]mail.DraftOrigin, error) {
	return slices.Repeat([]mail.DraftOrigin{{ByAgent: true}}, len(refs)), ctx.Err()
}
