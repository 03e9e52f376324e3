package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// A ledger is what the commands of these tests change and show: a list of numbers.
// A command may be held in the middle of its work.
type ledger struct {
	mu      sync.Mutex
	entries []int
	running int           // writes
	slowest time.Duration // that a command takes
	holds   map[int]chan struct{}
	started []string // every command that got to run
	audit   []AuditEntry
}

type ledgerArgs struct {
	N    int                `json:"n,omitempty" jsonschema_description:"Number"`
	Deaf bool               `json:"deaf,omitempty" jsonschema_description:"Ignore the end of the context"`
	At   discovery.Datetime `json:"at,omitzero" jsonschema_description:"An instant that is right in the zone of the settings alone"`
}

// Validate depends on the zone.
func (a *ledgerArgs) Validate() error {
	if at := a.At.Time; !at.IsZero() && at.UTC().Hour() == at.Hour() {
		return errors.New("the zone is wrong")
	}
	return nil
}

type ledgerResult struct {
	Entries []int `json:"entries"`
}

// hold keeps the command with that number until the returned function is called.
func (l *ledger) hold(n int) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	l.holds[n] = c
	return sync.OnceFunc(func() { close(c) })
}

func (l *ledger) begin(name string, n int) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = append(l.started, fmt.Sprint(name, " ", n))
	return l.holds[n]
}

func (l *ledger) run(name string, change bool) func(context.Context, *discovery.Call, *ledgerArgs) (*ledgerResult, error) {
	return func(ctx context.Context, _ *discovery.Call, a *ledgerArgs) (*ledgerResult, error) {
		hold := l.begin(name, a.N)
		if change {
			l.mu.Lock()
			l.running++
			together := l.running
			l.mu.Unlock()
			defer func() { l.mu.Lock(); l.running--; l.mu.Unlock() }()
			if together > 1 {
				return nil, errors.New("two changes at once")
			}
		}
		switch {
		case hold != nil && a.Deaf:
			<-hold
		case hold != nil:
			select {
			case <-hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		default:
			time.Sleep(rand.N(l.slowest))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if change {
			l.entries = append(l.entries, a.N)
		}
		return &ledgerResult{Entries: slices.Clone(l.entries)}, nil
	}
}

func (l *ledger) Record(_ context.Context, e AuditEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audit = append(l.audit, e)
	return nil
}

func (l *ledger) written() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// begun tells which commands have got to run.
func (l *ledger) begun() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.started, ", ")
}

func newLedger(t *testing.T, o Options) (*ledger, CallFunc) {
	t.Helper()
	l := &ledger{slowest: 5 * time.Millisecond, holds: map[int]chan struct{}{}}
	command := func(path string, effect discovery.Effect, run func(context.Context, *discovery.Call, *ledgerArgs) (*ledgerResult, error)) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Summary: "Run " + path, Effect: effect, Examples: []string{path}}, run)
	}
	o.Registry = mustRegistry(t, command("do read", discovery.Read, l.run("read", false)),
		command("do state", discovery.State, l.run("state", true)),
		command("do flag", discovery.Flag, l.run("flag", true)),
		command("do write", discovery.Write, l.run("write", true)),
		command("do send", discovery.Send, l.run("send", true)),
		command("do admin", discovery.Admin, l.run("admin", true)),
		command("do panic", discovery.Write, func(context.Context, *discovery.Call, *ledgerArgs) (*ledgerResult, error) { panic("boom") }))
	o.Profile, o.Auditor = FullProfile(), l
	if o.Settings == nil {
		o.Settings = FixedSettings{CommandsPerMinute: 1 << 30}
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l, g.MCP(Principal{Name: "agent"})
}

// checkHundred checks the outcome of a hundred commands in flight of which every
// second, from the first, writes its number.
func (l *ledger) checkHundred(t *testing.T, got map[int]ledgerAnswer) {
	t.Helper()
	if len(got) != 100 {
		t.Errorf("%d answers", len(got))
	}
	if w := l.written(); !slices.Equal(w, numbers(0, 100, 2)) {
		t.Errorf("took effect as %d", w)
	}
	for n, a := range got {
		// A read, like a change, shows every change before it and none after.
		if !a.Success || !slices.Equal(a.Data.Entries, numbers(0, n+1, 2)) {
			t.Errorf("%d: %+v", n, a)
		}
	}
	var audited []string
	for _, e := range l.audit {
		if e.Parsed != "do read" {
			audited = append(audited, e.Command[strings.LastIndexByte(e.Command, ' ')+1:])
		}
	}
	if want := strings.Trim(fmt.Sprint(numbers(0, 100, 2)), "[]"); strings.Join(audited, " ") != want {
		t.Errorf("changes are audited as %s", audited)
	}
}

// hundredth is the n-th command of a hundred.
func hundredth(n int) string {
	if n%2 == 1 {
		return fmt.Sprintf("do read --n %d", n)
	}
	return fmt.Sprintf("do %s --n %d", []string{"state", "flag", "write", "send"}[n/2%4], n)
}

// answers is the envelope of each answer, by the id of its request.
func answers(t *testing.T, lines []string) map[int]ledgerAnswer {
	t.Helper()
	all := map[int]ledgerAnswer{}
	for _, line := range lines {
		var m struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
			Error  *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.Result.Content) != 1 && m.Error == nil {
			t.Fatalf("%v in %s", err, line)
		}
		var a ledgerAnswer
		if m.Error != nil {
			a.rpc = m.Error.Code
		} else if err := json.Unmarshal([]byte(m.Result.Content[0].Text), &a); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if _, twice := all[m.ID]; twice {
			t.Errorf("%d is answered twice", m.ID)
		}
		all[m.ID] = a
	}
	return all
}

type ledgerAnswer struct {
	Success bool
	Data    struct{ Entries []int }
	Error   struct {
		Code          discovery.Code
		Message, Hint string
	}
	rpc int // code of a JSON-RPC error
}
