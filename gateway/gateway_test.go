package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/internal/testmain"
)

type envelope struct {
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data"`
	Message string          `json:"message"`
	Error   *struct {
		Code     discovery.Code `json:"code"`
		Message  string         `json:"message"`
		Hint     string         `json:"hint"`
		Examples []string       `json:"examples"`
	} `json:"error"`
	Meta struct {
		Command    string   `json:"command"`
		DurationMS *int64   `json:"duration_ms"`
		NowUTC     string   `json:"now_utc"`
		Untrusted  []string `json:"untrusted"`
		Truncated  bool     `json:"truncated"`
		Audit      string   `json:"audit"`
	} `json:"_meta"`
}

type fakeAuditor struct {
	mu      sync.Mutex
	entries []gateway.AuditEntry
	err     error
}

func (l *fakeAuditor) Record(_ context.Context, e gateway.AuditEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.entries = append(l.entries, e)
	return nil
}

// all returns the entries so far.
func (l *fakeAuditor) all() []gateway.AuditEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

func (l *fakeAuditor) last(t *testing.T) gateway.AuditEntry {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		t.Fatal("no audit entry")
	}
	return l.entries[len(l.entries)-1]
}

type testArgs struct {
	Text   string `json:"text,omitempty" jsonschema_description:"Text"`
	Secret string `json:"secret,omitempty" acli:"sensitive" jsonschema_description:"Secret"`
}

type testResult struct {
	Text  string   `json:"text" acli:"untrusted"`
	Items []string `json:"items,omitempty"`
}

func (r *testResult) Summary() string { return "done" }

func (r *testResult) Truncate(fraction float64) bool {
	if len(r.Items) < 2 {
		return false
	}
	r.Items = r.Items[:int(float64(len(r.Items))*fraction)]
	r.Text = "truncated"
	return true
}

func command(path string, effect discovery.Effect, run func(context.Context, *discovery.Call, *testArgs) (*testResult, error)) *discovery.Command {
	return discovery.New(discovery.Spec{Path: path, Summary: "Run " + path, Effect: effect, Examples: []string{path}}, run)
}

// newGateway has a command for each thing that can happen to one.
func newGateway(t *testing.T, o gateway.Options) *gateway.Gateway {
	t.Helper()
	echo := func(_ context.Context, call *discovery.Call, a *testArgs) (*testResult, error) {
		call.Account, call.Target = "work", "INBOX"
		return &testResult{Text: a.Text}, nil
	}
	commands := []*discovery.Command{
		command("do echo", discovery.Read, echo),
		command("do write", discovery.Write, echo),
		command("do admin", discovery.Admin, echo),
		command("do panic", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			panic("a secret value")
		}),
		command("do wait", discovery.Read, func(ctx context.Context, _ *discovery.Call, _ *testArgs) (*testResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
		command("do halfway", discovery.Write, func(ctx context.Context, _ *discovery.Call, _ *testArgs) (*testResult, error) {
			<-ctx.Done()
			return nil, &fakePartialError{ctx.Err()}
		}),
		command("do fail", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return nil, errors.New("internal: a secret value")
		}),
		command("do hide", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return nil, &discovery.Fault{Code: discovery.NotFound, Message: "No such message.", Hint: "List again.", Reason: "filtered"}
		}),
		command("do much", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return &testResult{Items: slices.Repeat([]string{strings.Repeat("x", 1000)}, 1000)}, nil
		}),
		command("do toomuch", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return &testResult{Text: strings.Repeat("x", 300<<10)}, nil
		}),
	}
	return gatewayOf(t, o, commands...)
}

