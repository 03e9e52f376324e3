package vault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-mail/postern/vault/kv"
)

// together joins the small writes of calls that run at once, so that they share one
// transaction and one wait for the disk. Each call waits until its write is durable.
type together struct {
	mu      sync.Mutex
	waiting []*job
	running bool
}

// job is one such write.
type job struct {
	ctx   context.Context
	do    func(*transaction) error // errNothing if it wrote nothing and must not fail others
	after []func(error)            // called with the outcome of the transaction, before its caller returns
	done  chan error
	err   error
}

// errNothing is returned by a job that wrote nothing.
var errNothing = errors.New("nothing to write")

// writeTogether runs do in a transaction that it shares with others. It returns nil when
// that is durable, errNothing where do returned that, and otherwise the reason why
// nothing is kept. An error of one fails all. If the context ends first the outcome is
// not known, and the variables that do sets must not be read.
func (v *Vault) writeTogether(ctx context.Context, do func(*transaction, *job) error) error {
	since := time.Now()
	ended := func() error {
		if !v.kind.remote {
			return ctx.Err()
		}
		return kv.Ended(ctx, since, v.engine.Path())
	}
	j := &job{ctx: ctx, done: make(chan error, 1)}
	j.do = func(t *transaction) error { return do(t, j) }
	v.together.mu.Lock()
	v.together.waiting = append(v.together.waiting, j)
	first := !v.together.running
	v.together.running = true
	v.together.mu.Unlock()
	if first {
		go func() {
			for v.runJobs() {
			}
		}()
	}
	var err error
	select {
	case err = <-j.done:
	case <-ctx.Done():
		select {
		case err = <-j.done:
		default:
			return ended()
		}
	}
	if err != nil && ctx.Err() != nil {
		return ended() // the wait was given up
	}
	return err
}

// runJobs runs the waiting jobs, and reports whether others have come meanwhile, which
// wait for the next runJobs.
func (v *Vault) runJobs() (more bool) {
	v.together.mu.Lock()
	jobs := v.together.waiting
	v.together.waiting = nil
	v.together.mu.Unlock()
	err := v.runTogether(jobs)
	for _, j := range jobs {
		if j.err == nil || err != nil && !errors.Is(err, errNothing) {
			j.err = err
		}
		for _, tell := range j.after {
			tell(err)
		}
		j.done <- j.err
	}
	v.together.mu.Lock()
	defer v.together.mu.Unlock()
	v.together.running = len(v.together.waiting) > 0
	return v.together.running
}

func (v *Vault) runTogether(jobs []*job) (err error) {
	// The wait for other processes ends when no caller here waits any more.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(len(jobs)))
	for _, j := range jobs {
		stop := context.AfterFunc(j.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
		defer stop()
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("vault: %v", r)
		}
	}()
	return v.update(ctx, func(t *transaction) error {
		written := false
		for _, j := range jobs {
			j.err = j.do(t)
			if j.err != nil && !errors.Is(j.err, errNothing) {
				return j.err
			}
			written = written || j.err == nil
		}
		if !written {
			return errNothing
		}
		return nil
	})
}
