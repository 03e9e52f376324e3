package gateway_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// fakeMatters is what the commands of these tests work on: matters that a person has to
// decide.
type fakeMatters struct {
	fakeAuditor
	settings gateway.Settings
	heard    []string // each reply that came, as "state verdict by"
}

type matterArgs struct {
	N int `json:"n,omitempty" jsonschema_description:"Number"`
}

var errWaits = &discovery.Fault{Code: discovery.ApprovalRequired, Message: "The matter waits.", Hint: "See to it."}

// newMatters has a command "ask", and one that asks again whatever was answered.
func newMatters(t *testing.T, now func() time.Time) (*fakeMatters, *gateway.Gateway) {
	t.Helper()
	d := &fakeMatters{settings: gateway.Settings{CommandsPerMinute: 1 << 30}}
	question := func(a *matterArgs) error {
		return &discovery.Question{Text: "?", State: fmt.Sprint("m", a.N), Otherwise: errWaits}
	}
	command := func(path string, run func(context.Context, *discovery.Call, *matterArgs) (*nothing, error)) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "Ask", Effect: discovery.Send, Examples: []string{path}}, run)
	}
	return d, gatewayOf(t, gateway.Options{Auditor: d, Now: now, Settings: fakeSettings(func(context.Context) (gateway.Settings, error) { return d.settings, nil })},
		command("ask", func(_ context.Context, call *discovery.Call, a *matterArgs) (*nothing, error) {
			if call.Reply == nil {
				return nil, question(a)
			}
			d.heard = append(d.heard, fmt.Sprintf("%s %d %s", call.Reply.State, call.Reply.Verdict, call.Reply.By))
			if call.Reply.Verdict != discovery.Accepted {
				return nil, errWaits
			}
			return &nothing{}, nil
		}),
		command("stubborn", func(_ context.Context, _ *discovery.Call, a *matterArgs) (*nothing, error) { return nil, question(a) }))
}

// wantHeard compares the replies that came since the last time.
func (d *fakeMatters) wantHeard(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.heard, want) {
		t.Errorf("heard %q, want %q", d.heard, want)
	}
	d.heard = nil
}

var agent = gateway.Principal{Name: "agent"}

func TestAnAnswerReachesItsCommandOnlyWithItsQuestion(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d, g := newMatters(t, func() time.Time { return now })
	_, other := newMatters(t, func() time.Time { return now })
	ask := func(line string) string {
		a := g.Do(t.Context(), gateway.Request{Principal: agent, Line: line, CanAsk: true})
		if a.Asked == nil || a.Asked.Text == "" || a.Code != discovery.ApprovalRequired {
			t.Fatalf("%s: %s", line, a.JSON)
		}
		return a.Asked.State
	}
	const line = "ask --n 1"
	state, second := ask(line), ask("ask --n 2")
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		t.Fatal(err)
	}
	type try struct {
		g     *gateway.Gateway
		p     gateway.Principal
		line  string
		state string
	}
	forged := map[string]try{
		"no state":               {g, agent, line, ""},
		"not base64":             {g, agent, line, "?" + state},
		"too short":              {g, agent, line, base64.RawURLEncoding.EncodeToString(raw[:39])},
		"cut":                    {g, agent, line, base64.RawURLEncoding.EncodeToString(raw[:len(raw)-1])},
		"longer":                 {g, agent, line, base64.RawURLEncoding.EncodeToString(append(slices.Clone(raw), '1'))},
		"of another command":     {g, agent, line, second},
		"with another command":   {g, agent, "ask --n 2", state},
		"with a space more":      {g, agent, line + " ", state},
		"with no command at all": {g, agent, "'", state},
		"of another principal":   {g, gateway.Principal{Name: "other"}, line, state},
		"of another role":        {g, gateway.Principal{Name: "agent", Admin: true}, line, state},
		"of another process":     {other, agent, line, state},
		"not believed":           {g, gateway.Principal{Name: "agent", Unasked: true}, line, state},
	}
	for i := range raw {
		changed := slices.Clone(raw)
		changed[i] ^= 1
		forged[fmt.Sprint("byte ", i)] = try{g, agent, line, base64.RawURLEncoding.EncodeToString(changed)}
	}
	for name, f := range forged {
		a := f.g.Do(t.Context(), gateway.Request{Principal: f.p, Line: f.line, CanAsk: true, Reply: &gateway.Reply{State: f.state, Verdict: discovery.Accepted}})
		if a.Code != discovery.PermissionDenied || a.Asked != nil || !strings.Contains(string(a.JSON), "Nothing was done.") {
			t.Errorf("%s: %s", name, a.JSON)
		}
	}
	d.wantHeard(t)
	if e := d.last(t); e.Allowed || e.Reason != "forged_answer" {
		t.Errorf("audited as %+v", e)
	}
	now = now.Add(gateway.AskTime - time.Millisecond)
	if a := g.Do(t.Context(), gateway.Request{Principal: agent, Line: line, Reply: &gateway.Reply{State: state, Verdict: discovery.Accepted}}); !a.Success() {
		t.Errorf("the last moment: %s", a.JSON)
	}
	d.wantHeard(t, "m1 1 person via client")
	now = now.Add(time.Millisecond)
	for _, v := range []discovery.Verdict{discovery.Accepted, discovery.Declined, discovery.Unanswered} {
		if a := g.Do(t.Context(), gateway.Request{Principal: agent, Line: line, Reply: &gateway.Reply{State: state, Verdict: v}}); a.Code != discovery.ApprovalRequired {
			t.Errorf("too late: %s", a.JSON)
		}
		d.wantHeard(t, "m1 0 person via client")
	}
}

