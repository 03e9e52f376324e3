package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
)

// execution is one command on its way.
type execution struct {
	Request
	gateway *Gateway
	start   time.Time
	limit   time.Duration    // of the command
	reply   *discovery.Reply // authentic

	settings    Settings
	settingsErr error
	plan        plan
	call        discovery.Call

	result    any // what the command returned, where the answer has all of it
	data      []byte
	message   string
	untrusted []string
	cut       bool // the answer was made smaller to fit
	failed    discovery.Code
	asked     *Asked

	changes   changesNoted // for the audit entry
	progress  *progress
	delivered []func() // for Answer.Delivered
	back      *Ticket  // of a command that stood aside
	crowded   bool     // it stood aside and found no place to go on in time
}

const (
	// brief is how long a command that needs no vault waits for the settings: they only
	// shorten what help shows.
	brief = 500 * time.Millisecond
	// penalty is how long a call beyond the rate waits for its refusal, so that
	// a caller in a loop fills the audit log slowly.
	penalty = time.Second
)

// run takes the command from its tokens to data, or returns why not. The
// command's own deadline bounds all of it, the waits for its turn and for the
// settings included. All is decided at its turn, by the settings of that moment; only
// tokens that peek finds to be wrong, or not to name a command, do not wait.
func (x *execution) run(ctx context.Context) *discovery.Fault {
	g := x.gateway
	tokens, refusal := x.tokens()
	if x.Reply != nil && x.Refusal == nil {
		refusal = cmp.Or(x.openReply(ctx), refusal)
	}
	effect, ahead := g.peek(tokens)
	x.plan.full, x.limit = x.Full || ahead.Full, ahead.Timeout
	if refusal != nil || ahead.Wrong {
		effect = discovery.Meta
	}
	ctx, cancel := context.WithTimeout(g.o.Context(ctx, x.Principal), ahead.Timeout)
	defer cancel()
	inLine := effect
	if ahead.Urgent {
		inLine = discovery.Meta
	}
	f := x.await(ctx, inLine, ahead.Timeout)
	if f == nil {
		f = cmp.Or(x.prepare(ctx, effect == discovery.Meta, ahead.Urgent && ahead.Bare), refusal)
	}
	if tokens != nil || refusal == nil { // also what is refused is named in the audit log
		f = cmp.Or(f, x.plan.resolve(g, x.Principal, &x.settings, tokens))
	}
	if f == nil {
		f = x.plan.bind(g, x.Principal, &x.settings)
	}
	if f == nil && x.plan.command.Effect != discovery.Meta {
		f = x.settingsFault(ctx, ahead.Timeout)
	}
	if f != nil {
		return x.inPieces(f)
	}
	return x.execute(ctx, ahead.Timeout)
}

// inPieces is the fault of a command that is too long with the way that this command has for
// more; any other fault as it is.
func (x *execution) inPieces(f *discovery.Fault) *discovery.Fault {
	long := func(t string) bool { return utf8.RuneCountInString(t) > MaxArgumentChars }
	words := x.Tokens
	if words == nil && long(x.Line) {
		words = strings.Fields(plain.Clip(x.Line, MaxShownCommand))
	}
	if f.Code != discovery.ParseError || !long(x.Line) && !slices.ContainsFunc(words, long) {
		return f
	}
	visible := func(c *discovery.Command) bool { return x.gateway.authorize(x.Principal, &x.settings, c) == nil }
	found, err := x.gateway.o.Registry.Resolve(words, visible)
	if c := found.Command; err == nil && c != nil && c.TooLong.Hint != "" && visible(c) {
		d := *f
		d.Hint, d.Examples = c.TooLong.Hint, []string{c.TooLong.Example}
		return &d
	}
	return f
}

// prepare reads the settings and charges the rate. What is urgent has no rate until it has
// stopped everything: it would be held up by what it is to stop.
func (x *execution) prepare(ctx context.Context, optional, urgent bool) *discovery.Fault {
	waiting := ctx
	if optional {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, brief)
		defer cancel()
	}
	x.settings, x.settingsErr = x.gateway.o.Settings.Settings(waiting, optional)
	var limited *discovery.Fault
	var err error
	if !urgent || x.settings.Stopped != nil {
		limited, err = x.gateway.takeRate(waiting, x.Principal, &x.settings)
	}
	if x.settingsErr == nil {
		x.settingsErr = err
	}
	if limited != nil {
		x.Ticket.Finish() // nobody else is to wait for the penalty
		select {
		case <-ctx.Done():
		case <-time.After(penalty):
		}
		return limited
	}
	return x.gateway.valid(ctx, x.Principal)
}