// gatewayOf has these commands, and every one of them unless the options say otherwise.
func gatewayOf(t testing.TB, o gateway.Options, commands ...*discovery.Command) *gateway.Gateway {
	t.Helper()
	info := discovery.Info{Name: "test", Version: "1"}
	if len(commands) > 0 && strings.HasPrefix(commands[0].Path, "do ") {
		info.Groups = map[string]string{"do": "Do things"}
	}
	var err error
	if o.Registry, err = discovery.NewRegistry(info, commands...); err != nil {
		t.Fatal(err)
	}
	if o.Profile.Name == "" {
		o.Profile = gateway.FullProfile()
	}
	g, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fakeSettings is a function that gives the settings.
type fakeSettings func(ctx context.Context) (gateway.Settings, error)

func (f fakeSettings) Settings(ctx context.Context, _ bool) (gateway.Settings, error) { return f(ctx) }

var errNoSettings = errors.New("no key")

func noSettings(context.Context) (gateway.Settings, error) { return gateway.Settings{}, errNoSettings }

func do(t *testing.T, g *gateway.Gateway, p gateway.Principal, line string) envelope {
	t.Helper()
	a := g.Do(t.Context(), gateway.Request{Principal: p, Line: line, Full: true})
	var e envelope
	d := json.NewDecoder(bytes.NewReader(a.JSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatalf("%s: %v in %s", line, err, a.JSON)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, a.JSON); err != nil || !bytes.Equal(compact.Bytes(), a.JSON) {
		t.Errorf("%s: the envelope is not compact", line)
	}
	if e.Success != a.Success() || e.Success == (e.Error != nil) || e.Success == (e.Data == nil) {
		t.Errorf("%s: the envelope contradicts itself: %s", line, a.JSON)
	}
	if e.Error != nil {
		if e.Error.Code != a.Code || e.Error.Message == "" || e.Error.Hint == "" {
			t.Errorf("%s: incomplete error: %s", line, a.JSON)
		}
		if a.ExitStatus() == 2 && len(e.Error.Examples) == 0 {
			t.Errorf("%s: a usage error without an example: %s", line, a.JSON)
		}
	}
	if e.Meta.DurationMS == nil || e.Meta.NowUTC == "" {
		t.Errorf("%s: incomplete _meta: %s", line, a.JSON)
	}
	if b, err := plain.JSON(a.Result); err != nil || a.Success() != (a.Fault == nil) || (a.Result == nil) != (!a.Success() || strings.Contains(line, "--fields")) ||
		a.Result != nil && string(b) != string(e.Data) || a.Message != e.Message || string(a.Data) != string(e.Data) || a.Cut != e.Meta.Truncated || a.Audit != e.Meta.Audit {
		t.Errorf("%s: %+v says something else than %s", line, a, a.JSON)
	}
	return e
}

func TestOutcomes(t *testing.T) {
	g := newGateway(t, gateway.Options{})
	for _, c := range testmain.Table[struct{ Line, Code, Command string }](t, "testdata/cases/outcomes.txt") {
		e := do(t, g, gateway.Principal{}, c.Line)
		var code discovery.Code
		if e.Error != nil {
			code = e.Error.Code
		}
		if string(code) != c.Code || e.Meta.Command != c.Command {
			t.Errorf("%q: code %q command %q, want %q and %q", c.Line, code, e.Meta.Command, c.Code, c.Command)
		}
	}
}

func TestNothingInsideAFailureGetsOut(t *testing.T) {
	var logged bytes.Buffer
	log := &fakeAuditor{}
	g := newGateway(t, gateway.Options{Auditor: log, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for _, line := range []string{"do panic", "do fail", "do echo --secret 'a secret value'", "do echo --secert 'a secret value'", "do echo a secret value", "do echo --secret 'a secret value",
		"do echo --secret \"it is --text a secret value", `do echo --secret it\'s\ --text=a\ secret\ value\`} {
		a := g.Do(t.Context(), gateway.Request{Line: line})
		if strings.Contains(string(a.JSON), "secret value") {
			t.Errorf("%s: %s", line, a.JSON)
		}
		if e := log.last(t); strings.Contains(e.Command+e.Reason+e.Target, "secret value") {
			t.Errorf("%s: audited as %+v", line, e)
		}
	}
	if strings.Contains(logged.String(), "secret value") {
		t.Errorf("logged: %s", logged.String())
	}
}

func TestTokensAreTakenAsTheyAre(t *testing.T) {
	g := newGateway(t, gateway.Options{})
	a := g.Do(t.Context(), gateway.Request{Tokens: []string{"do", "echo", "--text", `a "b' \ # c`, "--fields", "text"}})
	if !strings.Contains(string(a.JSON), `"data":{"text":"a \"b' \\ # c"}`) {
		t.Errorf("%s", a.JSON)
	}
	for name, tokens := range map[string][]string{
		"invalid UTF-8": {"do", "echo", "--text", "\xff"},
		"NUL":           {"do", "echo", "--text", "a\x00b"},
		"too many":      slices.Repeat([]string{"x"}, gateway.MaxArguments+1),
		"too long":      {"do", "echo", "--text", strings.Repeat("é", gateway.MaxArgumentChars+1)},
	} {
		if a := g.Do(t.Context(), gateway.Request{Tokens: tokens}); a.Code != discovery.ParseError {
			t.Errorf("%s: %s", name, a.JSON)
		}
	}
	if a := g.Do(t.Context(), gateway.Request{Tokens: []string{"do", "echo", "--text", strings.Repeat("é", gateway.MaxArgumentChars)}}); !a.Success() {
		t.Errorf("an argument at the bound is refused: %s", a.JSON)
	}
}

func TestWhatIsWithheldIsAbsentAndRefused(t *testing.T) {
	profiles := map[string]gateway.Profile{"full": gateway.FullProfile(), "read": gateway.ReadProfile(), "none": gateway.OnlyProfile("none"), "zero": {}}
	for _, c := range testmain.Table[struct {
		Name, Profile string
		Admin         bool
		Scope, Deny   string
		Withheld      []string
	}](t, "testdata/cases/withheld.txt") {
		who := gateway.Principal{Admin: c.Admin}
		if c.Scope != "" {
			who.Scope = &gateway.Scope{Profile: profiles[c.Scope]}
		}
		denied := map[string]string{} // path to reason
		for _, w := range c.Withheld {
			path, reason, _ := strings.Cut(w, "=")
			denied[path] = reason
		}
		log := &fakeAuditor{}
		deny := slices.DeleteFunc(strings.Split(c.Deny, ","), func(s string) bool { return s == "" })
		g := newGateway(t, gateway.Options{Profile: profiles[c.Profile], Auditor: log, Settings: gateway.FixedSettings{Deny: deny}})
		schemas := string(do(t, g, who, "schema").Data)
		for _, path := range []string{"do echo", "do write", "do admin"} {
			reason, withheld := denied[path]
			e := do(t, g, who, path)
			entry := log.last(t)
			if e.Success == withheld {
				t.Errorf("%s: %s: success %v", c.Name, path, e.Success)
			}
			if withheld && (e.Error.Code != discovery.PermissionDenied || entry.Reason != reason || entry.Allowed) {
				t.Errorf("%s: %s: %+v, audited %+v", c.Name, path, e.Error, entry)
			}
			if found := do(t, g, who, "help "+path).Success; found == withheld {
				t.Errorf("%s: help %s: found %v", c.Name, path, found)
			}
			if strings.Contains(schemas, `"`+path+`"`) == withheld {
				t.Errorf("%s: schema and %s", c.Name, path)
			}
		}
	}
}

func TestDeadlineStopsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, gateway.Options{})
		start := time.Now()
		a := g.Do(t.Context(), gateway.Request{Line: "do wait --timeout 7"})
		if a.Code != discovery.Timeout || time.Since(start) != 7*time.Second {
			t.Errorf("%s after %s", a.JSON, time.Since(start))
		}
		start = time.Now()
		if a := g.Do(t.Context(), gateway.Request{Line: "do wait"}); a.Code != discovery.Timeout || time.Since(start) != 30*time.Second {
			t.Errorf("default: %s after %s", a.JSON, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if a := g.Do(ctx, gateway.Request{Line: "do wait"}); a.Code != discovery.ExecutionError {
			t.Errorf("cancelled: %s", a.JSON)
		}
	})
}

// fakePartialError is an error of a change that may have happened.
type fakePartialError struct{ error }

func (h *fakePartialError) Undecided() bool { return true }

// A change that may have happened says so, also when its time is over or its caller
// gave up: who hears that it was stopped asks for it again.
func TestWhatMayHaveHappenedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const words = "Whether it happened is not known."
		g := newGateway(t, gateway.Options{Faults: func(err error) *discovery.Fault {
			var h *fakePartialError
			if !errors.As(err, &h) {
				return nil
			}
			return &discovery.Fault{Code: discovery.ExecutionError, Message: words, Hint: "Look before you try again."}
		}})
		if a := g.Do(t.Context(), gateway.Request{Line: "do halfway --timeout 7"}); !strings.Contains(string(a.JSON), words) {
			t.Errorf("late: %s", a.JSON)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if a := g.Do(ctx, gateway.Request{Line: "do halfway"}); !strings.Contains(string(a.JSON), words) {
			t.Errorf("cancelled: %s", a.JSON)
		}
	})
}

func TestRateLimitPerPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeAuditor{}
		g := newGateway(t, gateway.Options{Auditor: log, Settings: gateway.FixedSettings{CommandsPerMinute: 3}})
		a, b := gateway.Principal{Name: "a"}, gateway.Principal{Name: "b"}
		refusal := &discovery.Fault{Code: discovery.ValidationError, Message: "No command.", Hint: "Give one."}
		for i, r := range []gateway.Request{{Line: "nope"}, {Line: "do echo 'open"}, {Refusal: refusal}} { // each counts
			r.Principal = a
			if a := g.Do(t.Context(), r); a.Code == discovery.RateLimited {
				t.Fatalf("limited at command %d", i)
			}
		}
		e := do(t, g, a, "do echo")
		if e.Error == nil || e.Error.Code != discovery.RateLimited || !strings.Contains(e.Error.Hint, "20 s") {
			t.Fatalf("not limited: %+v", e.Error)
		}
		if entry := log.last(t); entry.Reason != "rate" || entry.Allowed {
			t.Errorf("audited as %+v", entry)
		}
		if e := do(t, g, b, "do echo"); !e.Success {
			t.Errorf("another principal is limited: %+v", e.Error)
		}
		time.Sleep(20 * time.Second)
		if e := do(t, g, a, "do echo"); !e.Success {
			t.Errorf("still limited after the time the hint gave: %+v", e.Error)
		}
	})
}

func TestNextDueSurvivesAClockSetBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	due, wait := gateway.NextDue(now.Add(24*time.Hour), now, 60, time.Minute)
	if wait <= 0 || wait > time.Minute || due.After(now.Add(time.Minute)) {
		t.Errorf("due %s, wait %s", due.Sub(now), wait)
	}
	for _, c := range []struct {
		limit  int
		window time.Duration
	}{{0, time.Minute}, {-1, time.Minute}, {1, 0}, {1, -time.Minute}} {
		if _, wait := gateway.NextDue(time.Time{}, now, c.limit, c.window); wait < time.Second {
			t.Errorf("a limit of %d in %s lets somebody try again after %s", c.limit, c.window, wait)
		}
	}
	if due, wait := gateway.NextDue(now, now, 1<<40, time.Minute); wait != 0 || !due.After(now) {
		t.Errorf("a limit finer than the clock: due %s, wait %s", due.Sub(now), wait)
	}
}

func TestAuditEntry(t *testing.T) {
	log := &fakeAuditor{}
	g := newGateway(t, gateway.Options{Auditor: log})
	do(t, g, gateway.Principal{Name: "agent"}, "do echo --text x")
	e := log.last(t)
	if e.Principal != "agent" || e.Account != "work" || e.Target != "INBOX" || e.Parsed != "do echo" || !e.Allowed || e.Code != "" || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
	do(t, g, gateway.Principal{}, "do hide")
	if e := log.last(t); e.Allowed || e.Reason != "filtered" || e.Code != "NOT_FOUND" {
		t.Errorf("a hidden object is audited as %+v", e)
	}
	n := len(log.entries)
	for _, line := range []string{"help", "nope", "do echo 'open", "do echo --nope", ""} {
		do(t, g, gateway.Principal{}, line)
	}
	if len(log.entries) != n+5 {
		t.Errorf("%d entries for 5 commands", len(log.entries)-n)
	}
}

