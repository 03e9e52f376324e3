package prompt

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/cmd/postern/internal/terminal"
	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// The person on a terminal who holds the administrator's key approves what is sent:
// 'outbox approve ID', without the code, shows the message and asks, and a send or a deletion
// that needs a person's word asks at once. So does what a person sends whose administrator's key
// 'approve' would find, and what only shows something, or takes something back, asks before it takes that. Nothing else acts
// with a key that was found: an agent can have a terminal, too.

// mayAsk reports whether commands may ask the person at the prompt.
func (c *conversation) mayAsk() bool { return c.Principal.Admin && !c.JSON }

// decidesHere reports whether what this person sends is theirs to approve at once: they are the
// administrator, or the key is where 'approve' finds it.
func (c *conversation) decidesHere() bool {
	return c.mayAsk() || c.KeyKept != nil && !c.JSON && c.KeyKept()
}

// approveOne is 'outbox approve ID' without a code: it shows the message whole, and sends it if
// the person says so.
func (c *conversation) approveOne(ctx context.Context, id string) {
	o, ok := c.entry(ctx, id)
	if !ok {
		return
	}
	ask, may := asking[o.Decision().Step]
	if !may {
		_, _ = io.WriteString(c.Stdout, c.look().Render(gateway.Answer{Result: o}))
		return
	}
	if !c.presents(ctx, o, ask.question) || !yes(c.typed(ctx, "y "+ask.yes+", anything else leaves "+ask.them+": ")) {
		c.status = discovery.ApprovalRequired.ExitStatus()
		c.tell("Nothing was done. " + c.typedAs("outbox reject "+o.ID) + " refuses it for good.")
		return
	}
	if a := c.do(ctx, approval(o)); a.Code != discovery.Conflict || !c.overtaken(ctx, o.ID) {
		c.show(a)
	}
}

// asking has how a person is asked about what would be done with an entry, what a yes does, and
// what else stays as it is. Nobody is asked about any other step.
var asking = map[outbox.Step]struct{ question, yes, them string }{
	outbox.StepSend:            {"Send exactly this?", "sends it", "it as it is"},
	outbox.StepSendAgain:       {"It may have arrived already. Send it again?", "sends it", "it as it is"},
	outbox.StepDelete:          {"Delete exactly these for good? It is final: nothing brings them back.", "deletes", "them as they are"},
	outbox.StepDeleteRest:      {"Delete what is left of these for good? It is final.", "deletes", "them as they are"},
	outbox.StepRun:             {"Change exactly these? 'undo' with the id above takes it back.", "changes", "them as they are"},
	outbox.StepRunRest:         {"Change what is left of these? 'undo' with the id above takes it back.", "changes", "them as they are"},
	outbox.StepUnsubscribe:     {"Unsubscribe from exactly these lists?", "asks their servers", "it as it is"},
	outbox.StepUnsubscribeRest: {"They may have been asked already. Ask once more where no answer is known?", "asks their servers", "it as it is"},
}

// approval is the command that approves an entry as it was shown.
func approval(entry *commands.OutboxShowResult) string {
	return discovery.JoinCommand([]string{"outbox", "approve", entry.ID, "--code", entry.Code})
}

// overtaken tells what somebody else decided about an entry meanwhile, once that is
// known. ok is false where it is not within a few seconds.
func (c *conversation) overtaken(ctx context.Context, id string) (ok bool) {
	for range 10 {
		a := c.do(ctx, command("outbox", "show", id))
		if r, ok := a.Result.(*commands.OutboxShowResult); ok && r.Decision().Ended() { // else it may be leaving
			c.tell("Somebody else decided about it. " + a.Message + ".")
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(500 * time.Millisecond):
		}
	}
	return false
}

// said runs a command about an entry and tells in a line what it did, or why it did not. It
// reports whether the entry waits no more.
func (c *conversation) said(ctx context.Context, line string, entry *commands.OutboxShowResult) (decided bool) {
	a := c.do(ctx, line)
	if a.Success() && a.Message != "" {
		a.Delivered()
		c.status = 0
		c.tell(a.Message + ".")
		return true
	}
	if c.status = a.ExitStatus(); a.Code == discovery.Conflict && c.overtaken(ctx, entry.ID) {
		return true
	}
	c.show(a)
	now := c.stateOf(ctx, entry.ID) // somebody else may have decided
	return a.Success() || now != mail.OutboxWaiting && now != ""
}

// ApproveWaiting shows each entry of the outbox that waits for a person, the oldest first, asks
// about it and goes on. With an id, or the beginning of one, only those are shown. The
// principal must be the administrator and standard input a terminal. The status is 0 if
// every entry was decided and each decision was carried out.
func ApproveWaiting(ctx context.Context, o Options, id string) (status int, err error) {
	c, end := begin(o)
	defer end()
	return c.approveAll(ctx, id), ctx.Err()
}

func (c *conversation) approveAll(ctx context.Context, id string) (status int) {
	ids, ok := c.waiting(ctx, id)
	switch {
	case !ok:
		return c.status
	case len(ids) == 0:
		return c.nothing(id)
	}
	left, failed := 0, 0
	for i, id := range ids {
		c.status = 0
		fmt.Fprintf(c.Stdout, "\n%d of %d\n", i+1, len(ids))
		decided, on := c.walk(ctx, id, true)
		if !decided {
			left++
		} else if c.status != 0 {
			failed = c.status
		}
		if !on {
			left += len(ids) - i - 1
			break
		}
	}
	if left == 0 {
		return failed
	}
	fmt.Fprintf(c.Stdout, "Still waiting: %d.\n", left)
	return discovery.ApprovalRequired.ExitStatus()
}

