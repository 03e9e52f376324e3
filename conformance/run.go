package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options say what a run asks and what it may do. nil means the zero value.
type Options struct {
	Cases []*Case // nil means Embedded

	// Which of the cases; the zero values leave none out.
	Level    Level    // this level and those below
	Category Category // this category
	Suite    string   // "acli" or "mail"; empty or "all" for both
	IDs      []string // ids or patterns of path.Match, of which one matches

	StepTimeout time.Duration // for each answer; 0 means 10 s
	MaxLost     int           // answers lost in succession after which no more is asked; 0 means 5

	AllowEffects bool     // commands that change things may be carried out
	Harmless     []string // paths of commands known to change nothing; patterns of path.Match
	Never        []string // paths of commands not to be carried out all the same, such as those that wait
	Exhaustive   bool     // ask for arguments that several commands share for each of them

	Baseline Baseline

	// Progress is called with each result, in order, from the goroutine of Run; nil
	// for nobody.
	Progress func(*Result)
}

const (
	defaultStepTimeout = 10 * time.Second
	defaultMaxLost     = 5
	maxRateWait        = 70 * time.Second
)

func (o *Options) selects(c *Case) bool {
	if o.Level != "" && slices.Index(Levels, c.Level) > slices.Index(Levels, o.Level) {
		return false
	}
	if o.Category != "" && c.Category != o.Category || o.Suite != "" && o.Suite != "all" && c.Suite != o.Suite {
		return false
	}
	return len(o.IDs) == 0 || matchesAny(o.IDs, c.ID)
}

// Check says what cannot be used in the options.
func (o *Options) Check() error {
	for _, p := range slices.Concat(o.IDs, o.Harmless, o.Never) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%q is no pattern", p)
		}
	}
	switch {
	case o.Level != "" && !slices.Contains(Levels, o.Level):
		return fmt.Errorf("there is no level %q", o.Level)
	case o.Category != "" && !slices.Contains(categories, o.Category):
		return fmt.Errorf("there is no category %q", o.Category)
	case o.Suite != "" && o.Suite != "all" && !slices.Contains(suites, o.Suite):
		return fmt.Errorf("there is no suite %q", o.Suite)
	}
	return nil
}

// Select returns the cases that a run with these options asks, in order.
func (o *Options) Select() ([]*Case, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	all, err := o.all()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *Case) bool { return !o.selects(c) }), nil
}

func (o *Options) all() ([]*Case, error) {
	if o.Cases != nil {
		return o.Cases, nil
	}
	return Embedded()
}

// Run judges a server. It returns an error if there is none (NotStarted), if ctx ends
// (with the report so far), or if the options or cases cannot be used; what a server
// does wrong is in the report. Of a server that is lost again and again the remaining
// cases fail unasked.
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
	r.ranging = slices.ContainsFunc(cases, func(c *Case) bool { return c.For != nil })
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

func newResult(c *Case) *Result {
	return &Result{ID: c.ID, Document: c.Document, Clause: c.Clause, Level: c.Level, Category: c.Category, Strength: c.Strength, Suite: c.Suite, Title: c.Title, Status: Passed}
}

// invariant is a case about every answer.
type invariant struct {
	c      *Case
	result *Result
}

type runner struct {
	ranging bool // a case is a template, so it matters how arguments can be given

	target     Target
	o          Options
	report     *Report
	model      *model
	shared     *session
	lost       int   // answers in succession
	fatal      error // a fault of a case, or no server any more from the start
	gone       bool
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

// begin sees whether there is a server at all.
func (r *runner) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
	defer cancel()
	conn, err := r.target.Open(ctx)
	if err != nil {
		if !NotStarted(err) {
			err = &errNoStart{err}
		}
		return err
	}
	s := &session{conn: conn, version: defaultVersion}
	if a := s.handshake(ctx); a.outcome != OutcomeResult {
		conn.Close()
		r.note("the first handshake failed: %s", a.describe())
		return nil
	}
	r.shared = s
	return nil
}

func (r *runner) note(format string, args ...any) {
	if len(r.report.Notes) < 20 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
	}
}

// describe says in words what an answer was.
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
		return nil, lost("no fresh server: %v", err)
	}
	s := &session{conn: conn, version: version, bare: bare}
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

