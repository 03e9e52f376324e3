package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
