package commands_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/postern-mail/postern/commands/agents"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// TestAReadThatMayNotGoOnTakesNothing has a message arrive for a read that waits
// aside, and is not let go on. Another reader has the message at once.
func TestAReadThatMayNotGoOnTakesNothing(t *testing.T) {
	mailbox, run := reading(t, "30s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	link := &fakeLink{aside: func(ctx context.Context, wait func(context.Context) error) error {
		if _, err := mailbox.Send(ctx, agentmail.Message{Sender: "p:a", Recipient: "p:b", Subject: "x"}); err != nil {
			return err
		}
		if err := wait(ctx); err != nil {
			return err
		}
		cancel()
		return context.DeadlineExceeded
	}}
	if _, err := run(ctx, link); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want what the wait ended with", err)
	}
	if link.delivered {
		t.Error("there is something to be delivered")
	}
	in, err := mailbox.Read(t.Context(), agentmail.Query{Agent: "p:b"})
	if err != nil || len(in.Messages) != 1 {
		t.Errorf("%d messages for the next reader: %v", len(in.Messages), err)
	}
}

// TestWhatComesAsAWaitEndsIsRead also where the wait is not told of it.
func TestWhatComesAsAWaitEndsIsRead(t *testing.T) {
	mailbox, run := reading(t, "1ms")
	link := &fakeLink{aside: func(ctx context.Context, wait func(context.Context) error) error {
		err := wait(ctx)
		_, sent := mailbox.Send(ctx, agentmail.Message{Sender: "p:a", Recipient: "p:b", Subject: "x"})
		return errors.Join(err, sent)
	}}
	if got, err := run(t.Context(), link); err != nil || len(got.(agents.Inbox)) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// reading returns a mailbox and 'agent read' of p:b, which waits so long.
func reading(t *testing.T, wait string) (mailbox *agentmail.Mailbox, run func(context.Context, *fakeLink) (any, error)) {
	v, remove, err := vault.Temporary(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = remove() })
	mailbox = agentmail.New(v)
	list := agents.Commands(&agents.Deps{Mailbox: mailbox})
	read := list[slices.IndexFunc(list, func(c *discovery.Command) bool { return c.Path == "agent read" })]
	bound, err := read.Bind([]string{"p:b", "--wait", wait}, nil)
	must(t, err)
	return mailbox, func(ctx context.Context, link *fakeLink) (any, error) {
		return read.Run(ctx, &discovery.Call{Link: link}, bound)
	}
}

// fakeLink is a caller that hears of nothing, and what a command asks of it.
type fakeLink struct {
	aside     func(ctx context.Context, wait func(context.Context) error) error
	delivered bool
}

func (*fakeLink) Progress(float64, float64, string) {}
func (*fakeLink) Announce(string)                   {}
func (l *fakeLink) Delivered(func())                { l.delivered = true }
func (l *fakeLink) Aside(ctx context.Context, wait func(context.Context) error) error {
	return l.aside(ctx, wait)
}
