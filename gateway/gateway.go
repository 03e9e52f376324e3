package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
)

// Options configure a Gateway. Registry is required; a zero Profile offers the
// reserved commands only.
type Options struct {
	Registry *discovery.Registry
	Profile  Profile
	Settings SettingsSource // nil means FixedSettings{}
	Auditor  Auditor        // nil keeps no log
	Limiter  Limiter        // nil limits within this process

	// Faults turns an error that a command returned into its public form. It
	// is asked for every error that is neither a discovery.Fault nor the end of
	// the command's context; nil, or an answer of nil, makes EXECUTION_ERROR
	// without the error's text, which may hold what is not for the caller.
	Faults func(error) *discovery.Fault

	// Context makes the context of a command out of its caller's, for a store that
	// has to know on whose behalf it is asked. nil leaves it as it is.
	Context func(context.Context, Principal) context.Context

	AdminHint string           // what to do to become the administrator
	Logger    *slog.Logger     // nil discards
	Now       func() time.Time // nil means time.Now
}

// Gateway takes commands. It is safe for concurrent use.
type Gateway struct {
	registry  *discovery.Registry
	profile   Profile
	settings  SettingsSource
	auditor   Auditor
	limiter   Limiter
	faults    func(error) *discovery.Fault
	context   func(context.Context, Principal) context.Context
	adminHint string
	log       *slog.Logger
	now       func() time.Time
	stateKey  [32]byte // authenticates the states of questions
}

