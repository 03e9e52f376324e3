package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// shown are the entries as "code count", a command that did what it should as "".
func (l *fakeAuditor) shown(principal string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, e := range l.entries {
		if e.Principal == principal {
			list = append(list, fmt.Sprintf("%s %d", e.Code, e.Count))
		}
	}
	return list
}

// TestCallsBeyondTheRateHaveFewEntries: the first refused call of a run is on record at once,
// all others in one entry with their number, at the latest after a minute.
func TestCallsBeyondTheRateHaveFewEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeAuditor{}
		g := newGateway(t, gateway.Options{Auditor: log, Settings: gateway.FixedSettings{CommandsPerMinute: 1}})
		a, b := gateway.Principal{Name: "a"}, gateway.Principal{Name: "b"}
		call := func(p gateway.Principal, n int) {
			for range n {
				do(t, g, p, "do echo")
			}
		}
		call(a, 7)
		call(b, 1)
		time.Sleep(3 * time.Minute)
		call(a, 1)
		time.Sleep(3 * time.Minute)
		call(a, 1)
		if got := log.shown("a"); !slices.Equal(got, []string{" 0", "RATE_LIMITED 0", "RATE_LIMITED 5", " 0", " 0"}) {
			t.Errorf("a: %q", got)
		}
		if got := log.shown("b"); !slices.Equal(got, []string{" 0"}) {
			t.Errorf("b: %q", got)
		}
		total := 0
		call(b, 200) // each waits a second for its refusal
		for _, e := range log.all() {
			if e.Principal == "b" {
				total += max(e.Count, 1)
			}
		}
		if n := len(log.shown("b")); n > 20 || total < 140 {
			t.Errorf("201 calls have %d entries, which stand for %d", n, total)
		}
	})
}

type checkReport struct {
	Code discovery.Code `json:"code"`
}

func (c checkReport) Failed() discovery.Code { return c.Code }

// TestASuccessMayEndAProcessWithAnotherStatus: what a check found is a success for a client,
// and a failure for a shell.
func TestASuccessMayEndAProcessWithAnotherStatus(t *testing.T) {
	for code, want := range map[discovery.Code]int{"": 0, discovery.AuthFailed: 4, discovery.ConnectionFailed: 8} {
		log := &fakeAuditor{}
		c := discovery.New(discovery.Spec{Path: "check", Summary: "Check", Effect: discovery.Read, Examples: []string{"check"}},
			func(_ context.Context, call *discovery.Call, _ *struct{}) (checkReport, error) {
				call.Reason = "filtered"
				return checkReport{code}, nil
			})
		g := gatewayOf(t, gateway.Options{Auditor: log}, c)
		if a := g.Do(t.Context(), gateway.Request{Line: "check"}); !a.Success() || a.ExitStatus() != want {
			t.Errorf("%q: success %t, status %d", code, a.Success(), a.ExitStatus())
		}
		if e := log.last(t); !e.Allowed || e.Reason != "filtered" || e.Code != "" {
			t.Errorf("audited as %+v", e)
		}
	}
}

func TestTheReadProfileHasWhatItNamesBesides(t *testing.T) {
	command := func(path string, effect discovery.Effect) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "Do it", Effect: effect, Examples: []string{path}},
			func(context.Context, *discovery.Call, *struct{}) (struct{}, error) { return struct{}{}, nil })
	}
	for effect, want := range map[discovery.Effect]bool{discovery.Read: true, discovery.State: true, discovery.Flag: false, discovery.Write: false, discovery.Send: false, discovery.Admin: false} {
		if got := gateway.ReadProfile("note it").Allows(command("note it", effect)); got != want {
			t.Errorf("%s: %t", effect, got)
		}
	}
	if gateway.ReadProfile("note it").Allows(command("other", discovery.State)) || gateway.ReadProfile().Allows(command("note it", discovery.State)) {
		t.Error("a command that is not named")
	}
}

