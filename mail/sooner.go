package mail

import (
	"context"
	"time"
)

// Sooner returns a context that ends a little before ctx does: at most a second, and a quarter of
// the time that is left. What does not answer until then costs nothing of what did. Without a
// deadline it ends with ctx.
func Sooner(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(time.Second, time.Until(deadline)/4)))
}