// New makes a Gateway.
func New(o Options) (*Gateway, error) {
	if o.Registry == nil {
		return nil, errors.New("gateway: no registry")
	}
	g := &Gateway{registry: o.Registry, profile: o.Profile, settings: o.Settings, auditor: o.Auditor, limiter: o.Limiter,
		faults: o.Faults, context: o.Context, adminHint: o.AdminHint, log: o.Logger, now: o.Now, stateKey: newStateKey()}
	if g.settings == nil {
		g.settings = FixedSettings{}
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.limiter == nil {
		g.limiter = &memoryLimiter{now: g.now, due: map[string]time.Time{}}
	}
	if g.context == nil {
		g.context = func(ctx context.Context, _ Principal) context.Context { return ctx }
	}
	if g.adminHint == "" {
		g.adminHint = "Only the administrator may run it."
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// Do executes one command string for a principal. It always answers; it stops
// the command when ctx ends or its own deadline passes, and returns once the
// command has stopped. With a Ticket (WithTicket) the command waits for its turn
// first, and its deadline includes that wait: nobody waits longer than they said
// for an answer, and the answer of a command that did not start says so.
func (g *Gateway) Do(ctx context.Context, p Principal, line string) Answer {
	x := &execution{gateway: g, principal: p, line: line, start: g.now(), shown: shownPrefix(line)}
	return g.finish(ctx, x, x.run(ctx, func() ([]string, error) { return Tokenize(line) }))
}

// DoTokens is Do for a caller that has tokens already, such as a process with an
// argument vector. The bounds of 002 section 4.2.2 hold for them too.
func (g *Gateway) DoTokens(ctx context.Context, p Principal, tokens []string) Answer {
	x := &execution{gateway: g, principal: p, start: g.now()}
	return g.finish(ctx, x, x.run(ctx, func() ([]string, error) { return tokens, checkTokens(tokens) }))
}

// Refuse answers a call that did not come as far as a command string, and audits
// it like one.
func (g *Gateway) Refuse(ctx context.Context, p Principal, f *discovery.Fault) Answer {
	ticketOf(ctx).Finish()
	x := &execution{gateway: g, principal: p, start: g.now()}
	return g.finish(ctx, x, cmp.Or(x.prepare(ctx, false), f))
}

func parseFault(err error) *discovery.Fault {
	return &discovery.Fault{Code: discovery.ParseError, Message: "The command string cannot be read: " + err.Error() + ".",
		Hint:     "Put a value that holds spaces or quotes in quotes, and close every quote.",
		Examples: []string{"help", "help version"}}
}

func checkTokens(tokens []string) error {
	if len(tokens) > MaxArguments {
		return fmt.Errorf("it has more than %d arguments", MaxArguments)
	}
	for i, t := range tokens {
		switch {
		case !utf8.ValidString(t):
			return fmt.Errorf("argument %d is not valid UTF-8", i+1)
		case strings.ContainsRune(t, 0):
			return fmt.Errorf("argument %d holds a NUL character", i+1)
		case len(t) > MaxArgumentChars && utf8.RuneCountInString(t) > MaxArgumentChars:
			return fmt.Errorf("argument %d is longer than %d characters", i+1, MaxArgumentChars)
		}
	}
	return nil
}

// shownPrefix is what may be repeated of a line that has no tokens: its leading
// plain words, since a quote that was never closed may hide anything behind it.
func shownPrefix(line string) string {
	end := 0
	for end < len(line) && end < 64 && (line[end] >= 'a' && line[end] <= 'z' || line[end] == ' ') {
		end++
	}
	if end == len(line) {
		return line
	}
	cut := strings.LastIndexByte(line[:end], ' ')
	return strings.TrimSpace(line[:max(cut, 0)]) + " …"
}

// execution is one command on its way.
type execution struct {
	gateway   *Gateway
	principal Principal
	line      string // as it came; empty where tokens came
	start     time.Time
	shown     string // of the command, safe to show
	reply     *discovery.Reply

	settings    Settings
	settingsErr error
	command     *discovery.Command
	call        discovery.Call

	data      []byte
	message   string
	untrusted []string
	cut       bool // the answer was made smaller to fit
	asked     *Asked

	delivered []func() // for Answer.Delivered
	back      *Ticket  // of a command that stood aside
	crowded   bool     // it stood aside and found no place to go on in time
}

func (x *execution) visible(c *discovery.Command) bool {
	return x.gateway.authorize(x.principal, &x.settings, c) == nil
}

// run takes the command from its tokens to data, or returns why not. The
// command's own deadline bounds all of it, the waits for its turn and for the
// settings included. The settings are those of its turn: what an earlier command
// or somebody else changed meanwhile holds.
func (x *execution) run(ctx context.Context, tokenize func() ([]string, error)) *discovery.Fault {
	g := x.gateway
	tokens, err := tokenize()
	timeout, effect := g.foresee(tokens)
	ctx, cancel := context.WithTimeout(g.context(ctx, x.principal), timeout)
	defer cancel()
	if effect != 0 {
		if f := g.turn(ctx, timeout, effect); f != nil {
			_, _ = x.resolve(tokens) // for the audit entry
			return f
		}
	}
	limited := x.prepare(ctx, effect > discovery.Meta)
	if err != nil {
		return cmp.Or(limited, parseFault(err))
	}
	rest, err := x.resolve(tokens)
	switch {
	case limited != nil:
		return limited
	case err != nil:
		return discovery.AsFault(err)
	}
	if f := g.authorize(x.principal, &x.settings, x.command); f != nil {
		return f
	}
	bound, err := x.command.Bind(rest, x.settings.Location)
	if err == nil && bound.Help {
		path := strings.Fields(x.command.Path)
		x.command = g.registry.Lookup("help")
		bound, err = x.command.Bind(path, nil)
	}
	if err != nil {
		return discovery.AsFault(err)
	}
	if x.settingsErr != nil && x.command.Effect != discovery.Meta {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return timeoutFault(timeout, x.settingsErr)
		}
		return g.fault(ctx, x.settingsErr, nil)
	}
	projection, err := x.command.Project(bound.Common.Fields)
	if err != nil {
		return discovery.AsFault(err)
	}
	return x.execute(ctx, timeout, bound, projection)
}

const (
	defaultTimeout = 30 * time.Second
	// brief is how long what needs no vault waits for one: the settings only
	// shorten what help shows, and nobody should wait for that.
	brief = 500 * time.Millisecond
	// penalty is how long a call beyond the rate waits for its refusal, so that
	// a caller in a loop fills the audit log slowly.
	penalty = time.Second
)

// foresee reads the deadline and the effect of a command before anything else is
// known of it. The effect of what is no command is discovery.Meta. It is 0 where
// the arguments are wrong, as far as can be told without the settings.
func (g *Gateway) foresee(tokens []string) (timeout time.Duration, effect discovery.Effect) {
	found, err := g.registry.Resolve(tokens, func(*discovery.Command) bool { return true })
	if err != nil || found.Command == nil || found.Command.Effect == discovery.Meta {
		return defaultTimeout, discovery.Meta
	}
	bound, err := found.Command.Bind(found.Rest, nil)
	switch {
	case err != nil:
		return defaultTimeout, 0
	case bound.Help:
		return defaultTimeout, discovery.Meta
	}
	return time.Duration(bound.Common.Timeout) * time.Second, found.Command.Effect
}

// prepare reads the settings and charges the rate.
func (x *execution) prepare(ctx context.Context, needsSettings bool) *discovery.Fault {
	waiting := ctx
	if !needsSettings {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, brief)
		defer cancel()
	}
	x.settings, x.settingsErr = x.gateway.settings.Settings(waiting, !needsSettings)
	limited, err := x.gateway.takeRate(waiting, x.principal, &x.settings)
	if x.settingsErr == nil {
		x.settingsErr = err
	}
	if limited != nil {
		ticketOf(ctx).Finish() // nobody else is to wait for the penalty
		select {
		case <-ctx.Done():
		case <-time.After(penalty):
		}
		return limited
	}
	return x.gateway.valid(ctx, x.principal)
}

// resolve finds the command and what may be shown of it. A group named alone is
// its help.
func (x *execution) resolve(tokens []string) (rest []string, err error) {
	found, err := x.gateway.registry.Resolve(tokens, x.visible)
	if err != nil {
		x.shown = x.gateway.shownUnknown(tokens)
		return nil, err
	}
	if found.Group != "" {
		x.command, x.shown = x.gateway.registry.Lookup("help"), joinTokens(tokens)
		return strings.Fields(found.Group), nil
	}
	x.command = found.Command
	written := tokens[:len(tokens)-len(found.Rest)]
	x.shown = joinTokens(append(slices.Clone(written), x.command.Redact(found.Rest)...))
	return found.Rest, nil
}

// shownUnknown is what may be written down of tokens that are no command: words
// that are one of a command's, or nearly. Anything else may be a password that was
// typed in the wrong place.
func (g *Gateway) shownUnknown(tokens []string) string {
	var words []string
	for _, t := range tokens[:min(2, len(tokens))] {
		if !g.registry.Resembles(t) {
			break
		}
		words = append(words, t)
	}
	shown := joinTokens(words)
	if len(words) < len(tokens) {
		shown = strings.TrimSpace(shown + " …")
	}
	return shown
}

func joinTokens(tokens []string) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		if t == discovery.Redacted || strings.HasSuffix(t, "="+discovery.Redacted) {
			b.WriteString(t)
		} else {
			b.WriteString(Quote(t))
		}
	}
	return b.String()
}

