package bolt

import (
	"context"
	"time"
)

// How often a waiting caller reads the head of the file, which takes some
// microseconds.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// Changes implements kv.Engine. A version that cannot be read counts as a change: the
// caller's next transaction then gives the error.
func (e *Engine) Changes() (wait func(context.Context) error) {
	before, _ := e.Version(context.Background())
	return func(ctx context.Context) error {
		interval := firstLook
		look := time.NewTimer(interval)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-look.C:
			}
			if now, err := e.Version(ctx); err != nil || now != before {
				return nil
			}
			interval = min(interval*5/4, lastLook)
			look.Reset(interval)
		}
	}
}
