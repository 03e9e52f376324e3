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
	id := strings.Join(args, "")
	if !c.Principal.Admin {
		if status, none := NothingWaits(ctx, c.Options, id); none {
			c.status = status
			return
		}
	}
	admin, end, ok := c.administrator(ctx)
	if !ok {
		return
	}
	defer end()
	c.status = admin.approveAll(ctx, id)
	c.open = admin.open // a question that was given up
}

// administrator is the same conversation at the administrator's door until end. If it fails, the
// person has been told, or has given up.
func (c *conversation) administrator(ctx context.Context) (admin *conversation, end func(), ok bool) {
	same := *c
	if c.Principal.Admin {
		return &same, func() {}, true
	}
	door, end, err := c.Administrator(ctx)
	c.status = discovery.PermissionDenied.ExitStatus()
	if errors.Is(err, context.Canceled) {
		return nil, nil, false
	}
	if err != nil {
		fmt.Fprintln(c.Stdout, err)
		if f := discovery.AsFault(err); f != nil {
			fmt.Fprintln(c.Stdout, f.Hint)
		}
		return nil, nil, false
	}
	same.Door, same.complete = door, NewCompleter(door)
	return &same, end, true
}
