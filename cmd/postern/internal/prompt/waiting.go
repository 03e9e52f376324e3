package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
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
}

// administratorShows are the commands of the administrator that change nothing. A person whose key
// is kept may see their answers for a yes; what changes something takes the key by name.
var administratorShows = []string{"account list", "account show", "audit list", "audit verify", "config get", "config list", "grant list", "vault check"}

// mayLook reports whether a line is one of these, and the key is to be found for it.
func (c *conversation) mayLook(line string, command *discovery.Command) bool {
	return command != nil && slices.Contains(administratorShows, command.Path) && c.NeedsVault(line) && !c.mayAsk() && c.decidesHere()
}

// lookAsAdministrator runs a command that shows something with the administrator's key, if the
// person says so.
func (c *conversation) lookAsAdministrator(ctx context.Context, line string) {
	if !yes(c.typed(ctx, "This takes the administrator's key. y finds it, anything else does not: ")) {
		c.execute(ctx, gateway.Request{Line: line}, line)
		return
	}
	if admin, end, ok := c.administrator(ctx); ok {
		defer end()
		admin.execute(ctx, gateway.Request{Line: line}, line)
		c.status = admin.status
	}
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