func TestTheRulesHoldForAnAnswerToo(t *testing.T) {
	d, g := newMatters(t, nil)
	state := g.Do(t.Context(), gateway.Request{Principal: agent, Line: "ask", CanAsk: true}).Asked.State
	d.settings.Deny = []string{"ask"}
	if a := g.Do(t.Context(), gateway.Request{Principal: agent, Line: "ask", Reply: &gateway.Reply{State: state, Verdict: discovery.Accepted}}); a.Code != discovery.PermissionDenied {
		t.Errorf("%s", a.JSON)
	}
	d.wantHeard(t)
	if e := d.last(t); e.Principal != gateway.PersonViaClient || e.Allowed || e.Reason != "deny" {
		t.Errorf("audited as %+v", e)
	}
}

// A command that asks again gets no second answer, and tokens cannot come back with one.
func TestNobodyIsAskedWhereNobodyCanBe(t *testing.T) {
	_, g := newMatters(t, nil)
	first := g.Do(t.Context(), gateway.Request{Principal: agent, Line: "stubborn", CanAsk: true})
	for name, r := range map[string]gateway.Request{
		"again":           {Line: "stubborn", CanAsk: true, Reply: &gateway.Reply{State: first.Asked.State, Verdict: discovery.Accepted}},
		"no way to ask":   {Line: "stubborn"},
		"tokens, no line": {Tokens: []string{"stubborn"}, CanAsk: true},
	} {
		r.Principal = agent
		if a := g.Do(t.Context(), r); a.Asked != nil || a.Code != discovery.ApprovalRequired || !strings.Contains(string(a.JSON), errWaits.Message) {
			t.Errorf("%s: %s, %+v", name, a.JSON, a.Asked)
		}
	}
}

// What a command has done by its deadline it tells itself.
func TestACommandsOwnWordsOutlastItsDeadline(t *testing.T) {
	fault := &discovery.Fault{Code: discovery.Conflict, Message: "Half of it is done.", Hint: "Look."}
	for err, want := range map[error]discovery.Code{fault: discovery.Conflict, fmt.Errorf("wrapped: %w", fault): discovery.Conflict, context.DeadlineExceeded: discovery.Timeout,
		&discovery.Question{Text: "?", Otherwise: fault}: discovery.Conflict} {
		synctest.Test(t, func(t *testing.T) {
			g := gatewayOf(t, gateway.Options{}, discovery.New(discovery.Spec{Path: "late", Summary: "Be late", Effect: discovery.Send, Examples: []string{"late"}},
				func(ctx context.Context, _ *discovery.Call, _ *nothing) (*nothing, error) {
					<-ctx.Done()
					return nil, err
				}))
			if a := g.Do(t.Context(), gateway.Request{Principal: agent, Line: "late --timeout 1", CanAsk: true}); a.Code != want {
				t.Errorf("%v: %s", err, a.JSON)
			}
		})
	}
}

// An answer may come to another process of those that share a key, as behind one name.
func TestAnAnswerMayComeToAnotherProcessWithTheSameKey(t *testing.T) {
	process := func() *gateway.Gateway {
		return gatewayOf(t, gateway.Options{StateKey: func(context.Context) ([]byte, error) { return []byte("the vault's"), nil }},
			discovery.New(discovery.Spec{Path: "ask", Summary: "Ask", Effect: discovery.Send, Examples: []string{"ask"}}, func(_ context.Context, call *discovery.Call, _ *matterArgs) (*nothing, error) {
				if call.Reply == nil {
					return nil, &discovery.Question{Text: "?", State: "m", Otherwise: errWaits}
				}
				return &nothing{}, nil
			}))
	}
	asked := process().Do(t.Context(), gateway.Request{Principal: agent, Line: "ask", CanAsk: true})
	if asked.Asked == nil {
		t.Fatalf("%s", asked.JSON)
	}
	a := process().Do(t.Context(), gateway.Request{Principal: agent, Line: "ask", Reply: &gateway.Reply{State: asked.Asked.State, Verdict: discovery.Accepted}})
	if !a.Success() {
		t.Errorf("%s", a.JSON)
	}
}