// TestRefusedCallsHaveFewEntries: of calls that a rule refuses for one reason the first three
// have an entry at once and the others one a minute, also where other calls come in between; another
// reason, another command and another principal have their own.
func TestRefusedCallsHaveFewEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeAuditor{}
		g := newGateway(t, gateway.Options{Auditor: log, Settings: gateway.FixedSettings{Deny: []string{"do echo"}}})
		a, b := gateway.Principal{Name: "a"}, gateway.Principal{Name: "b"}
		for range 50 {
			do(t, g, a, "do echo")
			do(t, g, a, "version")
			time.Sleep(time.Second)
		}
		do(t, g, a, "do admin")
		do(t, g, b, "do echo")
		refused := func(principal string) (list []string) {
			for _, e := range log.shown(principal) {
				if e != " 0" {
					list = append(list, e)
				}
			}
			return list
		}
		at := slices.Repeat([]string{"PERMISSION_DENIED 0"}, 4)
		if got := refused("a"); !slices.Equal(got, at) {
			t.Errorf("after 50 s: %q", got)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := refused("a"); !slices.Equal(got, append(at, "PERMISSION_DENIED 47")) {
			t.Errorf("after a minute: %q", got)
		}
		if e := log.last(t); e.Command != "do echo" || e.Allowed || e.Reason != "deny" || e.Duration < 43*time.Second {
			t.Errorf("the entry of the others is %+v", e)
		}
		if got := refused("b"); len(got) != 1 {
			t.Errorf("b: %q", got)
		}
		for range 4 {
			do(t, g, b, "do echo")
		}
		g.Close()
		if got := refused("b"); !slices.Equal(got, append(at[:3:3], "PERMISSION_DENIED 2")) {
			t.Errorf("at the end of the process: %q", got)
		}
	})
}

// fakeBoundedAuditor gives each principal room for some entries.
type fakeBoundedAuditor struct {
	fakeAuditor
	room int
}

func (l *fakeBoundedAuditor) LogFull(principal string) (time.Duration, int) {
	if n := len(l.shown(principal)); n >= l.room {
		return 90 * time.Second, 1 << 20
	}
	return 0, 1 << 20
}

// TestAPrincipalThatFillsTheLogIsRefused: one entry says so, nothing runs for it any more, and
// others go on.
func TestAPrincipalThatFillsTheLogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeBoundedAuditor{room: 3}
		g := newGateway(t, gateway.Options{Auditor: log})
		var last envelope
		for range 20 {
			last = do(t, g, gateway.Principal{Name: "a"}, "do echo")
		}
		if last.Success || last.Error.Code != discovery.RateLimited || !strings.Contains(last.Error.Message, "audit log, 1 MiB") || !strings.Contains(last.Error.Hint, "Wait 90 s") {
			t.Errorf("the answer is %+v", last.Error)
		}
		if got := log.shown("a"); !slices.Equal(got, []string{" 0", " 0", " 0", "RATE_LIMITED 0"}) {
			t.Errorf("a: %q", got)
		}
		if e := log.last(t); e.Reason != "log" || e.Allowed {
			t.Errorf("its entry is %+v", e)
		}
		for _, p := range []gateway.Principal{{Name: "b"}, {Name: "a", Admin: true}} {
			if e := do(t, g, p, "do echo"); !e.Success {
				t.Errorf("%+v is refused: %+v", p, e.Error)
			}
		}
	})
}

