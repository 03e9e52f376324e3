package gateway

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// Order is the line in which the commands of one connection stand. A client may
// send many without waiting for answers; what they do and what they show is then
// as if they had run one after another in the order in which they arrived:
//
//   - a command that changes something (any effect above discovery.Read) starts
//     when everything that arrived before it has finished. It waits for reads too:
//     a message that is fetched and then deleted must not be gone before it is
//     fetched.
//   - a read starts when every change that arrived before it has finished, so that
//     it sees them. Reads that stand next to each other run side by side and end in
//     any order.
//   - a command about the commands (discovery.Meta), and tokens that name no command,
//     neither wait nor are waited for.
//
// Nothing is ordered between two connections, nor where there is no Order.
//
// A transport takes a Ticket for each request as it arrives, hands it to Gateway.Do in the
// Request, and finishes it whatever the outcome. A command holds its place in a limit on
// what runs at once while it stands in line; where there is such a limit, requests must
// come into it in the order of their tickets, or those that wait could keep out the one
// they wait for.
//
// The zero Order is empty and ready. It is safe for concurrent use.
type Order struct {
	mu   sync.Mutex
	line list.List // of *Ticket: the unfinished requests, oldest first
}

// A Ticket is one request's place in an Order. Its methods work on a nil Ticket,
// which never waits.
type Ticket struct {
	order *Order

	turn chan struct{} // closed when it is its turn

	// Under order.mu:
	place *list.Element // nil once finished
	kind  ticketKind
	may   bool // turn is closed
}

// A ticketKind is what is known of a request. A zero kind may become a change, so
// nothing passes it.
type ticketKind uint8

const (
	reads ticketKind = iota + 1
	changes
)

// errFinished is a bug: the Ticket was already used for a command.
var errFinished = errors.New("the command's ticket is finished")

// Ticket gives the next request its place. Until Finish, everything that arrives
// later and must not overtake it waits.
func (o *Order) Ticket() *Ticket {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := &Ticket{order: o, turn: make(chan struct{})}
	t.place = o.line.PushBack(t)
	return t
}

// Finish leaves the line for good. It may be called more than once, but not before
// the request has stopped changing anything.
func (t *Ticket) Finish() {
	if t == nil {
		return
	}
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	if t.place != nil {
		t.order.line.Remove(t.place)
		t.place = nil
		t.order.advance()
	}
}

// Rejoin gives a request that has left the line a place in it again: before all
// that have not started, since it came before them, and behind what is at work. It
// returns the new Ticket. A request that left the line to wait for a person goes on
// with it, and waits for nothing that could itself wait for its place in a limit.
func (t *Ticket) Rejoin() *Ticket {
	if t == nil {
		return nil
	}
	o := t.order
	o.mu.Lock()
	defer o.mu.Unlock()
	rejoined := &Ticket{order: o, turn: make(chan struct{})}
	for e := o.line.Front(); e != nil; e = e.Next() {
		if !e.Value.(*Ticket).may {
			rejoined.place = o.line.InsertBefore(rejoined, e)
			return rejoined
		}
	}
	rejoined.place = o.line.PushBack(rejoined)
	return rejoined
}

// wait tells the line the effect of the command, and returns nil when it is the command's
// turn. A command of effect Meta leaves the line. It may not start when ctx has ended, even
// if its turn has come as well: it leaves the line, and the error is that of ctx.
func (t *Ticket) wait(ctx context.Context, effect discovery.Effect) error {
	switch {
	case t == nil:
		return ctx.Err()
	case effect == discovery.Meta:
		t.Finish()
		return nil
	}
	kind := changes
	if effect <= discovery.Read {
		kind = reads
	}
	if err := t.declare(kind); err != nil {
		return err
	}
	select {
	case <-t.turn:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		t.Finish()
	}
	return ctx.Err()
}

// declare says what kind of request it is, once.
func (t *Ticket) declare(k ticketKind) error {
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	if t.place == nil || t.kind != 0 {
		return errFinished
	}
	t.kind = k
	t.order.advance()
	return nil
}

// advance tells all whose turn it is: the reads at the head of the line, or the
// change that is its head.
func (o *Order) advance() {
	for e := o.line.Front(); e != nil; e = e.Next() {
		t := e.Value.(*Ticket)
		if t.kind != reads && (t.kind != changes || e != o.line.Front()) {
			return
		}
		if !t.may {
			t.may = true
			close(t.turn)
		}
		if t.kind == changes {
			return
		}
	}
}

// await waits for a command's turn, within its deadline. Its Fault says that the command
// did not start, so that a caller knows that nothing of it happened.
func (x *execution) await(ctx context.Context, effect discovery.Effect, after time.Duration) *discovery.Fault {
	err := x.Ticket.wait(ctx, effect)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errFinished):
		return x.gateway.internalFault(err)
	case errors.Is(err, context.DeadlineExceeded):
		return &discovery.Fault{Code: discovery.Timeout, Reason: notStarted, Err: err,
			Message: fmt.Sprintf("The command did not start within %s, since commands sent before it were still running. Nothing was done.", after),
			Hint:    "Send it again when those are answered, or allow more time with --timeout SECONDS (at most 300), which includes the wait."}
	}
	return &discovery.Fault{Code: discovery.ExecutionError, Reason: notStarted, Err: err,
		Message: "The command was cancelled before it started. Nothing was done.", Hint: "Send it again if it is still wanted."}
}

// Aside lets the commands go on that came after this one while it waits for
// something outside. After wait it stands in line before all that have not started.
// Meanwhile it is not among the calls at work, and then needs a place among them again. If
// ctx ends first, the error says so: the command may not go on, whatever wait found.
func (l link) Aside(ctx context.Context, wait func(context.Context) error) error {
	x := l.x
	err := x.aside(ctx, wait)
	if err == nil {
		// The caller's scope may have ended while it waited.
		if f := x.gateway.valid(ctx, x.Principal); f != nil {
			return f
		}
	}
	return err
}

func (x *execution) aside(ctx context.Context, wait func(context.Context) error) error {
	t := cmp.Or(x.back, x.Ticket)
	if t == nil {
		return wait(ctx)
	}
	t.Finish()
	err := x.paused(ctx, wait)
	x.back = t.Rejoin()
	return cmp.Or(err, x.back.wait(ctx, x.plan.command.Effect))
}

// paused waits while the call is not among those at work.
func (x *execution) paused(ctx context.Context, wait func(context.Context) error) (err error) {
	if x.Pause != nil {
		resume := x.Pause()
		defer func() {
			inTime := ctx.Err() == nil
			if !resume(ctx) {
				x.crowded, err = inTime, cmp.Or(err, ctx.Err())
			}
		}()
	}
	return wait(ctx)
}

// notStarted is the audit log's reason for a command that waited in vain.
const notStarted = "not_started"
