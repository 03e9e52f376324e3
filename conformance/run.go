package conformance

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
)

// Run judges a server. It returns an error if the server cannot be reached
// (ErrNotStarted), if ctx ends (with the report so far), or if the options or cases
// cannot be used; the server's faults are in the report. If a server is lost again and
// again the remaining cases fail unasked.
func Run(ctx context.Context, target Target, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	cases, err := o.Select()
	if err != nil {
		return nil, err
	}
	all, err := o.all()
	if err != nil {
		return nil, err
	}
	r := &runner{target: target, o: *o, report: &Report{}}
	if r.o.StepTimeout <= 0 {
		r.o.StepTimeout = defaultStepTimeout
	}
	r.o.Tool = cmp.Or(r.o.Tool, defaultTool)
	if r.o.MaxLost <= 0 {
		r.o.MaxLost = defaultMaxLost
	}
	defer r.close()
	for _, c := range cases {
		if c.onAnswers() {
			r.invariants = append(r.invariants, &invariant{c: c, result: newResult(c)})
		}
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	r.ranging = slices.ContainsFunc(cases, (*Case).onArguments)
	r.model = r.learn(ctx)
	if r.fatal != nil {
		return nil, r.fatal
	}
	for _, late := range []bool{false, true} {
		for _, c := range cases {
			if c.onAnswers() || (c.For != nil && c.For.Each == "failure_example") != late {
				continue
			}
			result := r.run(ctx, c)
			if r.fatal != nil {
				return nil, r.fatal
			}
			if ctx.Err() != nil {
				break
			}
			r.tell(result)
		}
	}
	for _, i := range r.invariants {
		if i.result.Asked == 0 {
			i.result.Status, i.result.Reason = NotApplicable, "there was no such answer"
		}
		r.tell(i.result)
	}
	known := func(id string) bool { return slices.ContainsFunc(all, func(c *Case) bool { return c.ID == id }) }
	o.Baseline.apply(r.report, known)
	left := slices.ContainsFunc(all, func(c *Case) bool {
		upTo := Options{Level: o.Level}
		return c.Suite == "acli" && upTo.selects(c) && !o.selects(c)
	})
	r.report.Commands = len(r.model.commands)
	r.report.count(left)
	return r.report, ctx.Err()
}

func (c *Case) onAnswers() bool { return c.For != nil && c.For.Each == "answer" }

// onArguments reports whether a case needs to know how arguments can be given. One over
// commands sees their arguments too.
func (c *Case) onArguments() bool {
	return c.For != nil && slices.Contains([]string{"command", "argument", "bound", "value"}, c.For.Each)
}

func newResult(c *Case) *Result {
	return &Result{ID: c.ID, Document: c.Document, Clause: c.Clause, Level: c.Level, Category: c.Category, Strength: c.Strength, Suite: c.Suite, Title: c.Title, Status: Passed}
}

// invariant is a case about every answer.
type invariant struct {
	c      *Case
	result *Result
}

type runner struct {
	ranging bool // a case is about arguments, so it matters how they can be given

	target     Target
	o          Options
	report     *Report
	model      *model
	shared     *session
	lost       int   // answers in succession
	fatal      error // a fault of a case, or no server any more from the start
	gone       bool
	bare       bool // an answer came without the envelope
	invariants []*invariant
	sets       map[string][]item // by quantifier
	examples   []string          // of errors, in order
}

func (r *runner) close() {
	if r.shared != nil {
		r.shared.conn.Close()
	}
}

func (r *runner) tell(result *Result) {
	r.report.Results = append(r.report.Results, result)
	if r.o.Progress != nil {
		r.o.Progress(result)
	}
}

// begin checks that the server can be reached.
func (r *runner) begin(ctx context.Context) error {
	s, a := r.open(ctx, defaultVersion, false)
	switch {
	case a.unreached != nil:
		return fmt.Errorf("%w: %w", ErrNotStarted, a.unreached)
	case s == nil:
		r.note("at the beginning, %s", a.detail)
	}
	r.shared = s
	return nil
}

func (r *runner) note(format string, args ...any) {
	if len(r.report.Notes) < 20 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
	}
}

// describe describes an answer in words.
func (a answer) describe() string {
	if a.outcome == OutcomeLost {
		return a.detail
	}
	return clip(show(a.doc), 300)
}

// open starts a session.
func (r *runner) open(ctx context.Context, version string, bare bool) (*session, answer) {
	ctx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
	defer cancel()
	conn, err := r.target.Open(ctx)
	if err != nil {
		a := lost("no fresh server: %v", err)
		a.unreached = err
		return nil, a
	}
	s := &session{conn: conn, version: version, called: r.o.Tool}
	if bare {
		if s.stateless() {
			conn.Protocol(version)
		}
		return s, answer{outcome: OutcomeResult}
	}
	if a := s.handshake(ctx); a.outcome != OutcomeResult {
		conn.Close()
		return nil, lost("the handshake failed: %s", a.describe())
	}
	return s, answer{outcome: OutcomeResult}
}

