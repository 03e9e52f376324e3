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
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// A network that breaks at any moment, between two commands and in the middle of
// one, costs a caller an error at most: no call waits for an answer that cannot
// come, none is answered with what another asked for, and no message is lost.
func TestANetworkThatBreaksAtAnyMoment(t *testing.T) {
	const (
		callers  = 4
		letters  = 5  // of each caller
		calls    = 60 // of each caller
		patience = 10 * time.Second
		late     = 60 * time.Second // beyond that a call waits for good
	)
	for _, e := range writers(t) {
		t.Run(e.Name, func(t *testing.T) {
			scripted.Settle(t)
			b := open(t, e, "cut", writable)
			// Some end within the login, most within the commands that follow it.
			proxy := servertest.NewProxy(t, fmt.Sprintf("%s:%d", e.Host, e.Port), servertest.ProxyOptions{
				Lifetime: func() int64 { return int64(rand.IntN(2_000 << rand.IntN(5))) },
			})
			a := mailtest.Settings(proxy.Host, proxy.Port, "cut")
			writable(&a)
			b.Dir.Set(a)
			b.folder("Box")
			b.folder("Copies")
			folders := []string{b.In("INBOX"), b.In("Box")}
			want := map[string]bool{}
			for i := range callers * letters {
				subject := fmt.Sprintf("%d-%d", i%callers, i/callers)
				want[subject] = true
				b.Add("INBOX", letter{Subject: subject, Body: strings.Repeat("of "+subject+"\r\n", 1+i*20)})
			}

			var everybody sync.WaitGroup
			var mu sync.Mutex
			worked, broken := 0, 0
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
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						broken++
						return false
					}
					worked++
					return true
				case <-time.After(late):
					t.Errorf("%s waits for good", name)
					return false
				}
			}
			for caller := range callers {
				everybody.Go(func() {
					for n := 0; n < calls && !t.Failed(); n++ {
						folder := folders[rand.IntN(2)]
						var found []mailbox.Summary
						if !call("list", func(ctx context.Context) error {
							p, err := b.List(ctx, account, mailbox.ListQuery{Folder: folder, Limit: callers * letters * 2})
							if err == nil {
								found = p.Messages
							}
							return err
						}) {
							continue
						}
						own := slices.DeleteFunc(found, func(m mailbox.Summary) bool { return !strings.HasPrefix(m.Subject, fmt.Sprint(caller, "-")) })
						if len(own) == 0 {
							continue
						}
						m := own[rand.IntN(len(own))]
						switch refs := []mail.Ref{m.Ref}; rand.IntN(7) {
						case 0:
							call("get", func(ctx context.Context) error {
								got, err := b.Get(ctx, m.Ref, mailbox.GetQuery{})
								if err == nil && (got.Subject != m.Subject || !strings.HasPrefix(got.BodyText, "of "+m.Subject)) {
									t.Errorf("asked for %q, got %q", m.Subject, got.Subject)
								}
								return err
							})
						case 1:
							call("search", func(ctx context.Context) error {
								return second(b.Search(ctx, []string{account}, mailbox.SearchQuery{Folders: []string{folder}, Subject: m.Subject}))
							})
						case 2:
							call("flags", func(ctx context.Context) error {
								return second(b.SetFlags(ctx, account, refs, []string{`\Flagged`}, nil))
							})
						case 3:
							to := folders[0]
							if folder == to {
								to = folders[1]
							}
							call("move", func(ctx context.Context) error { return second(b.Move(ctx, account, refs, to)) })
						case 4:
							call("raw", func(ctx context.Context) error {
								got, err := b.Raw(ctx, m.Ref, 1<<20)
								if err == nil && !bytes.Contains(got.Source, []byte("Subject: "+m.Subject+"\r\n")) {
									t.Errorf("asked for %q, got %q", m.Subject, got.Source)
								}
								return err
							})
						case 5:
							call("copy", func(ctx context.Context) error { return second(b.Copy(ctx, account, refs, account, b.In("Copies"))) })
						case 6:
							call("watch", func(ctx context.Context) error {
								return second(b.Watch(ctx, account, mailbox.WatchQuery{Folder: folder, FromNow: true, Until: time.Now().Add(20 * time.Millisecond)}))
							})
						}
					}
				})
			}
			everybody.Wait()
			there := map[string]bool{}
			for _, folder := range []string{"INBOX", "Box"} {
				for _, s := range b.subjects(folder) {
					subject, _, _ := strings.Cut(s, " ")
					there[subject] = true
				}
			}
			for subject := range want {
				if !there[subject] {
					t.Errorf("message %s is gone", subject)
				}
			}
			t.Logf("%d calls worked and %d did not, on %d connections", worked, broken, proxy.Stats().Connections)
			if worked == 0 || broken == 0 {
				t.Errorf("%d calls worked and %d did not: this shows nothing", worked, broken)
			}
		})
	}
}
