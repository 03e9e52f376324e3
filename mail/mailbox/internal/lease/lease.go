// Package lease keeps to one process of all that work with the same accounts, on several
// machines, what only one should have: a POP3 mailbox, and the IDLE of a folder.
package lease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// Others are those processes, as a vault in a database knows them.
type Others interface {
	// Remote reports whether there can be any.
	Remote() bool
	// Lock waits for the named lock until ctx ends. held, which derives from ctx, ends when the
	// lock is lost. A name has only letters, digits and dots.
	Lock(ctx context.Context, name string) (held context.Context, unlock func(), err error)
	// Changes remembers the present state. wait returns nil once there may have been a change.
	Changes(ctx context.Context) (wait func(context.Context) error, err error)
}

// Leases takes leases. It is safe for concurrent use.
type Leases struct {
	Others Others         // nil: there are none
	Seen   mail.SeenStore // has what Announce says
}

const (
	idleTry = time.Second      // how long a process that would rest in IDLE asks whether another does
	giveUp  = time.Second      // how long the vault has to take a lease back, which ends by itself otherwise
	popTurn = 25 * time.Second // how long a command waits for a mailbox that another process has open: longer than a dead one's lease lasts
)

// Needed reports whether there can be others.
func (l Leases) Needed() bool { return l.Others != nil && l.Others.Remote() }

// errHeld says that another process has a lease, as a server does of a mailbox, and tells of no
// lock of the vault that somebody should look for.
var errHeld = &wire.Error{Stage: wire.StageAuth, Kind: wire.KindRefused, Code: "IN-USE"}

// take waits no longer than patience for a lease. Where there are no others it is there at once.
func (l Leases) take(ctx context.Context, patience time.Duration, kind string, of ...string) (held context.Context, release func(), err error) {
	asking, cancel := context.WithCancel(ctx)
	if !l.Needed() {
		return asking, cancel, nil
	}
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	late := time.AfterFunc(patience, cancel)
	held, unlock, err := l.Others.Lock(asking, kind+"."+hex.EncodeToString(sum[:8]))
	switch {
	case err == nil && late.Stop():
		return held, func() {
			defer cancel()
			back, stop := context.WithTimeout(context.Background(), giveUp)
			go func() { unlock(); stop() }()
			<-back.Done()
		}, nil
	case err == nil:
		unlock()
		err = errHeld
	case ctx.Err() != nil:
		err = ctx.Err()
	case asking.Err() != nil:
		err = errHeld
	}
	cancel()
	return nil, nil, err
}

// POP3 takes the lease of a mailbox, which its server serves to one session at a time.
func (l Leases) POP3(ctx context.Context, mailbox string) (held context.Context, release func(), err error) {
	return l.take(ctx, popTurn, "pop3", mailbox)
}

// Idle takes the lease of a folder, unless another process has it or that is not known.
func (l Leases) Idle(ctx context.Context, account, mailbox, folder string) (held context.Context, release func(), err error) {
	return l.take(ctx, idleTry, "idle", account, mailbox, folder)
}

// Announce tells those that follow that they should look at a folder, also where ctx has ended.
// Where that fails they look a little later.
func (l Leases) Announce(ctx context.Context, account, folder string) {
	if !l.Needed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), idleTry)
	defer cancel()
	_ = l.Seen.UpdateSeen(ctx, account, folder, func(s *mail.SeenState) error {
		s.Told = time.Now()
		return nil
	})
}

// Follow begins to listen. hear returns nil at an announcement that is made from then on; it is
// nil where there are no others.
func (l Leases) Follow(ctx context.Context, account, folder string) (hear func(context.Context) error, err error) {
	if !l.Needed() {
		return nil, nil
	}
	changed, err := l.Others.Changes(ctx)
	if err != nil {
		return nil, err
	}
	before, err := l.Seen.Seen(ctx, account, folder)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for {
			if err := changed(ctx); err != nil {
				return err
			}
			if changed, err = l.Others.Changes(ctx); err != nil {
				return err
			}
			if now, err := l.Seen.Seen(ctx, account, folder); err != nil || !now.Told.Equal(before.Told) {
				return err
			}
		}
	}, nil
}
