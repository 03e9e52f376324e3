package bolt

import (
	"context"
	"os"
	"time"
)

// How often a caller that waits looks whether the file has changed, which takes a
// microsecond. The file itself is not opened for it.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 100 * time.Millisecond

	// settled is how old a change must be before a file that looks the same is the
	// same: file systems stamp the time in steps.
	settled = 100 * time.Millisecond
)

// stamp is what a change of the file changes.
type stamp struct {
	at    time.Time
	size  int64
	taken time.Time
}

func (e *Engine) stamp() stamp {
	s := stamp{taken: time.Now()}
	if info, err := os.Stat(e.path); err == nil {
		s.at, s.size = info.ModTime(), info.Size()
	}
	return s
}

// Changes implements kv.Engine: it looks at the file's time and size.
func (e *Engine) Changes() (wait func(context.Context) error) {
	before := e.stamp()
	// A second change could hide behind a first that is as recent as the step of the
	// file system's clock.
	age := before.taken.Sub(before.at)
	unsure := age < settled && age > -time.Hour
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
			now := e.stamp()
			if !now.at.Equal(before.at) || now.size != before.size || unsure && now.taken.Sub(before.taken) >= settled {
				return nil
			}
			interval = min(interval*5/4, lastLook)
			look.Reset(interval)
		}
	}
}