// sharedSession is the one of all cases, opened anew if it was lost.
func (r *runner) sharedSession(ctx context.Context) (*session, answer) {
	if r.shared != nil && r.shared.dead {
		r.shared.conn.Close()
		r.shared = nil
	}
	if r.shared == nil {
		s, a := r.open(ctx, defaultVersion, false)
		if s == nil {
			return nil, a
		}
		r.shared = s
	}
	return r.shared, answer{outcome: OutcomeResult}
}

// run asks one case, or all instances of a template.
func (r *runner) run(ctx context.Context, c *Case) *Result {
	result := newResult(c)
	if reason := r.inapplicable(c); reason != "" {
		result.Status, result.Reason = NotApplicable, reason
		return result
	}
	if r.gone {
		result.fail(Finding{Detail: "not asked: the server was lost too often"})
		return result
	}
	items := []item{{vars: scope{}}}
	if c.For != nil {
		items = r.items(c)
		if len(items) == 0 && r.fatal == nil {
			result.Status, result.Reason = NotApplicable, "there is no "+c.For.Each+" that it applies to"
			if c.For.Each == "probe" {
				result.Reason = "help lists no command that has help, through which it could be asked how strings are read"
			}
			return result
		}
	}
	skipped := ""
	for _, i := range items {
		if ctx.Err() != nil || r.fatal != nil || r.gone && result.Status == Failed {
			return result
		}
		finding, reason := r.instance(ctx, c, i)
		switch {
		case reason != "":
			skipped = reason
			continue
		case finding != nil:
			finding.Instance = i.name
			result.fail(*finding)
		}
		result.Asked++
	}
	if result.Asked == 0 && result.Status != Failed {
		result.Status, result.Reason = NotApplicable, skipped
	}
	return result
}

// inapplicable returns the reason why a case does not apply to the server, or "".
func (r *runner) inapplicable(c *Case) string {
	q := c.Requires
	if q == nil {
		return ""
	}
	switch {
	case q.Transport != "" && q.Transport != r.target.Transport():
		return "it needs the transport " + q.Transport
	case q.Effects && !r.o.AllowEffects:
		return "it has effects, which were not allowed"
	case q.Protocol != "" && !slices.Contains(r.model.protocols, q.Protocol):
		return "the server does not speak protocol " + q.Protocol
	case q.Command == "":
		return ""
	}
	command := r.model.find(q.Command)
	switch {
	case command == nil && !r.model.isGroup(q.Command):
		return "the server has no command " + q.Command
	case q.Option != "" && (command == nil || !slices.ContainsFunc(command.arguments, func(a *argument) bool { return a.label == q.Option })):
		return "the command " + q.Command + " has no " + q.Option
	}
	return ""
}

// mayRun reports whether a command may be carried out; nil for one that is not known.
func (r *runner) mayRun(c *command) bool {
	if c == nil {
		return r.o.AllowEffects
	}
	return (c.harmless || r.o.AllowEffects) && !matchesAny(r.o.Never, c.path)
}

// matchesAny reports whether one of the patterns matches.
func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, s) // a bad pattern matches nothing, and Check says so
		return ok
	})
}

// instance runs the steps of a case. It returns the failure, or the reason why the
// instance cannot be run.
func (r *runner) instance(ctx context.Context, c *Case, i item) (finding *Finding, reason string) {
	command := i.of
	if c.For == nil && c.Requires != nil {
		command = r.model.find(c.Requires.Command)
	}
	i.vars["tool"] = r.o.Tool
	allowed := r.mayRun(command)
	disturbs := c.For != nil && command != nil && command.disturbs // a case that names a command knows it
	for _, s := range c.Steps {
		if s.Executes && disturbs {
			return nil, "it would have commands carried out whose help says that they wait, or stop things"
		}
		if s.Executes && !allowed {
			return nil, "it would have commands carried out that are not known to be harmless, or not to be (--allow-effects, --harmless, --never)"
		}
		if s.Line != nil && r.target.Transport() != "stdio" {
			return nil, "it needs the transport stdio"
		}
	}
	if c.Expect != nil {
		miss, err := c.Expect.match(map[string]any(i.vars), i.vars)
		r.fault(c, err)
		if len(miss) > 0 {
			return &Finding{Detail: "what the server says of itself does not agree", Mismatches: miss}, ""
		}
		return nil, ""
	}
	asking := &asking{r: r, c: c, vars: i.vars}
	defer asking.close()
	for n, s := range c.Steps {
		f, err := asking.step(ctx, s)
		if err != nil {
			r.fault(c, fmt.Errorf("step %d: %w", n+1, err))
			return nil, "the case has a fault"
		}
		if f != nil {
			f.Step = n + 1
			return f, ""
		}
	}
	return nil, ""
}