// ask has do exchange a message within the time of a step, counts what is lost, and
// holds answers of the tool to what holds for all of them.
func (r *runner) ask(ctx context.Context, s *session, sent string, ofTool bool, limited bool, do func(context.Context) answer) answer {
	for try := 0; ; try++ {
		stepCtx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
		a := do(stepCtx)
		cancel()
		r.report.Messages++
		if a.doc == nil {
			a.doc = map[string]any{}
		}
		a.doc["outcome"] = a.outcome
		a.doc["faults"] = []any{}
		if s != nil {
			a.doc["faults"] = s.takeFaults()
		}
		if sent != "" {
			a.doc["sent"] = sent
		}
		if a.outcome == OutcomeLost {
			if s != nil {
				s.dead = true
			}
			return a
		}
		r.lost = 0
		if limited && try < 5 && a.doc["code"] == "RATE_LIMITED" && r.wait(ctx, a.doc) {
			continue
		}
		if ofTool {
			r.observe(a.doc)
		}
		return a
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// wait lets the time pass that a rate limit asks for, unless that is too long.
func (r *runner) wait(ctx context.Context, doc map[string]any) bool {
	hint, _ := pointer(doc, "/error/hint")
	text, _ := hint.(string)
	seconds, err := strconv.Atoi(digits.FindString(text))
	if err != nil || seconds < 1 {
		seconds = 1
	}
	d := time.Duration(seconds) * time.Second
	if d > maxRateWait {
		return false // such as so many an hour: this answer is the one there is
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxExamples bounds the examples of errors that are looked at.
const maxExamples = 500

// observe holds one answer to what holds for all, and keeps an error's examples.
func (r *runner) observe(doc map[string]any) {
	if list, ok := pointer(doc, "/error/examples"); ok {
		examples, _ := list.([]any)
		for _, e := range examples {
			if text, ok := e.(string); ok && len(r.examples) < maxExamples && !slices.Contains(r.examples, text) {
				r.examples = append(r.examples, text)
			}
		}
	}
	for _, i := range r.invariants {
		if i.c.For.Where != nil {
			if miss, err := i.c.For.Where.match(doc, nil); err != nil || len(miss) > 0 {
				r.fault(i.c, err)
				continue
			}
		}
		i.result.Asked++
		miss, err := i.c.Expect.match(doc, nil)
		r.fault(i.c, err)
		if len(miss) > 0 {
			sent, _ := doc["sent"].(string)
			i.result.fail(Finding{Sent: clip(sent, 300), Got: r.excerpt(doc), Mismatches: miss})
		}
	}
}

// fault notes that a case cannot be asked as it is written.
func (r *runner) fault(c *Case, err error) {
	if err != nil && r.fatal == nil {
		r.fatal = fmt.Errorf("%s: case %s: %w", c.File, c.ID, err)
	}
}

func (r *runner) excerpt(doc map[string]any) string {
	for _, name := range []string{"text", "result", "rpc_error"} {
		if v, ok := doc[name]; ok {
			if text, ok := v.(string); ok {
				return clip(text, 600)
			}
			return clip(show(v), 600)
		}
	}
	return ""
}

// command sends a command string on the shared session, as learning does.
func (r *runner) command(ctx context.Context, command string) answer {
	if r.gone || ctx.Err() != nil {
		return lost("not asked")
	}
	s, a := r.sharedSession(ctx)
	if s != nil {
		a = r.ask(ctx, s, command, true, true, func(ctx context.Context) answer { return s.tool(ctx, commandArguments(command)) })
	}
	r.countLost(a)
	return a
}

func (r *runner) countLost(a answer) {
	if a.outcome != OutcomeLost {
		return
	}
	if r.lost++; r.lost >= r.o.MaxLost && !r.gone {
		r.gone = true
		r.note("nothing more was asked after %d answers were lost in succession, the last: %s", r.lost, a.detail)
	}
}

func commandArguments(command string) json.RawMessage {
	b, err := marshalPlain(map[string]string{"command": command})
	if err != nil {
		panic(err) // a string has a JSON form
	}
	return b
}

// tool calls cli with arguments; nil for a call without any.
func (s *session) tool(ctx context.Context, arguments json.RawMessage) answer {
	params := `{"name":"cli"`
	if arguments != nil {
		params += `,"arguments":` + string(arguments)
	}
	return s.request(ctx, "tools/call", json.RawMessage(params+"}"))
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

// inapplicable says why a server need not pass a case, or "".
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
	case command == nil && !slices.ContainsFunc(r.model.groups, func(g *group) bool { return g.path == q.Command }):
		return "the server has no command " + q.Command
	case q.Option != "" && (command == nil || !slices.Contains(command.labels(), q.Option)):
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

// instance goes through the steps of a case. It returns what went wrong, or why the
// instance cannot be asked.
func (r *runner) instance(ctx context.Context, c *Case, i item) (finding *Finding, reason string) {
	command := i.of
	if c.For == nil && c.Requires != nil {
		command = r.model.find(c.Requires.Command)
	}
	allowed := r.mayRun(command)
	for _, s := range c.Steps {
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
	asking := &asking{r: r, vars: i.vars}
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

func describeSent(s string) string { return clip(strings.ReplaceAll(s, "\x00", "\\0"), 300) }
