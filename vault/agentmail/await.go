package agentmail

import (
	"context"
	"time"
)

// ring wakes those who wait in this process. Other processes see the store change.
func (b *Mailbox) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bell != nil {
		close(b.bell)
		b.bell = nil
	}
}

func (b *Mailbox) rung() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bell == nil {
		b.bell = make(chan struct{})
	}
	return b.bell
}

// Await returns nil as soon as Read would find a message for q, sent by this process or
// another, and the error of ctx when that ends first. It takes nothing: by the time the
// caller reads, another reader may have been there.
func (b *Mailbox) Await(ctx context.Context, q Query) error {
	q.Limit, q.Peek, q.Room = 1, true, Room{}
	for {
		// What happens from here on is noticed below.
		bell := b.rung()
		changed, err := b.store.Changes(ctx)
		if err != nil {
			return err
		}
		in, err := b.Read(ctx, q)
		if err != nil || len(in.Messages) > 0 {
			return err
		}
		if err := b.untilChanged(ctx, bell, changed, in.Retry); err != nil {
			return err
		}
	}
}

// untilChanged returns nil when the store may hold something new, or at retry unless
// that is zero.
func (b *Mailbox) untilChanged(ctx context.Context, bell <-chan struct{}, changed func(context.Context) error, retry time.Time) error {
	looking, stop := context.WithCancel(ctx)
	defer stop()
	if !retry.IsZero() {
		looking, stop = context.WithTimeout(looking, retry.Sub(b.store.Now()))
		defer stop()
	}
	over := make(chan struct{})
	go func() {
		_ = changed(looking)
		close(over)
	}()
	select {
	case <-bell:
	case <-over:
	}
	return ctx.Err()
}