// A store that falls silent is named for it, and does not make a command much longer than it
// may be; what took effect waits for its entry.
func TestASilentStoreIsToBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, kept := errors.New("silent"), false
		var waits time.Duration
		g := gatewayOf(t, gateway.Options{
			Settings: fakeSettings(func(ctx context.Context) (gateway.Settings, error) {
				if !kept { // as it was read before
					kept = true
					return gateway.Settings{}, nil
				}
				<-ctx.Done()
				return gateway.Settings{}, silent
			}),
			Auditor: fakeAuditorFunc(func(ctx context.Context) error {
				start := time.Now()
				<-ctx.Done()
				waits = time.Since(start)
				return silent
			}),
			Faults: func(err error) *discovery.Fault {
				if errors.Is(err, silent) {
					return &discovery.Fault{Code: discovery.StoreError, Message: "It is silent.", Hint: "Wait.", Examples: []string{"help"}}
				}
				return nil
			},
		}, command("do wait", discovery.Read, func(ctx context.Context, _ *discovery.Call, _ *testArgs) (*testResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), command("do echo", discovery.Read, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return &testResult{}, nil
		}), command("do write", discovery.Write, func(context.Context, *discovery.Call, *testArgs) (*testResult, error) {
			return &testResult{}, nil
		}))
		for line, want := range map[string]time.Duration{"do wait --timeout 7": 8 * time.Second, "do echo --timeout 3": 3 * time.Second, "do write --timeout 3": 10 * time.Second} {
			kept = false
			start := time.Now()
			a := g.Do(t.Context(), gateway.Request{Line: line})
			code := discovery.StoreError
			if strings.HasPrefix(line, "do write") {
				code = ""
			}
			if took := time.Since(start); a.Code != code || took != want {
				t.Errorf("%s: after %s, of which its entry took %s: %s", line, took, waits, a.JSON)
			}
		}
	})
}

// Examples as they run for the caller are not worth a wait for the store.
func TestExamplesDelayNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := 0
		r, err := discovery.NewRegistry(discovery.Info{Name: "test", Version: "1", Here: func(ctx context.Context, _ string) func(*discovery.Command, string) string {
			here++
			<-ctx.Done()
			return func(_ *discovery.Command, example string) string { return example }
		}}, command("fail", discovery.Read, func(_ context.Context, _ *discovery.Call, a *testArgs) (*testResult, error) {
			return nil, &discovery.Fault{Code: discovery.Code(a.Text), Message: "It failed.", Hint: "Look.", Examples: []string{"fail"}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(gateway.Options{Registry: r, Profile: gateway.FullProfile()})
		if err != nil {
			t.Fatal(err)
		}
		for code, want := range map[discovery.Code]time.Duration{discovery.Conflict: time.Second / 2, discovery.StoreError: 0} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if a := g.Do(ctx, gateway.Request{Line: "fail --text " + string(code)}); a.Code != code || time.Since(start) != want {
				t.Errorf("%s after %s", a.JSON, time.Since(start))
			}
			cancel()
		}
		if here != 1 {
			t.Errorf("asked %d times", here)
		}
	})
}

// fakeAuditorFunc is a gateway.Auditor.
type fakeAuditorFunc func(context.Context) error

func (f fakeAuditorFunc) Record(ctx context.Context, _ gateway.AuditEntry) error { return f(ctx) }

// A panicArgs panics in Validate, and a panicResult where its text says.
type panicArgs struct {
	Where string `json:"where,omitempty" jsonschema_description:"Where it panics"`
}

func (a *panicArgs) Validate() error {
	if a.Where == "Validate" {
		panic("a secret value")
	}
	return nil
}

type panicResult struct {
	Where string `json:"where"`
}

func (r *panicResult) MarshalJSON() ([]byte, error) {
	switch r.Where {
	case "MarshalJSON":
		panic("a secret value")
	case "Truncate":
		return []byte(`"` + strings.Repeat("x", gateway.MaxAnswerBytes) + `"`), nil
	}
	return []byte(`{"where":""}`), nil
}

func (r *panicResult) Truncate(float64) bool { panic("a secret value") }

func (r *panicResult) Summary() string {
	if r.Where == "Summary" {
		panic("a secret value")
	}
	return ""
}

// fakePanics is a Limiter and an Auditor.
type fakePanics struct{}

