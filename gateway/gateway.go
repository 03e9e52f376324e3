package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// Options configure a Gateway. Registry and Profile are required.
type Options struct {
	Registry *discovery.Registry
	Profile  Profile
	Settings SettingsSource // nil means FixedSettings{}
	Auditor  Auditor        // nil keeps no log
	Limiter  Limiter        // nil limits within this process

	// Faults turns an error that a command returned into its public form. It
	// is asked for every error that is neither a discovery.Fault nor the end of
	// the command's context; nil, or an answer of nil, makes EXECUTION_ERROR
	// without the error's text, which the caller may not be allowed to see.
	Faults func(error) *discovery.Fault

	// Context makes the context of a command from its caller's, for a store that has to know
	// which principal it works for. nil leaves it as it is.
	Context func(context.Context, Principal) context.Context

	// Until makes the context of a command's run, which ends with a *discovery.Fault as its
	// cause when everything is stopped. nil leaves it as it is.
	Until func(context.Context) (context.Context, context.CancelFunc)

	// StateKey returns a key that authenticates the states of questions, the same in every process
	// that may be given the answer. nil, or an error, means one of this process: an answer to
	// another process's question is refused then.
	StateKey func(context.Context) ([]byte, error)

	AdminHint   string           // what to do to become the administrator
	SendHint    string           // what to do about an extension that lets something leave and is denied
	FailureHint string           // what to do about an error inside the program
	Logger      *slog.Logger     // nil discards
	Now         func() time.Time // nil means time.Now
}

// Gateway takes commands. It is safe for concurrent use.
type Gateway struct {
	o        Options  // with its defaults
	stateKey [32]byte // authenticates the states of questions
	runs     refusedRuns
}

// New makes a Gateway. Its Close is for the end of the process.
func New(o Options) (*Gateway, error) {
	switch {
	case o.Registry == nil:
		return nil, errors.New("gateway: no registry")
	case o.Profile.Allows == nil:
		return nil, errors.New("gateway: no profile: only the reserved commands would exist; FullProfile has every command")
	}
	if o.Settings == nil {
		o.Settings = FixedSettings{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Limiter == nil {
		o.Limiter = &memoryLimiter{now: o.Now, due: map[string]time.Time{}}
	}
	if o.Context == nil {
		o.Context = func(ctx context.Context, _ Principal) context.Context { return ctx }
	}
	o.AdminHint = cmp.Or(o.AdminHint, "Only the administrator may run it.")
	o.SendHint = cmp.Or(o.SendHint, notGiven)
	o.FailureHint = cmp.Or(o.FailureHint, "Try again. If it fails again, look at the log on standard error.")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{o: o, stateKey: newStateKey()}
	g.runs.record = func(e AuditEntry) {
		if err := g.record(context.Background(), e, auditTime); err != nil {
			o.Logger.Error("audit entry not written", "error_type", fmt.Sprintf("%T", err))
		}
	}
	return g, nil
}

// Do executes one command. It always answers; it stops the command when ctx ends or
// its own deadline passes, and returns once the command has stopped. With a Ticket
// the command waits for its turn first, and its deadline includes that wait: nobody
// waits longer than they said for an answer, and the answer of a command that did
// not start says so.
func (g *Gateway) Do(ctx context.Context, r Request) Answer {
	x := &execution{Request: r, gateway: g, start: g.o.Now()}
	f := x.guarded(ctx)
	var a Answer
	finish := func() { a = x.finish(ctx, f) }
	if g.panics(finish) {
		x.asked, x.delivered, x.data = nil, nil, nil
		if f = g.internalFault(errPanic); g.panics(finish) { // without an entry then
			a = Answer{JSON: (&envelope{Error: &failure{Code: f.Code, Message: f.Message, Hint: f.Hint}}).encode(), Code: f.Code, Fault: f}
		}
	}
	return a
}

// guarded runs the command. A panic is a fault: whatever a message or a server provokes
// must not end the process that other commands run in.
func (x *execution) guarded(ctx context.Context) (f *discovery.Fault) {
	run := func() {
		if f = x.run(ctx); f != nil && len(f.Examples) > 0 && f.Code != discovery.StoreError {
			ctx, cancel := context.WithTimeout(ctx, brief) // an example is not worth more
			defer cancel()
			d, g := *f, x.gateway
			d.Examples = g.o.Registry.Here(g.o.Context(ctx, x.Principal), cmp.Or(x.call.Account, x.plan.account()), d.Examples)
			f = &d
		}
	}
	if x.gateway.panics(run) {
		x.asked, x.delivered = nil, nil
		return x.gateway.internalFault(errPanic)
	}
	return f
}

var errPanic = errors.New("gateway: a panic")

// panics reports whether do panicked, and logs that.
func (g *Gateway) panics(do func()) (panicked bool) {
	defer func() {
		v := recover()
		if panicked = v != nil; !panicked {
			return
		}
		// A runtime error speaks of the program alone; any other value may carry what the
		// command was working on.
		text := fmt.Sprintf("%T", v)
		if e, ok := v.(runtime.Error); ok {
			text = e.Error()
		}
		g.o.Logger.Error("command panicked", "panic", text, "stack", string(debug.Stack()))
	}()
	do()
	return false
}

// own is the fault that a command made itself, which holds even when its time is over or
// its caller gave up; nil where it leaves the words to the gateway. A store that could not be
// used says more than that the time is over.
func (g *Gateway) own(err error) *discovery.Fault {
	if f := discovery.AsFault(err); f != nil {
		return f
	}
	f := g.public(err)
	if u := discovery.Undecided(nil); f == nil || f.Code == discovery.StoreError || errors.As(err, &u) && u.Undecided() {
		return f
	}
	return nil
}

// public asks Options.Faults.
func (g *Gateway) public(err error) (f *discovery.Fault) {
	if g.o.Faults == nil || g.panics(func() { f = g.o.Faults(err) }) {
		return nil
	}
	return f
}

func (g *Gateway) internalFault(err error) *discovery.Fault {
	g.o.Logger.Error("command failed", "error_type", fmt.Sprintf("%T", err))
	return &discovery.Fault{Code: discovery.ExecutionError, Message: "The command failed for a reason inside the program.", Hint: g.o.FailureHint, Err: err}
}

// fault gives any error its public form. It is the gateway's half of the one
// mapping; the other half is Options.Faults.
func (g *Gateway) fault(ctx context.Context, err error, c *discovery.Command) *discovery.Fault {
	f := g.own(err)
	if f == nil && ctx.Err() != nil {
		f = &discovery.Fault{Code: discovery.ExecutionError, Message: "The command was cancelled.", Hint: "Run it again if it is still wanted.", Err: err}
	}
	if f == nil {
		f = g.public(err)
	}
	if f == nil {
		f = g.internalFault(err)
	}
	d := *f
	if c != nil && d.Usage() && len(d.Examples) == 0 {
		d.Examples = c.Examples[:1]
	}
	if d.Hint == "" {
		d.Hint = "Run 'help' for the available commands."
	}
	return &d
}