// nothing says that nothing waits that has this id, or at all where that is empty.
func (c *conversation) nothing(id string) (status int) {
	if id == "" {
		c.tell("Nothing waits for you.")
		return 0
	}
	c.tell("Nothing that waits has this id: " + c.typedAs("approve") + " without one shows all.")
	return discovery.NotFound.ExitStatus()
}

// waiting returns the ids of what waits, the oldest first. If it fails, the person has been
// told.
func (c *conversation) waiting(ctx context.Context, prefix string) (ids []string, ok bool) {
	r, ok := resultOf[*commands.OutboxListResult](ctx, c, "outbox list --state waiting --limit 500")
	if !ok {
		return nil, false
	}
	for _, entry := range slices.Backward(r.Messages) {
		if strings.HasPrefix(entry.ID, prefix) {
			ids = append(ids, entry.ID)
		}
	}
	return ids, true
}

// walk shows one entry and asks what becomes of it. on is false where the person ends, which
// they can where more are to come.
func (c *conversation) walk(ctx context.Context, id string, more bool) (decided, on bool) {
	o, ok := c.entry(ctx, id)
	if !ok {
		return false, ctx.Err() == nil
	}
	d := o.Decision()
	ask, may := asking[d.Step]
	switch {
	case !d.Waits():
		c.tell("It does not wait any more.")
		return true, true
	case !may:
		c.tell(d.WhyNot)
		return false, true
	}
	seen := *o
	seen.Code = ""
	if !c.presents(ctx, &seen, ask.question) {
		return false, ctx.Err() == nil
	}
	question := "y " + ask.yes + ", n refuses it, Enter leaves it waiting"
	if more {
		question += ", q ends"
	}
	for {
		answer, err := c.readNow(ctx, c.begun(question+": "))
		if err != nil {
			fmt.Fprintln(c.Stdout)
			return false, false
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return c.said(ctx, approval(o), o), true
		case "n", "no":
			return c.refuse(ctx, o)
		case "q", "quit":
			return false, false
		case "":
			return false, true
		}
		c.tell("That is no answer, and nothing was decided.")
	}
}

// refuse refuses an entry, with a reason for whoever asked for it, if that was somebody else. A
// reason that is too long is asked for again. The results are those of walk.
func (c *conversation) refuse(ctx context.Context, o *commands.OutboxShowResult) (decided, on bool) {
	for {
		line := []string{"outbox", "reject", o.ID}
		if by := o.Principal; by != c.Principal.Name && by != c.Person {
			why, err := c.read(ctx, c.begun("Why, for "+screen.Line(by)+" to read? Enter for no reason: "))
			if err != nil {
				fmt.Fprintln(c.Stdout)
				return false, false
			}
			if why = strings.TrimSpace(why); why != "" {
				line = append(line, "--reason="+why)
			}
		}
		decided = c.said(ctx, command(line...), o)
		if len(line) == 3 || c.status != discovery.ValidationError.ExitStatus() {
			return decided, true
		}
	}
}

// stateOf is the state of an entry of the outbox; empty where that cannot be told.
func (c *conversation) stateOf(ctx context.Context, id string) mail.OutboxState {
	if r, ok := c.do(ctx, command("outbox", "show", id)).Result.(*commands.OutboxShowResult); ok {
		return r.State
	}
	return ""
}

// entry is an entry of the outbox with all of its text. If it fails, the person has been told.
func (c *conversation) entry(ctx context.Context, id string) (entry *commands.OutboxShowResult, ok bool) {
	a := c.do(ctx, command("outbox", "show", id))
	r, ok := a.Result.(*commands.OutboxShowResult)
	if !ok {
		c.show(a)
		return nil, false
	}
	a.Delivered()
	whole := *r.Whole()
	whole.NextAction = nil
	return &whole, true
}

// presents shows an entry and the question about it, a page at a time. It reports whether all of
// it was shown.
func (c *conversation) presents(ctx context.Context, entry *commands.OutboxShowResult, question string) bool {
	shown := strings.TrimRight(c.look().Render(gateway.Answer{Result: entry}), "\n")
	if c.page(ctx, append(strings.Split(shown, "\n"), "", c.look().Strong(question))) {
		return true
	}
	c.tell("Not all of it was shown, so you are not asked.")
	return false
}

// typed is the person's answer to a question; empty without one.
func (c *conversation) typed(ctx context.Context, question string) string {
	answer, err := c.readNow(ctx, c.begun(question))
	if err != nil {
		fmt.Fprintln(c.Stdout)
		return ""
	}
	return answer
}

// key is a key that a question names, which stays with what it does.
var key = regexp.MustCompile(`(^|, )(\w+) `)

// begun writes what does not fit into the last line of a question, and returns that line.
func (c *conversation) begun(question string) string {
	lines := screen.Words(key.ReplaceAllString(strings.TrimRight(question, " "), "$1$2\u00a0"), c.look().Width-2)
	for _, l := range lines[:len(lines)-1] {
		fmt.Fprintln(c.Stdout, l)
	}
	return lines[len(lines)-1] + " "
}

// page shows lines, as many at a time as the window has. It reports whether all of
// them were shown.
func (c *conversation) page(ctx context.Context, lines []string) bool {
	for shown := 0; ; {
		_, height := terminal.Size(c.Stdout)
		n := min(max(height-3, 1), len(lines)-shown)
		for _, l := range lines[shown : shown+n] {
			fmt.Fprintln(c.Stdout, l)
		}
		if shown += n; shown == len(lines) {
			return true
		}
		answer, err := c.readNow(ctx, c.begun(fmt.Sprintf("-- %d of %d lines; Enter shows more, q stops: ", shown, len(lines))))
		if err != nil {
			fmt.Fprintln(c.Stdout)
		}
		if err != nil || strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "q") {
			return false
		}
	}
}
