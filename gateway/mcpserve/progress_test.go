package mcpserve

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
	"github.com/postern-mail/postern/gateway"
)

type stepArgs struct {
	Steps int    `json:"steps,omitempty" jsonschema_description:"How many steps of 50 ms"`
	Idle  int    `json:"idle,omitempty" jsonschema_description:"Milliseconds of silence at the end"`
	Says  string `json:"says,omitempty" jsonschema_description:"What it says first, without a count"`
}

// stepper has a command that reports, and goes on reporting when it has returned, as a
// goroutine left behind might.
func stepper(t *testing.T) *gateway.Gateway {
	t.Helper()
	steps := discovery.New(discovery.Spec{Path: "do steps", Summary: "Do it step by step", Effect: discovery.State, Timeout: 300, Examples: []string{"do steps"}},
		func(ctx context.Context, call *discovery.Call, a *stepArgs) (struct{}, error) {
			if a.Says != "" {
				call.Progress(0, 0, a.Says)
			}
			for i := range a.Steps {
				call.Progress(float64(i), float64(a.Steps), "steps")
				time.Sleep(50 * time.Millisecond)
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
	return newGateway(t, gateway.Options{}, steps)
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
		s := startInitialized(t, stepper(t), Server{})
		s.send(withProgressToken(1, `"a"`, "do steps --says begin --steps 100"), withProgressToken(2, "7", "do steps --says nothing --idle 12000"), callLine(3, "do steps --idle 3000"))
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
	got := make(chan string, 100)
	c, hangUp := connect(t, stepper(t), "2025-11-25", mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			got <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Message)
		}})
	params := &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "do steps --says here --idle 700"}}
	params.SetProgressToken("token")
	if _, err := c.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	hangUp()
	close(got)
	var list []string
	for g := range got {
		list = append(list, g)
	}
	if !slices.Contains(list, "token here") {
		t.Errorf("got %q", list)
	}
}