func TestALostAuditEntryIsNotPassedOver(t *testing.T) {
	log := &fakeAuditor{err: errors.New("disk full")}
	g := newGateway(t, gateway.Options{Auditor: log, Faults: func(error) *discovery.Fault {
		return &discovery.Fault{Code: discovery.StoreError, Message: "The audit log cannot be written.", Hint: "Make room."}
	}})
	if e := do(t, g, gateway.Principal{}, "do echo"); e.Success || e.Error.Code != discovery.StoreError {
		t.Error("something was shown that is not on record")
	}
	if e := do(t, g, gateway.Principal{}, "do write"); !e.Success || e.Meta.Audit == "" {
		t.Error("an effect is reported as a failure, or the lost entry is not mentioned")
	}
	if e := do(t, g, gateway.Principal{}, "help"); !e.Success {
		t.Error("help needs the audit log")
	}
}

func TestSettingsThatCannotBeReadRefuseAllButTheReserved(t *testing.T) {
	g := newGateway(t, gateway.Options{Settings: fakeSettings(noSettings), Faults: func(error) *discovery.Fault {
		return &discovery.Fault{Code: discovery.ConfigError, Message: "No key.", Hint: "Set it."}
	}})
	if e := do(t, g, gateway.Principal{}, "do echo"); e.Success || e.Error.Code != discovery.ConfigError {
		t.Errorf("%+v", e)
	}
	for _, line := range []string{"help", "help do echo", "schema do echo", "version", "do", "do echo --help"} {
		if e := do(t, g, gateway.Principal{}, line); !e.Success {
			t.Errorf("%s: %+v", line, e.Error)
		}
	}
}