func (fakePanics) Take(context.Context, string, int, time.Duration) (time.Duration, error) {
	panic("a secret value")
}

func (fakePanics) Record(context.Context, gateway.AuditEntry) error { panic("a secret value") }

// Wherever something panics, the answer is an error, the audit log has an entry, and the
// next command is served.
func TestAPanicAnywhereIsAnsweredAndAudited(t *testing.T) {
	run := discovery.New(discovery.Spec{Path: "do", Summary: "Do", Effect: discovery.Read, Examples: []string{"do"}},
		func(_ context.Context, _ *discovery.Call, a *panicArgs) (*panicResult, error) {
			switch a.Where {
			case "Run":
				panic("a secret value")
			case "Faults":
				return nil, errors.New("an error")
			}
			return &panicResult{a.Where}, nil
		})
	for _, where := range []string{"Validate", "Run", "MarshalJSON", "Truncate", "Summary", "Faults", "Context", "Settings", "Limiter", "Auditor"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged strings.Builder
				audited := &fakeAuditor{}
				o := gateway.Options{Auditor: audited, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
					Faults: func(error) *discovery.Fault { panic("a secret value") }}
				switch where {
				case "Context":
					o.Context = func(context.Context, gateway.Principal) context.Context { panic("a secret value") }
				case "Settings":
					o.Settings = fakeSettings(func(context.Context) (gateway.Settings, error) { panic("a secret value") })
				case "Limiter":
					o.Limiter = fakePanics{}
				case "Auditor":
					o.Auditor = fakePanics{}
				}
				g := gatewayOf(t, o, run)
				line := "do --where " + where
				if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: line}); a.Code != discovery.ExecutionError || strings.Contains(string(a.JSON), "secret") {
					t.Errorf("%s", a.JSON)
				}
				if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: "version"}); len(a.JSON) == 0 {
					t.Error("the next one has no answer")
				}
				if where == "Auditor" {
					return
				}
				entries := 0
				for _, e := range audited.all() {
					if e.Code == string(discovery.ExecutionError) && strings.HasPrefix(e.Command, "do") {
						entries++
					}
				}
				if entries != 1 {
					t.Errorf("audited as %+v", audited.entries)
				}
				if text := logged.String(); !strings.Contains(text, "audit_test.go") || strings.Contains(text, "secret") {
					t.Errorf("logged %s", text)
				}
			})
		})
	}
}

func TestAPrincipalSeesTheAccountsOfItsScope(t *testing.T) {
	for name, c := range map[string]struct {
		scope *gateway.Scope
		sees  string
	}{
		"none":     {nil, "work home "},
		"zero":     {&gateway.Scope{}, ""},
		"one":      {&gateway.Scope{Accounts: []string{"work"}}, "work "},
		"wildcard": {&gateway.Scope{Accounts: []string{"*", ""}}, ""},
	} {
		got := ""
		for _, account := range []string{"work", "home"} {
			if (gateway.Principal{Scope: c.scope}).Sees(account) {
				got += account + " "
			}
		}
		if got != c.sees {
			t.Errorf("%s: sees %q", name, got)
		}
	}
}

// A command runs with the context that is made for its principal.
func TestACommandRunsOnBehalfOfItsPrincipal(t *testing.T) {
	type key struct{}
	var found gateway.Principal
	var call discovery.Call
	g := gatewayOf(t, gateway.Options{Context: func(ctx context.Context, p gateway.Principal) context.Context {
		return context.WithValue(ctx, key{}, p)
	}}, discovery.New(
		discovery.Spec{Path: "look", Summary: "Look", Effect: discovery.Read, Examples: []string{"look"}},
		func(ctx context.Context, c *discovery.Call, _ *nothing) (*nothing, error) {
			found, _ = ctx.Value(key{}).(gateway.Principal)
			call = *c
			return &nothing{}, nil
		}))
	scope := &gateway.Scope{Profile: gateway.ReadProfile(), Accounts: []string{"work"}, Identity: "repo:main"}
	if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "ann", Admin: true, Scope: scope}, Line: "look"}); !a.Success() {
		t.Fatalf("%s", a.JSON)
	}
	if found.Name != "ann" || found.Scope != scope || call.Principal != "ann" || call.Admin || call.Profile != "read" || call.Identity != "repo:main" {
		t.Errorf("found %+v, called as %+v", found, call)
	}
	if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "admin", Admin: true}, Line: "look"}); !a.Success() || !call.Admin || call.Profile != "full" || call.Identity != "" {
		t.Errorf("%s, called as %+v", a.JSON, call)
	}
}

