package vault

import (
	"context"
	"os"
	"sync"
	"time"
)

// How often a waiting reader looks whether the file has changed, which takes a
// microsecond. The file itself is opened only when it has.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 100 * time.Millisecond

	// settled is how old a change must be before a file that looks the same is the
	// same: file systems stamp the time in steps.
	settled = 100 * time.Millisecond
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
		bell, before := agentMailBell(v.file.path), v.stamp()
		in, err := v.ReadAgentMail(ctx, q)
		if err != nil || len(in.Messages) > 0 {
			return err
		}
		if err := v.untilChanged(ctx, bell, before, in.Retry); err != nil {
			return err
		}
	}
}

// stamp is what a change of the file changes.
type stamp struct {
	at    time.Time
	size  int64
	taken time.Time
}

func (v *Vault) stamp() stamp {
	s := stamp{taken: time.Now()}
	if info, err := os.Stat(v.file.path); err == nil {
		s.at, s.size = info.ModTime(), info.Size()
	}
	return s
}

// untilChanged returns nil when the file may hold something new, or at retry unless
// that is zero.
func (v *Vault) untilChanged(ctx context.Context, bell <-chan struct{}, before stamp, retry time.Time) error {
	interval := firstLook
	look := time.NewTimer(interval)
	defer look.Stop()
	var held <-chan time.Time
	if !retry.IsZero() {
		t := time.NewTimer(retry.Sub(v.now()))
		defer t.Stop()
		held = t.C
	}
	// A second change could hide behind a first that is as recent as the step of the
	// file system's clock.
	age := before.taken.Sub(before.at)
	unsure := age < settled && age > -time.Hour
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-bell:
			return nil
		case <-held:
			return nil
		case <-look.C:
		}
		now := v.stamp()
		if !now.at.Equal(before.at) || now.size != before.size || unsure && now.taken.Sub(before.taken) >= settled {
			return nil
		}
		interval = min(interval*5/4, lastLook)
		look.Reset(interval)
	}
}
