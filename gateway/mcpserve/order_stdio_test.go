package mcpserve

import (
	"context"
	"encoding/json"
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
	"github.com/postern-mail/postern/internal/testmain"
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
				for range testmain.Rounds(3, 20) { // each of them in another order
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

// changingSettings take all commands away once the store holds a 1.
type changingSettings struct{ store *fakeStore }

func (c *changingSettings) Settings(context.Context, bool) (gateway.Settings, error) {
	s := gateway.Settings{Location: time.FixedZone("", 2*60*60)}
	if slices.Contains(c.store.written(), 1) {
		s.Deny = []string{"do"}
	}
	return s, nil
}

// Behind a change that is at work every other command waits, and is judged in its turn; what
// is no command is answered at once.
func TestTheLineBehindAChange(t *testing.T) {
	var changing changingSettings
	for name, c := range map[string]struct {
		settings      gateway.SettingsSource
		lines         []string // an id and a command, "cancel" and an id, or as they are
		atOnce, after []string // ids and codes of the answers
		written       []int
	}{
		"no commands": {nil, []string{"2 nope", "3 do write 'open", "4 do write --nope", "5 do write --help", "6 do", "7 ", "12 schema do write",
			`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"cli","arguments":{"COMMAND":"do write"}}}`,
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"shell","arguments":{"command":"do write"}}}`,
			`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":5}}`, `{"jsonrpc":"2.0","id":11,"method":"tools/call"}`},
			[]string{"10 ", "11 ", "12 ", "2 COMMAND_NOT_FOUND", "3 PARSE_ERROR", "4 VALIDATION_ERROR", "5 ", "6 ", "7 COMMAND_NOT_FOUND",
				"8 VALIDATION_ERROR", "9 "}, nil, []int{1}},
		"commands": {nil, []string{"20 do panic", "21 do admin --n 21", "22 do write --n 22", "23 do read"},
			nil, []string{"20 EXECUTION_ERROR", "21 PERMISSION_DENIED", "22 ", "23 "}, []int{1, 22}},
		"beyond the rate": {gateway.FixedSettings{CommandsPerMinute: 2}, []string{"2 do write --n 2", "3 do write --n 3", "4 do write --n 4"},
			nil, []string{"2 ", "3 RATE_LIMITED", "4 RATE_LIMITED"}, []int{1, 2}},
		"taken away meanwhile": {&changing, []string{"2 do write --n 2", "3 do read --n 3"},
			nil, []string{"2 PERMISSION_DENIED", "3 PERMISSION_DENIED"}, []int{1}},
		// Whether these can be bound only a command's own check finds, by the settings of its turn.
		"arguments that depend on the settings": {gateway.FixedSettings{Location: time.FixedZone("", 2*60*60)},
			[]string{"2 do write --n 2 --at 2026-02-02T10:30", "3 do write --n 3 --at 2026-02-02T10:30Z"},
			nil, []string{"2 ", "3 VALIDATION_ERROR"}, []int{1, 2}},
		// One that waits for its turn, one that waits for a place, and the one at work, which
		// does not stop at once.
		"cancelled": {nil, []string{"2 do write --n 2", "3 do write --n 3", "4 do write --n 4", "5 do write --n 5", "6 do write --n 6",
			"cancel 3", "cancel 5", "cancel 1"}, nil, []string{"2 ", "4 ", "6 "}, []int{1, 2, 4, 6}},
	} {
		bubble(t, name, func(t *testing.T) {
			l, g := newFakeStore(t, gateway.Options{Settings: c.settings})
			changing.store = l
			s := startInitialized(t, g, Server{MaxInFlight: 4})
			release := l.hold(1)
			s.send(callLine(1, "do write --n 1 --deaf"))
			synctest.Wait()
			for _, line := range c.lines {
				switch first, rest, _ := strings.Cut(line, " "); {
				case strings.HasPrefix(line, "{"):
					s.send(line)
				case first == "cancel":
					s.send(cancelLine(rest))
				default:
					s.send(callLine(json.RawMessage(first), rest))
				}
			}
			wantCodes(t, s.take(), c.atOnce...)
			if b := l.begun(); b != "write 1" {
				t.Errorf("begun: %s", b)
			}
			release()
			time.Sleep(5 * time.Second) // a refusal by rate comes late
			after := c.after
			if name != "cancelled" {
				after = append([]string{"1 "}, after...)
			}
			wantCodes(t, s.take(), after...)
			if w := l.written(); !slices.Equal(w, c.written) {
				t.Errorf("written: %d, want %d", w, c.written)
			}
			for _, e := range l.audit {
				started := e.Allowed || e.Reason != "not_started" || e.Parsed != "do write"
				if name == "cancelled" && strings.HasSuffix(e.Command, "--n 3") && started {
					t.Errorf("what was cancelled in line is audited as %+v", e)
				}
			}
		})
	}
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
		must(t, session.Wait())
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
	must(t, second((&Server{Gateway: echo}).library().Connect(t.Context(), there, nil)))
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil); err == nil {
		t.Error("it is served")
	}
}
