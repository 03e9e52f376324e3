package agents_test

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
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	mailbox := agentmail.New(v)
	list := agents.Commands(&agents.Deps{Mailbox: mailbox})
	read := list[slices.IndexFunc(list, func(c *discovery.Command) bool { return c.Path == "agent read" })]
	bound, err := read.Bind([]string{"p:b", "--wait", "30s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := read.Run(ctx, &discovery.Call{Link: link}, bound); !errors.Is(err, context.DeadlineExceeded) {
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
