package argument

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-mail/postern/mail"
)

// maxWait is shorter than the longest deadline of a command.
const maxWait = 290 * time.Second

// ParseWait reads the value of --wait, whose pattern has let it through: a number
// of seconds, or one with a unit. Nothing is 0.
func ParseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if last := text[len(text)-1]; last >= '0' && last <= '9' {
		text += "s"
	}
	w, err := time.ParseDuration(text)
	if err != nil || w > maxWait {
		return 0, fmt.Errorf("--wait must be at most %s", maxWait)
	}
	return w, nil
}

// WaitUntil is when a command that waits has to answer that nothing came: after
// wait, but before it would be stopped.
func WaitUntil(ctx context.Context, wait time.Duration) time.Time {
	until := time.Now().Add(wait)
	sooner, cancel := mail.Sooner(ctx)
	defer cancel()
	if last, ok := sooner.Deadline(); ok && last.Before(until) {
		return last
	}
	return until
}
