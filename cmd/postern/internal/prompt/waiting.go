package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/postern-mail/postern/discovery"
)

// announce says how many entries of the outbox wait for a person, where that is news. Where
// they cannot be counted it says nothing: commands say why.
func (c *conversation) announce(ctx context.Context) {
	if c.Waiting == nil || c.JSON {
		return
	}
	n, err := c.Waiting(ctx)
	if err != nil || n == c.announced {
		return
	}
	switch c.announced = n; n {
	case 0:
	case 1:
		c.tell("1 message waits for you: " + c.typedAs("approve") + " shows it.")
	default:
		c.tell(fmt.Sprintf("%d messages wait for you: %s shows them.", n, c.typedAs("approve")))
	}
}

// NothingWaits says so where it is known without the administrator's key, so that nobody is asked
// for that. The id is that of ApproveWaiting, as is the status.
func NothingWaits(ctx context.Context, o Options, id string) (status int, none bool) {
	if o.Waiting == nil {
		return 0, false
	}
	if n, err := o.Waiting(ctx); err != nil || n > 0 {
		return 0, false
	}
	return (&conversation{Options: o}).nothing(id), true
}

// decides is the word 'approve' at the prompt, with the id of an entry or without. In a shell
// 'postern approve' calls ApproveWaiting. Both end in approveAll.
func (c *conversation) decides(ctx context.Context, args []string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	admin, id := *c, strings.Join(args, "")
	if !c.Principal.Admin {
		if status, none := NothingWaits(ctx, c.Options, id); none {
			c.status = status
			return
		}
		door, end, err := c.Administrator(ctx)
		if errors.Is(err, context.Canceled) {
			return
		}
		if err != nil {
			c.status = discovery.PermissionDenied.ExitStatus()
			fmt.Fprintln(c.Stdout, err)
			if f := discovery.AsFault(err); f != nil {
				fmt.Fprintln(c.Stdout, f.Hint)
			}
			return
		}
		defer end()
		admin.Door, admin.complete = door, NewCompleter(door)
	}
	c.status = admin.approveAll(ctx, id)
	c.open = admin.open // a question that was given up
}