// Every command asks anew whether what let its principal in still holds, and one that
// waited asks again.
func TestAScopeThatEndsEndsItsCommands(t *testing.T) {
	var delivered atomic.Int32
	var ended atomic.Bool
	var once sync.Once
	began := make(chan struct{})
	secret := errors.New("the store says too much")
	over := &discovery.Fault{Code: discovery.AuthFailed, Message: "It has ended.", Hint: "Ask for another.", Reason: "grant"}
	g := asideGateway(t, &delivered)
	fault := error(over)
	p := gateway.Principal{Name: "ann", Scope: &gateway.Scope{Profile: gateway.FullProfile(), Valid: func(context.Context) error {
		if ended.Load() {
			return fault
		}
		once.Do(func() { close(began) })
		return nil
	}}}
	answers := make(chan gateway.Answer, 1)
	go func() { answers <- g.Do(t.Context(), gateway.Request{Principal: p, Line: "wait"}) }()
	<-began
	for e := range 2 { // the second time with what may not be shown
		if e == 1 {
			fault = secret
		}
		ended.Store(true)
		for _, line := range []string{"fail", "tell", "help", "nope", "'", "version"} {
			a := g.Do(t.Context(), gateway.Request{Principal: p, Line: line})
			if a.Success() || e == 0 && a.Code != discovery.AuthFailed || strings.Contains(string(a.JSON), "too much") {
				t.Errorf("%s: %s", line, a.JSON)
			}
		}
		if a := g.Do(t.Context(), gateway.Request{Principal: p, Refusal: &discovery.Fault{Code: discovery.ValidationError, Message: "No."}}); a.Code == discovery.ValidationError {
			t.Errorf("refused with %s", a.JSON)
		}
	}
	fault = over
	if a := g.Do(t.Context(), gateway.Request{Principal: gateway.Principal{Name: "bob"}, Line: "tell"}); !a.Success() {
		t.Errorf("somebody else: %s", a.JSON)
	}
	if a := <-answers; a.Code != discovery.AuthFailed || delivered.Load() != 0 {
		t.Errorf("what waited: %s", a.JSON)
	}
}

var errHalt = &discovery.Fault{Code: discovery.PermissionDenied, Message: "Everything is stopped.", Hint: "Wait.", Reason: "stopped"}

