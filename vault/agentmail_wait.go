package vault

import (
	"context"
	"sync"
	"time"
)

// bells wake those who wait in the process that sends. Other processes see the file
// change.
var bells = struct {
	sync.Mutex
	byPath map[string]chan struct{}
}{byPath: map[string]chan struct{}{}}

func ringAgentMail(path string) {
	bells.Lock()
	defer bells.Unlock()
	if c := bells.byPath[path]; c != nil {
		close(c)
		delete(bells.byPath, path)
	}
}

func agentMailBell(path string) <-chan struct{} {
	bells.Lock()
	defer bells.Unlock()
	c := bells.byPath[path]
	if c == nil {
		c = make(chan struct{})
		bells.byPath[path] = c
	}
	return c
}

// AwaitAgentMail returns nil as soon as ReadAgentMail would find a message for q,
// sent by this process or another, and the error of ctx when that ends first. It
// takes nothing: by the time the caller reads, another reader may have been there.
func (v *Vault) AwaitAgentMail(ctx context.Context, q AgentQuery) error {
	q.Limit, q.Peek, q.AgentRoom = 1, true, AgentRoom{}
	for {
		// What happens from here on is noticed below.
		bell, changed := agentMailBell(v.Path()), v.engine.Changes()
		in, err := v.ReadAgentMail(ctx, q)
		if err != nil || len(in.Messages) > 0 {
			return err
		}
		if err := v.untilChanged(ctx, bell, changed, in.Retry); err != nil {
			return err
		}
	}
}

// untilChanged returns nil when the vault may hold something new, or at retry unless
// that is zero.
func (v *Vault) untilChanged(ctx context.Context, bell <-chan struct{}, changed func(context.Context) error, retry time.Time) error {
	looking, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan struct{})
	go func() {
		if changed(looking) == nil {
			close(seen)
		}
	}()
	var held <-chan time.Time
	if !retry.IsZero() {
		t := time.NewTimer(retry.Sub(v.now()))
		defer t.Stop()
		held = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-bell:
	case <-held:
	case <-seen:
	}
	return nil
}
