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
		fmt.Fprintln(c.Stdout, "1 message waits for you: 'approve' shows it.")
	default:
		fmt.Fprintf(c.Stdout, "%d messages wait for you: 'approve' shows them.\n", n)
	}
}

// decides runs the word 'approve', with the id of an entry or without: what 'postern approve'
// does, here. It reports whether the line is that.
func (c *conversation) decides(ctx context.Context, line string) bool {
	words := strings.Fields(line)
	if c.JSON || words[0] != "approve" || len(words) > 2 {
		return false
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	admin := *c
	if !c.Principal.Admin {
		door, end, err := c.Administrator(ctx)
		if errors.Is(err, context.Canceled) {
			return true
		}
		if err != nil {
			fmt.Fprintln(c.Stdout, err)
			if f := discovery.AsFault(err); f != nil {
				fmt.Fprintln(c.Stdout, f.Hint)
			}
			return true
		}
		defer end()
		admin.Door, admin.complete = door, NewCompleter(door)
	}
	c.status = admin.approveAll(ctx, strings.Join(words[1:], ""))
	c.open = admin.open // a question that was given up
	return true
}