// stoppable has commands that stop and resume, and that run or wait, under a stop or not.
func stoppable(t *testing.T, limiter gateway.Limiter) *gateway.Gateway {
	t.Helper()
	var stopped *discovery.Fault
	ended := make(chan struct{})
	spec := func(path string, e discovery.Effect, run func(ctx context.Context) error, s discovery.Spec) *discovery.Command {
		s.Path, s.Summary, s.Effect, s.Examples = path, "Run "+path, e, []string{path}
		return discovery.New(s, func(ctx context.Context, _ *discovery.Call, _ *testArgs) (*testResult, error) {
			return &testResult{}, run(ctx)
		})
	}
	nothing := func(context.Context) error { return nil }
	wait := func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Second):
			return nil
		}
	}
	return gatewayOf(t, gateway.Options{
		Limiter:  limiter,
		Settings: fakeSettings(func(context.Context) (gateway.Settings, error) { return gateway.Settings{Stopped: stopped}, nil }),
		Faults: func(err error) *discovery.Fault {
			return &discovery.Fault{Code: discovery.ExecutionError, Message: "It failed.", Hint: "Look.", Err: err}
		},
		Until: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			go func() {
				select {
				case <-ended:
					cancel(errHalt)
				case <-ctx.Done():
				}
			}()
			return ctx, func() { cancel(nil) }
		},
	},
		spec("do read", discovery.Read, nothing, discovery.Spec{}),
		spec("do write", discovery.Write, nothing, discovery.Spec{}),
		spec("do admin", discovery.Admin, nothing, discovery.Spec{}),
		spec("do state", discovery.State, nothing, discovery.Spec{Standing: true}),
		spec("do wait", discovery.Write, wait, discovery.Spec{}),
		spec("do stand", discovery.Write, wait, discovery.Spec{Standing: true}),
		spec("do half", discovery.Write, func(ctx context.Context) error { return &fakePartialError{wait(ctx)} }, discovery.Spec{}),
		spec("do stop", discovery.State, func(context.Context) error { stopped = errHalt; close(ended); return nil }, discovery.Spec{Standing: true, Urgent: true}),
	)
}

// TestAStopEndsAndRefuses: commands at work end with the stop as their reason, and none begins
// but those that stand. stop itself overtakes what is in line.
func TestAStopEndsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stoppable(t, nil)
		var order gateway.Order
		type result struct {
			line   string
			answer gateway.Answer
		}
		results := make(chan result)
		start := time.Now()
		begin := func(line string, ticket *gateway.Ticket) {
			go func() {
				defer ticket.Finish()
				results <- result{line, g.Do(t.Context(), gateway.Request{Line: line, Ticket: ticket})}
			}()
			synctest.Wait()
		}
		begin("do stand", nil)
		begin("do half", nil)
		for _, line := range []string{"do wait", "do write", "do stop"} { // in one line
			begin(line, order.Ticket())
		}
		for range 5 {
			r := <-results
			after := time.Since(start)
			switch want := map[string]discovery.Code{"do wait": discovery.PermissionDenied, "do write": discovery.PermissionDenied, "do half": discovery.ExecutionError}[r.line]; {
			case r.answer.Code != want:
				t.Errorf("%s: %s", r.line, r.answer.JSON)
			case r.line == "do stand" != (after == 20*time.Second):
				t.Errorf("%s: answered after %s", r.line, after)
			}
		}
		admin := gateway.Principal{Name: "admin", Admin: true}
		for line, refused := range map[string]bool{"do read": true, "do write": true, "do admin": true, "do state": false, "help": false, "do write --help": false} {
			if a := g.Do(t.Context(), gateway.Request{Principal: admin, Line: line}); a.Success() == refused {
				t.Errorf("%s: %s", line, a.JSON)
			}
			e, err := g.Explain(t.Context(), gateway.Request{Principal: admin, Line: line})
			if err != nil || (e.Refusal == errHalt) != refused {
				t.Errorf("%s is explained as %v, %v", line, e.Refusal, err)
			}
		}
	})
}

// fakeRefusingLimiter refuses everything.
type fakeRefusingLimiter struct{}

func (fakeRefusingLimiter) Take(context.Context, string, int, time.Duration) (time.Duration, error) {
	return time.Minute, nil
}

// A flood of commands holds up no stop; it cannot be a flood itself.
func TestAStopHasNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stoppable(t, fakeRefusingLimiter{})
		for _, c := range []struct {
			line string
			code discovery.Code
		}{{"do read", discovery.RateLimited}, {"do stop --fields x", discovery.RateLimited}, {"do stop", ""}, {"do stop", discovery.RateLimited}} {
			if a := g.Do(t.Context(), gateway.Request{Line: c.line}); a.Code != c.code {
				t.Errorf("%s: %s", c.line, a.JSON)
			}
		}
	})
}
