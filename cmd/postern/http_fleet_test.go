package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
)

// TestMain clears the variables, so it is a flag: go test ./cmd/postern -run Fleet -v
// -args -fleet 1m.
var fleetTime = flag.Duration("fleet", 0, "how long the fleet sails, instead of a few calls each")

// Many tokens, four clients each, half of them in either era: every call is answered
// to its own caller, and when they have gone nothing of them is left. With -fleet it
// also shows that neither memory nor goroutines grow meanwhile, and prints them.
func TestAFleetLeavesNothingBehind(t *testing.T) {
	tokens, each, calls := testmain.Rounds(20, 50), 4, 1
	if testing.Short() {
		tokens = 6
	}
	sail := *fleetTime
	v := newVault(t)
	admin := newHouse(t, v)
	admin.do(t, "config set commands_per_minute 100000", &struct{}{})
	var list []string
	for i := range tokens {
		list = append(list, admin.token(t, fmt.Sprint("agent", i), fmt.Sprintf("--identity fleet:agent%d --profile full", i)))
	}
	s := serveHTTP(t, v)
	knock(t, s.url) // it says where it serves before it does; everything of it is there with an answer
	before := runtime.NumGoroutine()

	transport := &http.Transport{MaxIdleConnsPerHost: 2 * tokens * each}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answered atomic.Int64
	var all sync.WaitGroup
	for i, token := range list {
		for j := range each {
			era := []string{"2025-11-25", "2026-07-28"}[j%2]
			all.Go(func() {
				client := &http.Client{Transport: fleetToken{token, transport}}
				c, err := mcp.NewClient(&mcp.Implementation{Name: "fleet", Version: "1"}, nil).Connect(t.Context(),
					&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: client, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = c.Close() }()
				for n := 0; n < calls || ctx.Err() == nil && sail > 0; n++ {
					own, err := askOver(t.Context(), c, fmt.Sprintf("agent read fleet:agent%d", i))
					other, again := askOver(t.Context(), c, fmt.Sprintf("agent read fleet:agent%d", (i+1)%tokens))
					if err = errors.Join(err, again); err != nil || !own.Success || other.Error.Code != discovery.PermissionDenied {
						t.Errorf("agent%d: %s, %s, %v", i, own.raw, other.raw, err)
						return
					}
					answered.Add(2)
				}
			})
		}
	}
	if sail > 0 {
		watchFleet(t, sail, &answered)
	}
	cancel()
	all.Wait()
	transport.CloseIdleConnections()
	if want := int64(tokens * each * calls * 2); answered.Load() < want {
		t.Errorf("%d answers, want %d at least", answered.Load(), want)
	}
	// The sessions were ended by their clients, and the connections with them.
	for until := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines are left, and %d were there", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	if status := s.stop(); status != 0 {
		t.Errorf("status %d: %s", status, s.stderr)
	}
}

// knock asks a server for what is not there, and returns when it has closed the
// connection.
func knock(t *testing.T, at string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", u.Host); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404") {
		t.Fatalf("%q, %v", answer, err)
	}
}

// askOver runs a command through a client.
func askOver(ctx context.Context, c *mcp.ClientSession, line string) (a answer, err error) {
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": line}})
	if err != nil {
		return a, err
	}
	a.raw = []byte(r.Content[0].(*mcp.TextContent).Text)
	return a, json.Unmarshal(a.raw, &a)
}

type fleetToken struct {
	token string
	*http.Transport
}

// RoundTrip sends a request again, when the server says, that was answered with 503: the
// disk stood still for longer than a token may wait for the vault, and nothing was begun.
func (f fleetToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+f.token)
	for {
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r.Body = body
		}
		resp, err := f.Transport.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			return resp, nil
		}
		_ = resp.Body.Close()
		select {
		case <-time.After(time.Duration(after) * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// watchFleet samples while the fleet sails. The last third may hold at most half
// as much again as the first did, each at its fullest.
func watchFleet(t *testing.T, sail time.Duration, answered *atomic.Int64) {
	t.Helper()
	const samples = 12
	heap, goroutines := [samples]uint64{}, [samples]int{}
	// What the last collection found alive: calls in progress allocate beside it.
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var seen strings.Builder // told at once, so that what failed meanwhile is not lost among it
	for i := range samples {
		time.Sleep(sail / samples)
		runtime.GC()
		metrics.Read(live)
		heap[i], goroutines[i] = live[0].Value.Uint64(), runtime.NumGoroutine()
		fmt.Fprintf(&seen, "\n%6.1f s: %7d answers, %6.1f MiB live, %5d goroutines", float64(i+1)*(sail/samples).Seconds(), answered.Load(), float64(heap[i])/(1<<20), goroutines[i])
	}
	t.Log(seen.String())
	const third = samples / 3
	early, late := slices.Max(heap[:third]), slices.Max(heap[samples-third:])
	first, last := slices.Max(goroutines[:third]), slices.Max(goroutines[samples-third:])
	if late > early*3/2+8<<20 || last > first*3/2 {
		t.Errorf("it grows: %d to %d bytes, %d to %d goroutines", early, late, first, last)
	}
}
