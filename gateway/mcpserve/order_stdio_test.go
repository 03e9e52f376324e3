package mcpserve

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

func modernLine(id int, command string) string {
	return strings.Replace(callLine(id, command), `"params":{`, `"params":{`+modern+`,`, 1)
}

// startStore is startInitialized with a fakeStore behind the gateway.
func startStore(t *testing.T, o gateway.Options, server Server) (*fakeStore, *session) {
	t.Helper()
	l, g := newFakeStore(t, o)
	return l, startInitialized(t, g, server)
}

func numbers(from, to, step int) []int {
	var list []int
	for n := from; n < to; n += step {
		list = append(list, n)
	}
	return list
}

func TestAHundredInFlightTakeEffectInTheOrderOfTheirFrames(t *testing.T) {
	for era, line := range map[string]func(int, string) string{
		"initialized": func(id int, command string) string { return callLine(id, command) },
		"stateless":   modernLine,
	} {
		for _, inFlight := range []int{1, 2, 64} {
			t.Run(fmt.Sprint(era, " ", inFlight), func(t *testing.T) {
				for range 3 { // each of them in another order
					synctest.Test(t, func(t *testing.T) {
						l, g := newFakeStore(t, gateway.Options{})
						s := startSession(t, g, Server{MaxInFlight: inFlight})
						if era == "initialized" {
							s.send(initializeLine, initializedLine)
							s.take()
						}
						for n := range 100 {
							s.send(line(n, hundredth(n)))
						}
						s.finish()
						l.checkHundred(t, answers(t, s.take()))
					})
				}
			})
		}
	}
}

func TestWhatIsNoCommandIsWaitedForByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := startStore(t, gateway.Options{}, Server{})
		release := l.hold(1)
		s.send(callLine(1, "do write --n 1"))
		bad := map[int]string{
			2:  callLine(2, "nope"),
			3:  callLine(3, "do write 'open"),
			4:  callLine(4, "do write --nope"),
			5:  callLine(5, "do write --help"),
			6:  callLine(6, "do"),
			7:  callLine(7, ""),
			8:  `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"cli","arguments":{"COMMAND":"do write"}}}`,
			9:  `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"shell","arguments":{"command":"do write"}}}`,
			10: `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":5}}`,
			11: `{"jsonrpc":"2.0","id":11,"method":"tools/call"}`,
			12: callLine(12, "schema do write"),
		}
		for id := range 11 {
			s.send(bad[id+2])
		}
		if got := answers(t, s.take()); len(got) != len(bad) {
			t.Errorf("%d of %d are answered while a change is held: %v", len(got), len(bad), got)
		}
		s.send(callLine(20, "do panic"), callLine(21, "do admin --n 21"), callLine(22, "do write --n 22"))
		if got := s.take(); len(got) != 0 {
			t.Errorf("answered before its turn: %q", got)
		}
		release()
		time.Sleep(time.Second)
		got := answers(t, s.take())
		if len(got) != 4 || got[20].Error.Code != discovery.ExecutionError || got[21].Error.Code != discovery.PermissionDenied || !got[22].Success {
			t.Errorf("%+v", got)
		}
		if w := l.written(); !slices.Equal(w, []int{1, 22}) {
			t.Errorf("written: %d", w)
		}
	})
}

func TestCancellingInTheMiddleOfTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := startStore(t, gateway.Options{}, Server{MaxInFlight: 4})
		release := l.hold(1)
		s.send(callLine(1, "do write --n 1 --deaf"))
		for n := 2; n <= 12; n++ {
			s.send(callLine(n, fmt.Sprintf("do write --n %d --timeout 300", n)))
		}
		synctest.Wait()
		// One that waits for its turn, one that waits for a place, and the one at work,
		// which does not stop at once.
		s.send(cancelLine(3), cancelLine(8), cancelLine(1))
		if got := s.take(); len(got) != 0 || l.begun() != "write 1" {
			t.Errorf("begun: %s, answered: %q", l.begun(), got)
		}
		release()
		time.Sleep(time.Second)
		got := answers(t, s.take())
		want := []int{1, 2, 4, 5, 6, 7, 9, 10, 11, 12}
		if w := l.written(); !slices.Equal(w, want) {
			t.Errorf("written: %d, want %d", w, want)
		}
		if len(got) != 9 {
			t.Errorf("%d answers", len(got))
		}
		i := slices.IndexFunc(l.audit, func(e gateway.AuditEntry) bool { return strings.HasPrefix(e.Command, "do write --n 3 ") })
		if i < 0 || l.audit[i].Allowed || l.audit[i].Reason != "not_started" || l.audit[i].Parsed != "do write" {
			t.Errorf("what was cancelled in line is audited as %+v", l.audit)
		}
	})
}

func TestAWaitInVainSaysThatNothingWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := startStore(t, gateway.Options{}, Server{})
		l.hold(1)
		start := time.Now()
		s.send(callLine(1, "do write --n 1 --timeout 30"), callLine(2, "do write --n 2 --timeout 7"), callLine(3, "do read --n 3 --timeout 5"), callLine(4, "do write --n 4 --timeout 300"))
		s.take()
		for _, c := range []struct{ id, after int }{{3, 5}, {2, 7}} {
			time.Sleep(time.Until(start.Add(time.Duration(c.after) * time.Second)))
			a := answers(t, s.take())[c.id]
			if a.Error.Code != discovery.Timeout || !strings.Contains(a.Error.Message, fmt.Sprintf("did not start within %ds", c.after)) || !strings.Contains(a.Error.Message, "Nothing was done") {
				t.Errorf("%d after %s: %+v", c.id, time.Since(start), a)
			}
		}
		l.mu.Lock()
		audit := slices.Clone(l.audit)
		l.mu.Unlock()
		if len(audit) != 2 {
			t.Errorf("%d audit entries, want 2", len(audit))
		}
		for _, e := range audit {
			if e.Allowed || e.Reason != "not_started" || e.Code != "TIMEOUT" || e.Parsed == "" || !strings.HasPrefix(e.Command, "do ") {
				t.Errorf("audited as %+v", e)
			}
		}
		time.Sleep(time.Minute) // the first one is over its own time, and makes way
		if got := answers(t, s.take()); len(got) != 2 || !strings.Contains(got[1].Error.Message, "was stopped after 30s") || !got[4].Success {
			t.Errorf("%+v", got)
		}
		if b := l.begun(); b != "write 1, write 4" {
			t.Errorf("begun: %s", b)
		}
	})
}

func TestARefusalByRateDoesNotHoldTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := startStore(t, gateway.Options{Settings: gateway.FixedSettings{CommandsPerMinute: 2}}, Server{})
		s.send(callLine(1, "do write --n 1"), callLine(2, "do write --n 2"))
		for n := 3; n <= 20; n++ {
			s.send(callLine(n, fmt.Sprint("do write --n ", n)))
		}
		time.Sleep(time.Second + time.Second)
		got := answers(t, s.take())
		if len(got) != 20 || got[20].Error.Code != discovery.RateLimited {
			t.Errorf("%d answers, the last %+v", len(got), got[20])
		}
		if w := l.written(); !slices.Equal(w, []int{1, 2}) {
			t.Errorf("written: %d", w)
		}
	})
}

// changingSettings take all commands away once the store holds a 1.
type changingSettings struct{ store *fakeStore }

func (c *changingSettings) Settings(context.Context, bool) (gateway.Settings, error) {
	s := gateway.Settings{Location: time.FixedZone("", 2*60*60)}
	if slices.Contains(c.store.written(), 1) {
		s.Deny = []string{"do"}
	}
	return s, nil
}

func TestTheSettingsAreThoseOfItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &changingSettings{}
		l, g := newFakeStore(t, gateway.Options{Settings: source})
		source.store = l
		s := startInitialized(t, g, Server{})
		release := l.hold(1)
		s.send(callLine(1, "do write --n 1"), callLine(2, "do write --n 2"), callLine(3, "do read --n 3"))
		s.take()
		release()
		got := answers(t, s.take())
		for _, id := range []int{2, 3} {
			if got[id].Error.Code != discovery.PermissionDenied {
				t.Errorf("%d: what was taken away while it waited is done all the same: %+v", id, got[id])
			}
		}
	})
}

// What only a command's own check of its arguments finds, by the settings of its turn,
// waits for that turn.
func TestAChangeWhoseArgumentsDependOnTheSettingsWaitsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := startStore(t, gateway.Options{Settings: gateway.FixedSettings{Location: time.FixedZone("", 2*60*60)}}, Server{})
		release := l.hold(1)
		l.hold(2)()
		s.send(callLine(1, "do write --n 1"), callLine(2, "do write --n 2 --at 2026-02-02T10:30"), callLine(3, "do write --n 3 --at 2026-02-02T10:30Z"))
		if got := answers(t, s.take()); len(got) != 0 || l.begun() != "write 1" {
			t.Errorf("begun: %s, answered: %+v", l.begun(), got)
		}
		release()
		if got := answers(t, s.take()); len(got) != 3 || !slices.Equal(got[2].Data.Entries, []int{1, 2}) || got[3].Error.Code != discovery.ValidationError {
			t.Errorf("%+v", got)
		}
	})
}

func TestNoTicketIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := newFakeStore(t, gateway.Options{})
		inW, conn, session := startConn(t, nopWriteCloser{io.Discard}, Server{Gateway: g, MaxInFlight: 3})
		release := l.hold(1)
		_, _ = io.WriteString(inW, initializeLine+"\n"+callLine(1, "do write --n 1")+"\n")
		for id := 2; id < 300; id += 4 {
			for i, command := range []string{"do write", "do read", "do panic", "nope"} {
				_, _ = io.WriteString(inW, callLine(id+i, command)+"\n")
			}
			_, _ = io.WriteString(inW, cancelLine(id)+"\n"+cancelLine(id+1)+"\n")
		}
		synctest.Wait()
		release()
		_ = inW.Close()
		wantNoError(t, session.Wait())
		if n := len(conn.byKey) + conn.frames + conn.bytes + conn.direct.Len(); n != 0 {
			t.Errorf("%d requests, %d frames", len(conn.byKey), conn.frames)
		}
		if a := g.Do(t.Context(), gateway.Request{Line: "do write --timeout 1", Ticket: conn.order.Ticket()}); !a.Success() {
			t.Errorf("somebody is left in line: %s", a.JSON)
		}
	})
}

func TestARequestThatNoTransportKnowsIsRefused(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	if _, err := (&Server{Gateway: echo}).library().Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil); err == nil {
		t.Error("it is served")
	}
}
