package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
)

// FuzzOrder plays a script on a line and on what its rules say in so many words:
// each byte makes a request arrive, say what it is, or finish.
func FuzzOrder(f *testing.F) {
	for _, seed := range []string{"", "\x00\x00\x00\x40\x81\x42\xc1\xc0", "\x00\x00\x81\x40\x80\xc0\x81", "\x00\x00\x00\x00\x43\x42\x81\x40\xc3\xc0\x42\xc1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		type request struct {
			ticket   *Ticket
			kind     ticketKind
			finished bool
		}
		var order Order
		var all []*request
		may := func(i int) bool {
			for _, earlier := range all[:i] {
				if !earlier.finished && (earlier.kind != reads || all[i].kind == changes) {
					return false
				}
			}
			return true
		}
		for _, b := range script {
			op, which := b>>6, int(b&0x3f)
			switch {
			case op == 0:
				if len(all) <= 0x3f {
					all = append(all, &request{ticket: order.Ticket()})
				}
			case which >= len(all):
			case op == 3:
				all[which].ticket.Finish()
				all[which].finished = true
			default:
				r, kind := all[which], ticketKind(op)
				err := r.ticket.declare(kind)
				if wrong := r.finished || r.kind != 0; wrong != (err != nil) {
					t.Fatalf("after %q request %d declares kind %d: %v", script, which, kind, err)
				}
				if err == nil {
					r.kind = kind
				}
			}
			waiting := 0
			for i, r := range all {
				if r.finished {
					continue
				}
				waiting++
				if r.kind == 0 {
					continue
				}
				if told := hasTurn(r.ticket); told != may(i) {
					t.Fatalf("after %q request %d of kind %d: told %v", script, i, r.kind, told)
				}
			}
			if n := order.line.Len(); n != waiting {
				t.Fatalf("%d in line, want %d", n, waiting)
			}
		}
	})
}

func hasTurn(t *Ticket) bool {
	select {
	case <-t.turn:
		return true
	default:
		return false
	}
}

func TestAnEndedContextStartsNothingAndLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order Order
		first, second, third := order.Ticket(), order.Ticket(), order.Ticket()
		if err := first.wait(t.Context(), discovery.Write); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- second.wait(ctx, discovery.Write) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		first.Finish()
		if err := third.wait(ctx, discovery.Write); !errors.Is(err, context.Canceled) {
			t.Errorf("its turn has come and its context has ended: %v", err)
		}
		if err := third.wait(t.Context(), discovery.Write); !errors.Is(err, errFinished) {
			t.Errorf("one that has left the line gets in again: %v", err)
		}
		if n := order.line.Len(); n != 0 {
			t.Errorf("%d are left in line", n)
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

func TestAnUnknownEffectIsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, effect := range []discovery.Effect{discovery.State, discovery.Flag, discovery.Write, discovery.Send, discovery.Admin, discovery.Admin + 1} {
			var order Order
			read, change := order.Ticket(), order.Ticket()
			if err := read.wait(t.Context(), discovery.Read); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := change.wait(ctx, effect); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("effect %d does not wait for a read: %v", effect, err)
			}
			cancel()
		}
	})
}

func mustRegistry(tb testing.TB, commands ...*discovery.Command) *discovery.Registry {
	tb.Helper()
	r, err := discovery.NewRegistry(discovery.Info{Name: "test", Version: "1", Groups: map[string]string{"do": "Do things"}}, commands...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

type stepArgs struct {
	Steps int    `json:"steps,omitempty" jsonschema:"minimum=0,maximum=100000,default=0" jsonschema_description:"How many steps"`
	Every int    `json:"every,omitempty" jsonschema:"minimum=0,maximum=100000,default=0" jsonschema_description:"Milliseconds for each"`
	Idle  int    `json:"idle,omitempty" jsonschema:"minimum=0,maximum=1000000,default=0" jsonschema_description:"Milliseconds of silence at the end"`
	Says  string `json:"says,omitempty" jsonschema_description:"What it says first, without a count"`
}

// stepper is a gateway with a command that reports, and goes on reporting when it
// has returned, as a goroutine left behind might.
func stepper(t *testing.T) *Gateway {
	t.Helper()
	run := discovery.New(discovery.Spec{Path: "do steps", Summary: "Do it step by step", Effect: discovery.State, Timeout: 300, Examples: []string{"do steps"}},
		func(ctx context.Context, call *discovery.Call, a *stepArgs) (struct{}, error) {
			if a.Says != "" {
				call.Progress(0, 0, a.Says)
			}
			for i := range a.Steps {
				call.Progress(float64(i), float64(a.Steps), "steps")
				time.Sleep(time.Duration(a.Every) * time.Millisecond)
			}
			time.Sleep(time.Duration(a.Idle) * time.Millisecond)
			go func() {
				for range 100 {
					time.Sleep(10 * time.Millisecond)
					call.Progress(1e6, 0, "too late")
				}
			}()
			return struct{}{}, ctx.Err()
		})
	g, err := New(Options{Registry: mustRegistry(t, run), Profile: FullProfile()})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A notification is a progress notification, and when it came.
type notification struct {
	at          time.Duration
	done, total float64
	message     string
}

// progressed runs a command and returns what was reported and how long it took.
func progressed(t *testing.T, line string) (list []notification, took time.Duration) {
	t.Helper()
	g := stepper(t)
	start := time.Now()
	over := false
	told := func(done, total float64, message string) {
		if over {
			t.Errorf("told of %q after the answer", message)
		}
		list = append(list, notification{time.Since(start), done, total, message})
	}
	if a := g.Do(t.Context(), Request{Principal: Principal{Name: "agent"}, Line: line, Progress: told}); !a.Success() {
		t.Fatalf("%s", a.JSON)
	}
	took, over = time.Since(start), true
	time.Sleep(2 * time.Second) // for what comes too late
	return list, took
}

func TestProgressIsToldOfWhatTakesLong(t *testing.T) {
	for _, tc := range []struct {
		line      string
		low, high int // notifications
		took      time.Duration
		last      string
	}{
		{"do steps --steps 100 --every 4", 0, 0, 400 * time.Millisecond, ""},
		{"do steps --steps 1000 --every 10", 35, 40, 10 * time.Second, "steps"},
		{"do steps --steps 100000", 0, 0, 0, ""},
		{"do steps --says waiting --idle 21000", 4, 5, 21 * time.Second, "waiting"},
		{"do steps --says same --idle 2000", 1, 1, 2 * time.Second, "same"},
		{"do steps --idle 21000", 3, 4, 21 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			list, took := progressed(t, tc.line)
			if len(list) < tc.low || len(list) > tc.high || took != tc.took {
				t.Errorf("%s: %d notifications in %s", tc.line, len(list), took)
			}
			for i, n := range list {
				if n.message != tc.last || n.at < progressAfter || i > 0 && n.at-list[i-1].at < progressGap {
					t.Errorf("%s: notification %d is %+v", tc.line, i, n)
				}
			}
		})
	}
}

// A client that does not read holds up its answers, and no command.
func TestProgressThatCannotBeToldHoldsUpNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stepper(t)
		stuck := make(chan struct{})
		start := time.Now()
		g.Do(t.Context(), Request{Principal: Principal{Name: "agent"}, Line: "do steps --steps 100 --every 20", Progress: func(float64, float64, string) { <-stuck }})
		if took := time.Since(start); took != 2*time.Second+progressEnd {
			t.Errorf("the command took %s", took)
		}
		close(stuck)
		synctest.Wait()
		time.Sleep(2 * time.Second)
	})
}