func TestAnAnswerThatIsTooLongIsCutAndSaysSo(t *testing.T) {
	g := newGateway(t, gateway.Options{})
	a := g.Do(t.Context(), gateway.Request{Line: "do much"})
	if !a.Success() || len(a.JSON) > gateway.MaxAnswerBytes || !strings.Contains(string(a.JSON), "truncated") || len(a.JSON) < gateway.MaxAnswerBytes/2 {
		t.Errorf("%d bytes, %s", len(a.JSON), a.Code)
	}
}

func TestSummaryUntrustedAndFields(t *testing.T) {
	g := newGateway(t, gateway.Options{})
	e := do(t, g, gateway.Principal{}, "do echo --text '<a&b>'")
	if e.Message != "done" || !slices.Equal(e.Meta.Untrusted, []string{"text"}) {
		t.Errorf("%+v", e)
	}
	if a := g.Do(t.Context(), gateway.Request{Line: "do echo --text '<a&b>'"}); !strings.Contains(string(a.JSON), `"<a&b>"`) || gateway.Member[string](a) != "<a&b>" || gateway.Member[int](a) != 0 {
		t.Errorf("escaped for HTML, or another member: %s", a.JSON)
	}
	if e := do(t, g, gateway.Principal{}, "do echo --fields items"); string(e.Data) != "{}" || len(e.Meta.Untrusted) != 0 {
		t.Errorf("%s %q", e.Data, e.Meta.Untrusted)
	}
}

func TestShownCommandIsBounded(t *testing.T) {
	g := newGateway(t, gateway.Options{})
	e := do(t, g, gateway.Principal{}, "do echo --text "+strings.Repeat("é", 5000))
	if n := len([]rune(e.Meta.Command)); n != gateway.MaxShownCommand {
		t.Errorf("%d characters", n)
	}
}

func TestAHeldStoreDelaysNothingPastItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, gateway.Options{Settings: fakeSettings(func(ctx context.Context) (gateway.Settings, error) {
			<-ctx.Done()
			return gateway.Settings{}, ctx.Err()
		})})
		for line, want := range map[string]time.Duration{"do echo --timeout 2": 2 * time.Second, "help": 500 * time.Millisecond, "do echo --help": 500 * time.Millisecond, "nope": 500 * time.Millisecond} {
			start := time.Now()
			a := g.Do(t.Context(), gateway.Request{Line: line})
			if got := time.Since(start); got != want {
				t.Errorf("%s: %s, want %s", line, got, want)
			}
			code := map[string]discovery.Code{"do echo --timeout 2": discovery.Timeout, "nope": discovery.CommandNotFound}[line]
			if a.Code != code {
				t.Errorf("%s: %s", line, a.JSON)
			}
		}
	})
}

