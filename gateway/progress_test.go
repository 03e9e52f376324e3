package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	r, err := discovery.NewRegistry(discovery.Info{Name: "t"}, run)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{Registry: r, Profile: FullProfile()})
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
	ctx := WithProgress(t.Context(), func(done, total float64, message string) {
		if over {
			t.Errorf("told of %q after the answer", message)
		}
		list = append(list, notification{time.Since(start), done, total, message})
	})
	if a := g.Do(ctx, Principal{Name: "agent"}, line); !a.Success() {
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
		ctx := WithProgress(t.Context(), func(float64, float64, string) { <-stuck })
		start := time.Now()
		g.Do(ctx, Principal{Name: "agent"}, "do steps --steps 100 --every 20")
		if took := time.Since(start); took != 2*time.Second+progressEnd {
			t.Errorf("the command took %s", took)
		}
		close(stuck)
		synctest.Wait()
		time.Sleep(2 * time.Second)
	})
}

// withProgressToken asks for the progress of a call.
func withProgressToken(id int, token, command string) string {
	line := callLine(id, command)
	return strings.Replace(line, `"params":{`, `"params":{"_meta":{"progressToken":`+token+`},`, 1)
}

// What a client sees over stdio: each notification carries its token and more than
// the one before, and none comes behind the answer.
func TestProgressOverStdio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInitialized(t, stepper(t).MCP(Principal{Name: "agent"}), MCPOptions{})
		s.send(withProgressToken(1, `"a"`, "do steps --says begin --steps 100 --every 50"), withProgressToken(2, "7", "do steps --says nothing --idle 12000"), callLine(3, "do steps --idle 3000"))
		time.Sleep(30 * time.Second)
		last, seen, answered := map[string]float64{}, map[string]int{}, map[string]bool{}
		for _, line := range s.take() {
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					ProgressToken   json.RawMessage
					Progress, Total *float64
					Message         string
				}
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if m.Method == "" {
				answered[map[string]string{"1": `"a"`, "2": "7"}[string(m.ID)]] = true
				continue
			}
			token := string(m.Params.ProgressToken)
			if m.Method != "notifications/progress" || m.Params.Progress == nil || answered[token] {
				t.Errorf("out of place: %s", line)
				continue
			}
			if seen[token]++; seen[token] > 1 && *m.Params.Progress <= last[token] {
				t.Errorf("no progress from %v: %s", last[token], line)
			}
			last[token] = *m.Params.Progress
			if strings.Contains(m.Params.Message, "late") {
				t.Errorf("told of what came too late: %s", line)
			}
		}
		if len(seen) != 2 || seen[`"a"`] < 15 || seen[`"a"`] > 20 || seen["7"] < 2 || len(answered) != 3 {
			t.Errorf("notifications %v, answered %v", seen, answered)
		}
	})
}

// The library's own client gets them.
func TestTheLibrarysOwnClientIsToldOfProgress(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	server := NewMCPServer(stepper(t).MCP(Principal{Name: "agent"}), MCPOptions{Name: "t", Version: "1"})
	session, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			got <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Message)
		}})
	c, err := client.Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "do steps --says here --idle 700"}}
	params.SetProgressToken("token")
	if _, err := c.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	_ = session.Wait()
	close(got)
	var list []string
	for g := range got {
		list = append(list, g)
	}
	if !slices.Contains(list, "token here") {
		t.Errorf("got %q", list)
	}
}

func BenchmarkProgressNobodyListensTo(b *testing.B) {
	report, _, end := progressOf(b.Context())
	defer end()
	for b.Loop() {
		report(1, 2, "steps")
	}
}
