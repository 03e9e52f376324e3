package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault/agentmail"
)

type readArgs struct {
	Agent      string `json:"agent" acli:"form=identity,positional" jsonschema:"example=my-repo:main" jsonschema_description:"Your identity, project:name"`
	All        bool   `json:"all,omitempty" acli:"rare" jsonschema_description:"Also messages that were read before"`
	From       string `json:"from,omitempty" acli:"form=identity,rare" jsonschema:"example=my-repo:reviewer" jsonschema_description:"Only messages of this sender"`
	Limit      int    `json:"limit,omitempty" acli:"rare" jsonschema:"minimum=1,maximum=10000,default=20" jsonschema_description:"At most this many messages, oldest first"`
	Thread     string `json:"thread,omitempty" acli:"form=agent_message,rare" jsonschema:"example=1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b" jsonschema_description:"The whole thread of this message, read or not; nothing is marked as read"`
	After      string `json:"after,omitempty" acli:"form=agent_message,rare" jsonschema:"example=1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b" jsonschema_description:"Only messages behind this one: with --all, --no-mark-read or --thread"`
	NoMarkRead bool   `json:"no-mark-read,omitempty" acli:"rare" jsonschema_description:"Leave the messages unread"`
	Peek       bool   `json:"peek,omitempty" acli:"rare" jsonschema_description:"The same as --no-mark-read"`
	Wait       string `json:"wait,omitempty" acli:"form=wait,value=30s" jsonschema:"example=30s" jsonschema_description:"Wait this long for a message if there is none: 500ms, 30s or 4m, at most 290s"`

	wait time.Duration // since Validate
}

// Validate checks what one field alone cannot.
func (a *readArgs) Validate() (err error) {
	if a.Thread != "" && (a.From != "" || a.Wait != "") {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--thread shows a whole thread, as it is now: it takes neither --from nor --wait.",
			Hint: "Leave the other option out."}
	}
	if a.After != "" && a.Thread == "" && !a.All && !a.peek() {
		return &discovery.Fault{Code: discovery.ValidationError, Message: "--after goes on in an answer that can be read again: with --all, --no-mark-read or --thread.",
			Hint: "Without these, read again: what was read does not come twice."}
	}
	a.wait, err = argument.ParseWait(a.Wait)
	return err
}

func (a *readArgs) peek() bool { return a.NoMarkRead || a.Peek }

// Inbox answers agent read: messages, oldest first.
type Inbox []Message

func read(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "agent read",
		Also:    []string{"read"},
		Summary: "Read yours",
		Details: "What an agent sent itself is left out. Without options it returns unread direct messages and broadcasts, oldest first. They count as read once the answer has been written; " +
			"if it was not, they are unread again after 30 s. A long answer ends early and says how to go on. " +
			"--wait ends with the first message, or an empty list.",
		Effect:   discovery.State,
		Timeout:  300,
		Examples: []string{"agent read my-repo:main", "agent read my-repo:main --wait 30s", "agent read my-repo:main --all --from my-repo:reviewer --fields id,sender,subject"},
	}, func(ctx context.Context, call *discovery.Call, args *readArgs) (Inbox, error) {
		if err := d.asAgent(ctx, call, args.Agent); err != nil {
			return nil, err
		}
		if args.Thread != "" {
			in, err := d.Mailbox.Thread(ctx, agentmail.Thread{Agent: args.Agent, ID: args.Thread, After: args.After, Own: d.bound(call), Room: roomFor(call.Fields)})
			return shown(call, args, &in), faultOf(err)
		}
		q := agentmail.Query{Agent: args.Agent, From: args.From, All: args.All, Peek: args.peek(), Limit: args.Limit, After: args.After,
			Room: roomFor(call.Fields)}
		in, err := d.readOrWait(ctx, call, q, args.wait)
		if err != nil {
			return nil, faultOf(err)
		}
		if in.Claim != nil {
			call.Delivered(func() { d.confirm(ctx, q.Agent, in.Claim) })
		}
		return shown(call, args, &in), nil
	})
}

// shown are the messages of an answer, which says how to go on where it ends before its end.
func shown(call *discovery.Call, args *readArgs, in *agentmail.Inbox) Inbox {
	if in.Last != "" {
		again, after := *args, "the rest"
		if args.All || args.peek() || args.Thread != "" {
			again.After, after = in.Last, "what is behind it"
		}
		call.Cut = fmt.Sprintf("%s, and there may be more: '%s' reads %s", Inbox(answer.Each(in.Messages, messageOf)).Summary(), call.Again(&again), after)
	}
	return answer.Each(in.Messages, messageOf)
}

// confirmTime bounds the note that messages have arrived, which goes on when the
// caller has gone. Without it they are unread again, which loses nothing.
const confirmTime = 10 * time.Second

func (d *Deps) confirm(ctx context.Context, agent string, claim *agentmail.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	_ = d.Mailbox.Confirm(ctx, agent, claim)
}

// readOrWait reads, and where there is nothing waits and reads again: another
// reader of the same inbox may have been faster.
func (d *Deps) readOrWait(ctx context.Context, call *discovery.Call, q agentmail.Query, wait time.Duration) (agentmail.Inbox, error) {
	in, err := d.Mailbox.Read(ctx, q)
	if err != nil || len(in.Messages) > 0 || wait == 0 {
		return in, err
	}
	waiting, cancel := context.WithDeadline(ctx, argument.WaitUntil(ctx, wait))
	defer cancel()
	for over := false; ; {
		if err := call.Aside(ctx, func(context.Context) error {
			err := d.Mailbox.Await(waiting, q)
			if over = errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; over {
				return nil // it looks once more: what came last was perhaps not told
			}
			return err
		}); err != nil {
			return agentmail.Inbox{}, err
		}
		if in, err = d.Mailbox.Read(ctx, q); err != nil || over || len(in.Messages) > 0 {
			return in, err
		}
	}
}

// Summary implements discovery.Summarizer.
func (in Inbox) Summary() string {
	switch len(in) {
	case 0:
		return "No messages"
	case 1:
		return "1 message"
	}
	return fmt.Sprintf("%d messages", len(in))
}