// settingsFault is the answer to a command whose settings could not be read.
func (x *execution) settingsFault(ctx context.Context, timeout time.Duration) *discovery.Fault {
	switch {
	case x.settingsErr == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && x.gateway.own(x.settingsErr) == nil:
		return timeoutFault(timeout, x.settingsErr)
	}
	return x.gateway.fault(ctx, x.settingsErr, nil)
}

// execute runs the bound command and encodes what it returns.
func (x *execution) execute(ctx context.Context, timeout time.Duration) *discovery.Fault {
	g, p, l := x.gateway, x.Principal, &x.plan
	x.progress = startProgress(x.Request.Progress)
	defer x.progress.end()
	x.call = discovery.Call{Link: link{x}, Reply: x.reply, Full: l.full, Caller: discovery.Caller{Principal: p.Name, Admin: p.admin(), Profile: g.profileFor(p).Name,
		Identity: cmp.Or(p.Scope, &Scope{}).Identity, CanAsk: x.mayAsk(), Unasked: p.Unasked,
		Visible: func(c *discovery.Command) bool { return g.authorize(p, &x.settings, c) == nil }}}
	defer func() { x.back.Finish() }()
	if g.o.Until != nil && !standing(l.command) {
		var over context.CancelFunc
		ctx, over = g.o.Until(ctx)
		defer over()
	}
	result, err := l.command.Run(context.WithValue(ctx, changesKey{}, &x.changes), &x.call, l.bound)
	if err != nil {
		err = x.question(ctx, err)
		if f := discovery.AsFault(context.Cause(ctx)); f != nil && g.own(err) == nil {
			return f
		}
		// What the command itself says holds: it may have done something by then.
		if g.own(err) == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			if x.crowded {
				return crowdedFault(timeout, err)
			}
			return g.late(ctx, timeout, err)
		}
		return g.fault(ctx, err, l.command)
	}
	if c, ok := result.(discovery.Checker); ok {
		x.failed = c.Failed()
	}
	if err := x.encode(result); err != nil {
		return g.fault(ctx, err, l.command)
	}
	return nil
}

// link is the discovery.Link of an execution.
type link struct{ x *execution }

func (l link) Progress(done, total float64, message string) {
	l.x.progress.report(done, total, message)
}
func (l link) Announce(message string) { l.x.progress.announce(message) }
func (l link) Delivered(done func())   { l.x.delivered = append(l.x.delivered, done) }

// late is the fault of a command whose time is over. Where the store does not answer now either,
// that is why.
func (g *Gateway) late(ctx context.Context, after time.Duration, err error) *discovery.Fault {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), brief)
	defer cancel()
	if _, away := g.o.Settings.Settings(asking, true); away != nil {
		if f := g.own(away); f != nil {
			return f
		}
	}
	return timeoutFault(after, err)
}

func timeoutFault(after time.Duration, err error) *discovery.Fault {
	return &discovery.Fault{Code: discovery.Timeout, Message: fmt.Sprintf("The command was stopped after %s.", after),
		Hint: "Ask for less, or allow more time with --timeout SECONDS (at most 300).", Err: err}
}

// crowdedFault is for a command that waited for something outside and then found no free
// place among the calls at work.
func crowdedFault(after time.Duration, err error) *discovery.Fault {
	return &discovery.Fault{Code: discovery.Timeout, Err: err,
		Message: fmt.Sprintf("The command waited and could not go on within %s, since too many other calls were at work.", after),
		Hint:    "Send it again when those are answered, or allow more time with --timeout SECONDS (at most 300), which includes both waits."}
}