// execute runs the bound command and encodes what it returns.
func (x *execution) execute(ctx context.Context, timeout time.Duration, bound *discovery.Bound, projection *discovery.Projection) *discovery.Fault {
	g := x.gateway
	// This waits only for a command whose arguments are right by its settings alone;
	// any other has had its turn. None runs without.
	if f := g.turn(ctx, timeout, x.command.Effect); f != nil {
		return f
	}
	report, announce, quiet := progressOf(ctx)
	defer quiet()
	x.call = discovery.Call{Principal: x.principal.Name, Admin: x.principal.admin(), Profile: g.profileFor(x.principal).Name, Identity: x.principal.identity(), Visible: x.visible, Progress: report, Announce: announce,
		CanAsk: x.mayAsk(ctx), Unasked: x.principal.Unasked, Reply: x.reply, Aside: x.aside,
		Delivered: func(done func()) { x.delivered = append(x.delivered, done) }}
	defer func() { x.back.Finish() }()
	result, err := x.protected(ctx, bound)
	if err != nil {
		err = x.question(ctx, err)
		// What the command itself says holds: it may have done something by then.
		if g.own(err) == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			if x.crowded {
				return crowdedFault(timeout, err)
			}
			return timeoutFault(timeout, err)
		}
		return g.fault(ctx, err, x.command)
	}
	x.untrusted = projection.Untrusted(x.command.Untrusted())
	if err := x.encode(result, projection); err != nil {
		return g.fault(ctx, err, x.command)
	}
	if s, ok := result.(discovery.Summarizer); ok {
		x.message = s.Summary() // of what is shown, after any cut
	}
	return nil
}

func timeoutFault(after time.Duration, err error) *discovery.Fault {
	return &discovery.Fault{Code: discovery.Timeout, Message: fmt.Sprintf("The command was stopped after %s.", after),
		Hint: "Ask for less, or allow more time with --timeout SECONDS (at most 300).", Err: err}
}

// crowdedFault is for a command that waited for something outside and then found no
// place among those at work.
func crowdedFault(after time.Duration, err error) *discovery.Fault {
	return &discovery.Fault{Code: discovery.Timeout, Err: err,
		Message: fmt.Sprintf("The command waited and could not go on within %s, since too many other calls were at work.", after),
		Hint:    "Send it again when those are answered, or allow more time with --timeout SECONDS (at most 300), which includes both waits."}
}

