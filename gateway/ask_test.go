package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// fakeMatters is what the commands of these tests work on: matters that a person has to
// decide, and what became of them.
type fakeMatters struct {
	mu     sync.Mutex
	opened []int    // matters that a person was to be asked about
	heard  []string // each reply that came, as "state verdict by"
	audit  []AuditEntry
}

type matterArgs struct {
	N int `json:"n,omitempty" jsonschema_description:"Number"`
}

type matterResult struct {
	Done int `json:"done"`
}

func (d *fakeMatters) ask(ctx context.Context, call *discovery.Call, a *matterArgs) (*matterResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	call.Target = fmt.Sprintf("matter %d", a.N)
	waits := &discovery.Fault{Code: discovery.ApprovalRequired, Message: "The matter waits.", Hint: "See to it."}
	if call.Reply == nil {
		d.opened = append(d.opened, a.N)
		return nil, &discovery.Question{Text: fmt.Sprintf("Matter %d?", a.N), State: fmt.Sprint("m", a.N), Otherwise: waits}
	}
	d.heard = append(d.heard, fmt.Sprintf("%s %d %s", call.Reply.State, call.Reply.Verdict, call.Reply.By))
	switch call.Reply.Verdict {
	case discovery.Accepted:
		return &matterResult{a.N}, ctx.Err()
	case discovery.Declined:
		return nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "Declined.", Hint: "Leave it.", Reason: "declined"}
	}
	return nil, waits
}

func (d *fakeMatters) Record(_ context.Context, e AuditEntry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.audit = append(d.audit, e)
	return nil
}

// replies are those that came since the last time.
func (d *fakeMatters) replies() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	heard := d.heard
	d.heard = nil
	return heard
}

// records are the audit entries of a command, in a line each.
func (d *fakeMatters) records(path string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, e := range d.audit {
		if e.Parsed == path {
			list = append(list, fmt.Sprintf("%s %v %s %s", e.Principal, e.Allowed, e.Reason, e.Code))
		}
	}
	return list
}