// encode makes the data of what is to be shown of a result, smaller until they fit.
func (x *execution) encode(result any) error {
	l := &x.plan
	for range 10 {
		view := l.command.View(result, l.full)
		data, err := marshal(view)
		if err != nil {
			return err
		}
		if x.data, err = l.projection.Apply(data); err != nil {
			return err
		}
		const room = MaxAnswerBytes - 4096 // for message and _meta
		if len(x.data) <= room || x.call.Bytes {
			if s, ok := view.(discovery.Summarizer); ok {
				x.message = s.Summary()
			}
			x.message, x.cut = cmp.Or(x.call.Cut, x.message), x.cut || x.call.Cut != ""
			labelled := false
			if !l.full {
				x.data, labelled = l.command.Label(x.data)
			}
			if !labelled {
				x.untrusted = l.command.Untrusted(x.data, l.full)
			}
			if l.projection == nil {
				x.result = result
			}
			return nil
		}
		t, ok := result.(discovery.Truncator)
		if !ok || !t.Truncate(float64(room)/float64(len(x.data))) {
			break
		}
		x.cut = true
	}
	x.data = nil
	return &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf("The answer would exceed %d KiB.", MaxAnswerBytes>>10),
		Hint: "Ask for less: a smaller --limit, or only some fields with --fields."}
}

// finish audits the command and makes its envelope.
func (x *execution) finish(ctx context.Context, f *discovery.Fault) Answer {
	g, now := x.gateway, x.gateway.o.Now()
	duration := now.Sub(x.start)
	command, ms := x.told(), duration.Milliseconds()
	m := meta{Untrusted: x.untrusted}
	if x.plan.full {
		m.Now, m.Truncated = now.UTC().Format(time.RFC3339), x.cut
	}
	if err := x.audit(ctx, f, command, duration); err != nil {
		g.o.Logger.Error("audit entry not written", "error_type", fmt.Sprintf("%T", err))
		switch {
		case x.plan.command == nil || x.plan.command.Effect == discovery.Meta:
			// Nothing was shown or done that a log is kept for.
		case f == nil && x.plan.command.Effect == discovery.Read:
			// Nothing is shown that is not on record.
			f = g.fault(ctx, err, nil)
		case f == nil:
			// What was done is done; an error would say that it was not.
			m.Audit = "this command took effect, but its audit entry could not be written"
		}
	}
	e := envelope{Success: f == nil}
	if f == nil {
		e.Data, e.Message = x.data, x.message
	} else {
		e.Error, m.Untrusted = &failure{Code: f.Code, Message: f.Message, Hint: f.Hint, Examples: f.Examples}, nil
		if f.Foreign {
			m.Untrusted = []string{"error.message", "error.hint"}
		}
	}
	if m.Untrusted != nil || m.Audit != "" || x.plan.full { // 002 sections 5.1.1 and 5.1.2 name what it has
		m.Command, m.DurationMS, e.Meta = command, &ms, &m
	}
	if f == nil {
		return Answer{JSON: e.encode(), Failed: x.failed, Receipts: x.delivered, Result: x.result, Data: x.data, Message: x.message, Cut: x.cut, Audit: m.Audit}
	}
	return Answer{JSON: e.encode(), Code: f.Code, Asked: x.asked, Fault: f}
}

// auditTime bounds the writing of an entry, which goes on when the caller has gone: the
// command was executed all the same. It waits little where the store has just been waited for
// in vain, and past the time of a command that is not answered without an entry.
const auditTime = 10 * time.Second

func (x *execution) audit(ctx context.Context, f *discovery.Fault, command string, duration time.Duration) (err error) {
	if x.gateway.o.Auditor == nil {
		return nil
	}
	e := AuditEntry{Time: x.start, Principal: x.Principal.Name, Account: cmp.Or(x.call.Account, x.plan.account()), Command: command,
		Target: x.call.Target, Changes: x.changes.noted(), Allowed: true, Reason: x.call.Reason, Duration: duration}
	if x.plan.command != nil {
		e.Parsed = x.plan.command.Path
	}
	if f != nil {
		e.Code, e.Reason = string(f.Code), f.Reason
		e.Allowed = f.Reason == ""
	}
	x.attribute(&e)
	limit := auditTime
	switch c := x.plan.command; {
	case x.settingsErr != nil, c == nil, c.Effect == discovery.Meta, f != nil && f.Code == discovery.StoreError:
		limit = brief
	case c.Effect == discovery.Read:
		limit = min(limit, max(x.limit-duration, brief))
	}
	if x.gateway.runs.counted(e) {
		return nil
	}
	return x.gateway.record(ctx, e, limit)
}

func (g *Gateway) record(ctx context.Context, e AuditEntry, limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if g.panics(func() { err = g.o.Auditor.Record(ctx, e) }) {
		return errPanic
	}
	return err
}