// fakeFullLog is a log in which everybody has filled their share.
type fakeFullLog struct{ fakeAuditor }

func (*fakeFullLog) LogFull(string) (time.Duration, int) { return time.Minute, 1 << 20 }

// Whoever has a scope is not the administrator, whom a full log does not hold up.
func TestAFullLogHoldsUpWhoeverHasAScope(t *testing.T) {
	g := gatewayOf(t, gateway.Options{Auditor: &fakeFullLog{}}, discovery.New(discovery.Spec{Path: "look", Summary: "Look", Effect: discovery.Read, Examples: []string{"look"}},
		func(context.Context, *discovery.Call, *matterArgs) (*nothing, error) { return &nothing{}, nil }))
	for p, limited := range map[*gateway.Principal]bool{
		{Name: "admin", Admin: true}: false,
		{Name: "granted", Admin: true, Scope: &gateway.Scope{Profile: gateway.FullProfile()}}: true,
	} {
		if a := g.Do(t.Context(), gateway.Request{Principal: *p, Line: "look"}); (a.Code == discovery.RateLimited) != limited {
			t.Errorf("%s: %s", p.Name, a.JSON)
		}
	}
}

type nothing struct{}

// asideGateway has a command that waits aside for another, and tells when its answer
// has arrived.
func asideGateway(t *testing.T, delivered *atomic.Int32) *gateway.Gateway {
	t.Helper()
	told := make(chan struct{})
	spec := func(path string) discovery.Spec {
		return discovery.Spec{Path: path, Summary: "Wait or tell", Effect: discovery.State, Examples: []string{path}}
	}
	return gatewayOf(t, gateway.Options{},
		discovery.New(spec("wait"), func(ctx context.Context, call *discovery.Call, _ *nothing) (*nothing, error) {
			call.Delivered(func() { delivered.Add(1) })
			return &nothing{}, call.Aside(ctx, func(ctx context.Context) error {
				select {
				case <-told:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}),
		discovery.New(spec("tell"), func(context.Context, *discovery.Call, *nothing) (*nothing, error) {
			close(told)
			return &nothing{}, nil
		}),
		discovery.New(spec("fail"), func(_ context.Context, call *discovery.Call, _ *nothing) (*nothing, error) {
			call.Delivered(func() { delivered.Add(1) })
			return nil, errors.New("it fails")
		}))
}

func TestACommandThatStandsAsideLetsTheNextOnesPass(t *testing.T) {
	var delivered atomic.Int32
	g := asideGateway(t, &delivered)
	var o gateway.Order
	first, second, third := o.Ticket(), o.Ticket(), o.Ticket()
	answers := make(chan gateway.Answer, 2)
	for ticket, line := range map[*gateway.Ticket]string{first: "wait", second: "tell"} {
		go func() {
			defer ticket.Finish()
			answers <- g.Do(t.Context(), gateway.Request{Line: line, Ticket: ticket})
		}()
	}
	for range 2 {
		if a := <-answers; !a.Success() {
			t.Errorf("%s", a.JSON)
		}
	}
	// It left the line for good when it ended.
	if a := g.Do(t.Context(), gateway.Request{Line: "fail", Ticket: third}); a.Success() || !strings.Contains(string(a.JSON), "EXECUTION_ERROR") {
		t.Errorf("%s", a.JSON)
	}
}

func TestOnlyAnAnswerThatSucceededIsDelivered(t *testing.T) {
	var delivered atomic.Int32
	g := asideGateway(t, &delivered)
	if a := g.Do(t.Context(), gateway.Request{Line: "tell"}); !a.Success() {
		t.Fatalf("%s", a.JSON)
	}
	failed, waited := g.Do(t.Context(), gateway.Request{Line: "fail"}), g.Do(t.Context(), gateway.Request{Line: "wait"})
	if delivered.Load() != 0 {
		t.Error("delivered before anybody said so")
	}
	failed.Delivered()
	if delivered.Load() != 0 {
		t.Error("a failure was delivered")
	}
	waited.Delivered()
	if delivered.Load() != 1 {
		t.Errorf("%d deliveries", delivered.Load())
	}
}