// protected turns a panic of the command into an error: whatever a message or a
// server provokes must not end the process that other commands run in.
func (x *execution) protected(ctx context.Context, bound *discovery.Bound) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			x.gateway.log.Error("command panicked", "command", x.command.Path, "panic", panicText(v), "stack", string(debug.Stack()))
			result, err = nil, fmt.Errorf("panic in %s", x.command.Path)
		}
	}()
	return x.command.Run(ctx, &x.call, bound)
}

// panicText is what may be logged of a panic's value: the runtime's own words. Any
// other value may carry what the command was working on.
func panicText(v any) string {
	if e, ok := v.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", v)
}

// encode makes the data, and makes them smaller until they fit.
func (x *execution) encode(result any, projection *discovery.Projection) error {
	for range 10 {
		data, err := marshal(result)
		if err != nil {
			return err
		}
		if x.data, err = projection.Apply(data); err != nil {
			return err
		}
		const room = MaxAnswerBytes - 4096 // for message and _meta
		if len(x.data) <= room || x.command.Bytes {
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

// own is what a command says of its failure, also where its time was over or its
// caller gave up; nil where it leaves that to the gateway.
func (g *Gateway) own(err error) *discovery.Fault {
	var u discovery.Undecided
	if f := discovery.AsFault(err); f != nil || g.faults == nil || !errors.As(err, &u) || !u.Undecided() {
		return f
	}
	return g.faults(err)
}

// fault gives any error its public form. It is the gateway's half of the one
// mapping; the other half is Options.Faults.
func (g *Gateway) fault(ctx context.Context, err error, c *discovery.Command) *discovery.Fault {
	f := g.own(err)
	if f == nil && ctx.Err() != nil {
		f = &discovery.Fault{Code: discovery.ExecutionError, Message: "The command was cancelled.", Hint: "Run it again if it is still wanted.", Err: err}
	}
	if f == nil && g.faults != nil {
		f = g.faults(err)
	}
	if f == nil {
		f = &discovery.Fault{Code: discovery.ExecutionError, Message: "The command failed for a reason inside the program.",
			Hint: "Try again; if it stays so, look at the log on standard error.", Err: err}
		if g.registry.Exists("doctor") {
			f.Hint = "Try again; if it stays so, run 'doctor' and look at the log on standard error."
		}
		g.log.Error("command failed", "error_type", fmt.Sprintf("%T", err))
	}
	d := *f
	if c != nil && d.Usage() && len(d.Examples) == 0 {
		d.Examples = c.Examples
	}
	if d.Hint == "" {
		d.Hint = "Run 'help' for the available commands."
	}
	return &d
}

// finish audits the command and makes its envelope.
func (g *Gateway) finish(ctx context.Context, x *execution, f *discovery.Fault) Answer {
	now := g.now()
	m := meta{command: plain.Clip(x.shown, MaxShownCommand), duration: now.Sub(x.start), now: now, untrusted: x.untrusted, truncated: x.cut}
	if err := g.audit(ctx, x, f, &m); err != nil {
		g.log.Error("audit entry not written", "error_type", fmt.Sprintf("%T", err))
		switch {
		case x.command == nil || x.command.Effect == discovery.Meta:
			// Nothing was shown or done that a log is kept for.
		case f == nil && x.command.Effect == discovery.Read:
			// Nothing is shown that is not on record.
			f = g.fault(ctx, err, nil)
		case f == nil:
			// What was done is done; an error would say that it was not.
			m.auditLost = true
		}
	}
	if f != nil {
		m.untrusted = nil
		if f.Foreign {
			m.untrusted = []string{"error.message", "error.hint"}
		}
		return Answer{JSON: failureEnvelope(f, &m), Code: f.Code, Asked: x.asked}
	}
	return Answer{JSON: successEnvelope(x.data, x.message, &m), delivered: x.delivered}
}

// auditTime bounds the writing of an entry, which goes on when the caller has
// gone: it was executed all the same. What could not even read the settings does
// not wait as long again.
const auditTime = 10 * time.Second

func (g *Gateway) audit(ctx context.Context, x *execution, f *discovery.Fault, m *meta) error {
	if g.auditor == nil {
		return nil
	}
	e := AuditEntry{Time: x.start, Principal: x.principal.Name, Account: x.call.Account, Command: m.command,
		Target: x.call.Target, Allowed: true, Duration: m.duration}
	if x.command != nil {
		e.Parsed = x.command.Path
	}
	if f != nil {
		e.Code, e.Reason = string(f.Code), f.Reason
		e.Allowed = f.Reason == ""
	}
	x.attribute(&e)
	limit := auditTime
	if x.settingsErr != nil || x.command == nil || x.command.Effect == discovery.Meta {
		limit = brief
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return g.auditor.Record(ctx, e)
}
