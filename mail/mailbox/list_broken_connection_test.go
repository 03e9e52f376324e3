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
