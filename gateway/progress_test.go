package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/discovery"
)

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