func TestWhatSteersATerminalIsEscapedAndNotLost(t *testing.T) {
	g := newGateway(t, gateway.Options{})
	text := "a\u009b31m\u202eb\u200bc\x7f\U000e0041é"
	a := g.Do(t.Context(), gateway.Request{Tokens: []string{"do", "echo", "--text=" + text}})
	if strings.ContainsAny(string(a.JSON), "\u009b\u202e\u200b\x7f\U000e0041") || !strings.Contains(string(a.JSON), "é") {
		t.Errorf("%q", a.JSON)
	}
	var e struct {
		Data struct{ Text string }
	}
	if err := json.Unmarshal(a.JSON, &e); err != nil || e.Data.Text != text {
		t.Errorf("%q, %v", e.Data.Text, err)
	}
}

type explainedArgs struct {
	Count int `json:"count,omitempty" jsonschema:"minimum=1,maximum=3" jsonschema_description:"Count"`
}

func TestExplainAgreesWithDoAndRunsNothing(t *testing.T) {
	ran := 0
	command := func(path string, effect discovery.Effect) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "Do it", Effect: effect, Examples: []string{path}},
			func(context.Context, *discovery.Call, *explainedArgs) (struct{}, error) {
				ran++
				return struct{}{}, nil
			})
	}
	commands := []*discovery.Command{command("thing see", discovery.Read), command("thing break", discovery.Write),
		command("thing own", discovery.Admin), command("thing lose", discovery.Read)}
	profiles := map[string]gateway.Profile{"full": gateway.FullProfile(), "read": gateway.ReadProfile(), "none": gateway.OnlyProfile("none")}
	for _, test := range testmain.Table[struct {
		Line, Command, Profile string
		Admin                  bool
		Code, Reason           string
		Bound                  bool
	}](t, "testdata/cases/explained.txt") {
		t.Run(test.Line, func(t *testing.T) {
			g := gatewayOf(t, gateway.Options{Profile: profiles[test.Profile], Settings: gateway.FixedSettings{Deny: []string{"thing lose"}}}, commands...)
			p := gateway.Principal{Name: "agent", Admin: test.Admin}
			ran = 0
			e, err := g.Explain(t.Context(), gateway.Request{Principal: p, Line: test.Line})
			if err != nil || ran != 0 {
				t.Fatalf("%v, ran %d times", err, ran)
			}
			path, code, reason := "", discovery.Code(""), ""
			if e.Command != nil {
				path = e.Command.Path
			}
			if e.Refusal != nil {
				code, reason = e.Refusal.Code, e.Refusal.Reason
			}
			if path != test.Command || string(code) != test.Code || reason != test.Reason || (e.Args != nil) != test.Bound {
				t.Errorf("command %q, code %q, reason %q, bound %v", path, code, reason, e.Args != nil)
			}
			if a := g.Do(t.Context(), gateway.Request{Principal: p, Line: test.Line}); a.Code != code {
				t.Errorf("Do ends with %q, Explain with %q", a.Code, code)
			}
		})
	}
}

func TestExplainAllowsNothingWithoutTheSettings(t *testing.T) {
	g := gatewayOf(t, gateway.Options{Settings: fakeSettings(noSettings)})
	if e, err := g.Explain(t.Context(), gateway.Request{Line: "help"}); !errors.Is(err, errNoSettings) || e.Command != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// countingArgs counts how often the command's own check runs.
type countingArgs struct {
	N int `json:"n,omitempty" jsonschema_description:"Number"`
}

var checked int

func (*countingArgs) Validate() error { checked++; return nil }

// Nothing of a command's own runs for a caller who may not run it, and its check runs
// once for one who may.
func TestACommandIsBoundOnceAndForItsCallersOnly(t *testing.T) {
	c := discovery.New(discovery.Spec{Path: "count", Summary: "Count", Effect: discovery.Admin, Examples: []string{"count"}},
		func(context.Context, *discovery.Call, *countingArgs) (*nothing, error) { return &nothing{}, nil })
	g := gatewayOf(t, gateway.Options{}, c)
	for p, want := range map[gateway.Principal]int{{Name: "agent"}: 0, {Name: "admin", Admin: true}: 1} {
		checked = 0
		if a := g.Do(t.Context(), gateway.Request{Principal: p, Line: "count --n 1 --timeout 5"}); a.Success() != (want == 1) || checked != want {
			t.Errorf("%s: checked %d times: %s", p.Name, checked, a.JSON)
		}
	}
}