func newMatters(t testing.TB, now func() time.Time) (*fakeMatters, *Gateway) {
	t.Helper()
	d := &fakeMatters{}
	ask := discovery.New(discovery.Spec{Path: "do ask", Summary: "Ask", Effect: discovery.Send, Examples: []string{"do ask"}}, d.ask)
	g, err := New(Options{Registry: mustRegistry(t, ask), Profile: FullProfile(), Auditor: d, Settings: FixedSettings{CommandsPerMinute: 1 << 30}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return d, g
}

var agent = Principal{Name: "agent"}

func TestAnAnswerReachesItsCommandOnlyWithItsQuestion(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d, g := newMatters(t, func() time.Time { return now })
	_, other := newMatters(t, func() time.Time { return now })
	ask := func(line string) string {
		a := g.Do(t.Context(), Request{Principal: agent, Line: line, CanAsk: true})
		if a.Asked == nil || a.Asked.Text == "" || a.Code != discovery.ApprovalRequired {
			t.Fatalf("%s: %s", line, a.JSON)
		}
		return a.Asked.State
	}
	const line = "do ask --n 1"
	state, second := ask(line), ask("do ask --n 2")
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		t.Fatal(err)
	}
	type try struct {
		g     *Gateway
		p     Principal
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
		"with another command":   {g, agent, "do ask --n 2", state},
		"with a space more":      {g, agent, line + " ", state},
		"with no command at all": {g, agent, "'", state},
		"of another principal":   {g, Principal{Name: "other"}, line, state},
		"of another role":        {g, Principal{Name: "agent", Admin: true}, line, state},
		"of another process":     {other, agent, line, state},
	}
	for i := range raw {
		changed := slices.Clone(raw)
		changed[i] ^= 1
		forged[fmt.Sprint("byte ", i)] = try{g, agent, line, base64.RawURLEncoding.EncodeToString(changed)}
	}
	for name, f := range forged {
		a := f.g.Do(t.Context(), Request{Principal: f.p, Line: f.line, CanAsk: true, Reply: &Reply{State: f.state, Verdict: discovery.Accepted}})
		if a.Code != discovery.PermissionDenied || a.Asked != nil || !strings.Contains(string(a.JSON), "Nothing was done.") {
			t.Errorf("%s: %s", name, a.JSON)
		}
	}
	if heard := d.replies(); len(heard) != 0 {
		t.Fatalf("forged answers got through: %q", heard)
	}
	if got := d.records("do ask"); !slices.Contains(got, "agent false forged_answer PERMISSION_DENIED") {
		t.Errorf("audited as %q", got)
	}

	now = now.Add(AskTime - time.Millisecond)
	if a := g.Do(t.Context(), Request{Principal: agent, Line: line, Reply: &Reply{State: state, Verdict: discovery.Accepted}}); !a.Success() {
		t.Errorf("the last moment: %s", a.JSON)
	}
	if heard := d.replies(); !slices.Equal(heard, []string{"m1 1 person via client"}) {
		t.Errorf("heard %q", heard)
	}
	now = now.Add(time.Millisecond)
	for _, v := range []discovery.Verdict{discovery.Accepted, discovery.Declined, discovery.Unanswered} {
		if a := g.Do(t.Context(), Request{Principal: agent, Line: line, Reply: &Reply{State: state, Verdict: v}}); a.Code != discovery.ApprovalRequired {
			t.Errorf("too late: %s", a.JSON)
		}
		if heard := d.replies(); !slices.Equal(heard, []string{"m1 0 person via client"}) {
			t.Errorf("too late, and heard %q", heard)
		}
	}
}

func TestTheRulesHoldForAnAnswerToo(t *testing.T) {
	d, g := newMatters(t, nil)
	state := g.Do(t.Context(), Request{Principal: agent, Line: "do ask", CanAsk: true}).Asked.State
	g.o.Settings = FixedSettings{Deny: []string{"do ask"}}
	if a := g.Do(t.Context(), Request{Principal: agent, Line: "do ask", Reply: &Reply{State: state, Verdict: discovery.Accepted}}); a.Code != discovery.PermissionDenied {
		t.Errorf("%s", a.JSON)
	}
	if heard := d.replies(); len(heard) != 0 {
		t.Errorf("heard %q", heard)
	}
	if got := d.records("do ask"); got[len(got)-1] != "person via client false deny PERMISSION_DENIED" {
		t.Errorf("audited as %q", got)
	}
}

// A command that asks again gets no second answer, and tokens cannot come back with one.
func TestNobodyIsAskedWhereNobodyCanBe(t *testing.T) {
	_, g := newMatters(t, nil)
	stubborn := discovery.New(discovery.Spec{Path: "stubborn", Summary: "Ask again", Effect: discovery.Send, Examples: []string{"stubborn"}},
		func(context.Context, *discovery.Call, *matterArgs) (*matterResult, error) {
			return nil, &discovery.Question{Text: "?", State: "s", Otherwise: &discovery.Fault{Code: discovery.ApprovalRequired, Message: "No.", Hint: "No."}}
		})
	g.o.Registry = mustRegistry(t, stubborn)
	first := g.Do(t.Context(), Request{Principal: agent, Line: "stubborn", CanAsk: true})
	for name, r := range map[string]Request{
		"again":           {Line: "stubborn", CanAsk: true, Reply: &Reply{State: first.Asked.State, Verdict: discovery.Accepted}},
		"no way to ask":   {Line: "stubborn"},
		"tokens, no line": {Tokens: []string{"stubborn"}, CanAsk: true},
	} {
		r.Principal = agent
		if a := g.Do(t.Context(), r); a.Asked != nil || a.Code != discovery.ApprovalRequired || !strings.Contains(string(a.JSON), "No.") {
			t.Errorf("%s: %s, %+v", name, a.JSON, a.Asked)
		}
	}
}

// What a command has done by its deadline it tells itself.
func TestACommandsOwnWordsOutlastItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g := newMatters(t, nil)
		late := func(err error) *discovery.Command {
			return discovery.New(discovery.Spec{Path: "late", Summary: "Be late", Effect: discovery.Send, Examples: []string{"late"}},
				func(ctx context.Context, _ *discovery.Call, _ *matterArgs) (*matterResult, error) {
					<-ctx.Done()
					return nil, err
				})
		}
		fault := &discovery.Fault{Code: discovery.Conflict, Message: "Half of it is done.", Hint: "Look."}
		for err, want := range map[error]discovery.Code{fault: discovery.Conflict, fmt.Errorf("wrapped: %w", fault): discovery.Conflict, context.DeadlineExceeded: discovery.Timeout,
			&discovery.Question{Text: "?", Otherwise: fault}: discovery.Conflict} {
			g.o.Registry = mustRegistry(t, late(err))
			if a := g.Do(t.Context(), Request{Principal: agent, Line: "late --timeout 1", CanAsk: true}); a.Code != want {
				t.Errorf("%v: %s", err, a.JSON)
			}
		}
	})
}

func TestRejoiningIsBehindWhatIsAtWorkAndBeforeTheRest(t *testing.T) {
	var order Order
	first, reading, changing, unknown := order.Ticket(), order.Ticket(), order.Ticket(), order.Ticket()
	first.Finish()
	told := func(t *Ticket, k ticketKind) *Ticket {
		if err := t.declare(k); err != nil {
			panic(err)
		}
		return t
	}
	told(reading, reads)
	told(changing, changes)
	again := told(first.Rejoin(), changes)
	told(unknown, reads)
	if hasTurn(again) || hasTurn(changing) || hasTurn(unknown) {
		t.Error("somebody overtook a read at work")
	}
	reading.Finish()
	if !hasTurn(again) || hasTurn(changing) || hasTurn(unknown) {
		t.Error("the one that came back is not the next")
	}
	again.Finish()
	if !hasTurn(changing) || hasTurn(unknown) {
		t.Error("the line does not go on")
	}
	changing.Finish()
	if !hasTurn(unknown) {
		t.Error("the last one does not get its turn")
	}
	unknown.Finish()
	if n := order.line.Len(); n != 0 {
		t.Errorf("%d are left in line", n)
	}
	var none *Ticket
	if none.Rejoin() != nil {
		t.Error("no ticket became one")
	}
}
