package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// grace is how long a server may go on that does not end by itself.
const grace = 50 * time.Millisecond

// hostile makes a target of a function that speaks raw lines.
func hostile(serve func(in *bufio.Scanner, out io.Writer)) *Pipe {
	return &Pipe{Grace: grace, Serve: func(_ context.Context, in io.ReadCloser, out io.WriteCloser) error {
		s := bufio.NewScanner(in)
		s.Buffer(nil, 4<<20)
		serve(s, out)
		return nil
	}}
}

// polite answers the handshake and hands every other request, with the command that it may
// have, to answer. false ends the connection.
func polite(answer func(id json.RawMessage, command string, out io.Writer) bool) *Pipe {
	return hostile(func(in *bufio.Scanner, out io.Writer) {
		for in.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct{ Arguments json.RawMessage }
			}
			_ = json.Unmarshal(in.Bytes(), &m)
			var arguments struct{ Command string }
			_ = json.Unmarshal(m.Params.Arguments, &arguments)
			switch {
			case m.ID == nil:
			case m.Method == "initialize":
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`+"\n", m.ID)
			case !answer(m.ID, arguments.Command, out):
				return
			}
		}
	})
}

// saying is polite with a line for an answer, in which %s stands for the id.
func saying(line string) *Pipe {
	return polite(func(id json.RawMessage, _ string, out io.Writer) bool {
		_, err := io.WriteString(out, strings.ReplaceAll(line, "%s", string(id))+"\n")
		return err == nil
	})
}

// repeating is polite with a piece without end for an answer.
func repeating(piece string) *Pipe {
	return polite(func(_ json.RawMessage, _ string, out io.Writer) bool { endless(out, piece); return false })
}

// answering is polite with an envelope for each command; an empty one ends the connection.
func answering(envelope func(command string) string) *Pipe {
	return polite(func(id json.RawMessage, command string, out io.Writer) bool {
		e := envelope(command)
		if e == "" {
			return false
		}
		text, _ := json.Marshal(e)
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`+"\n", id, text)
		return true
	})
}

func endless(out io.Writer, piece string) (written int) {
	for {
		n, err := io.WriteString(out, piece)
		if written += n; err != nil {
			return written
		}
	}
}

// helpCase is one case that a hostile server fails.
func helpCase(t *testing.T) []*Case {
	t.Helper()
	cases, err := loadText(caseText)
	must(t, err)
	return cases
}

// TestAHostileServerIsAFinding also bounds what is kept of what it says.
func TestAHostileServerIsAFinding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target Target
		want   string // in the finding or note
	}{
		"exits at once": {hostile(func(*bufio.Scanner, io.Writer) {}), "ended the connection"},
		"never answers": {hostile(func(in *bufio.Scanner, _ io.Writer) { endlessRead(in) }), "in time"},
		"never reads":   {&Pipe{Grace: grace, Serve: func(ctx context.Context, _ io.ReadCloser, _ io.WriteCloser) error { <-ctx.Done(); return nil }}, "in time"},
		"garbage":       {hostile(func(in *bufio.Scanner, out io.Writer) { in.Scan(); io.WriteString(out, "hello\n\x00\xff\n[1]\n") }), "ended the connection"},
		"endless line": {polite(func(_ json.RawMessage, _ string, out io.Writer) bool {
			if n := endless(out, strings.Repeat("x", 1<<16)); n < MaxMessage/2 || n > 4*MaxMessage {
				t.Errorf("%d bytes of an endless line were taken", n)
			}
			return false
		}), "more than 8388608 bytes"},
		"endless lines":       {repeating("x\n"), "messages, none of which"},
		"endless logs":        {repeating(`{"jsonrpc":"2.0","method":"notifications/message"}` + "\n"), "messages, none of which"},
		"asks us forever":     {repeating(`{"jsonrpc":"2.0","id":"s","method":"ping"}` + "\n"), "in time"},
		"wrong id":            {saying(`{"jsonrpc":"2.0","id":99999,"result":{}}`), "in time"},
		"neither":             {saying(`{"jsonrpc":"2.0","id":%s}`), "neither"},
		"result of no object": {saying(`{"jsonrpc":"2.0","id":%s,"result":[[]]}`), "/success"},
		"text of no JSON":     {saying(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}]}}`), "/success"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within := 300 * time.Millisecond // for servers that never answer
			if c.want != "in time" {
				within = 20 * time.Second
			}
			report, err := Run(t.Context(), c.target, &Options{Cases: helpCase(t), StepTimeout: within, MaxLost: 2})
			must(t, err)
			b, err := json.Marshal(report)
			must(t, err)
			if len(report.Failed(false)) != 1 || report.Reached != NoLevel || report.OK(false) {
				t.Errorf("not found: %s", b)
			}
			if !strings.Contains(string(b), c.want) {
				t.Errorf("%q is not in %s", c.want, b)
			}
			if len(b) > 20_000 {
				t.Errorf("a report of %d bytes", len(b))
			}
		})
	}
}

func endlessRead(in *bufio.Scanner) {
	for in.Scan() {
	}
}

// TestALostServerIsReplaced has a server crash at one case and answer the next.
func TestALostServerIsReplaced(t *testing.T) {
	two := strings.Replace(caseText, `]}]}`, `]},{"id":"a.c","clause":"4.1.2","level":"Minimal","category":"Response","title":"t","steps":[{"command":"version","expect":{"success":true}}]}]}`, 1)
	cases, err := loadText(two)
	must(t, err)
	target := answering(func(command string) string {
		if command == "help" {
			return "" // a crash
		}
		return good
	})
	report, err := Run(t.Context(), target, &Options{Cases: cases, MaxLost: 10})
	must(t, err)
	if report.Results[0].Status != Failed || report.Results[1].Status != Passed {
		t.Errorf("%s, %s", report.Results[0].Status, report.Results[1].Status)
	}
}

// TestWhatLostServersCostIsBounded gives up after a few of many cases.
func TestWhatLostServersCostIsBounded(t *testing.T) {
	var list []string
	for i := range 50 {
		list = append(list, `{"id":"a.`+strconv.Itoa(i)+`","clause":"4.1.2","level":"Minimal","category":"Response","title":"t","steps":[{"command":"help","expect":{"success":true}}]}`)
	}
	cases, err := loadText(`{"format":1,"suite":"acli","cases":[` + strings.Join(list, ",") + `]}`)
	must(t, err)
	var opened atomic.Int64
	target := &Pipe{Serve: func(context.Context, io.ReadCloser, io.WriteCloser) error { opened.Add(1); return nil }}
	report, err := Run(t.Context(), target, &Options{Cases: cases, MaxLost: 5})
	must(t, err)
	if n := len(report.Failed(false)); n != 50 {
		t.Errorf("%d of 50 failed", n)
	}
	if n := opened.Load(); n > 10 {
		t.Errorf("%d servers were started", n)
	}
}

func TestARunThatIsCancelledEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := hostile(func(in *bufio.Scanner, _ io.Writer) { in.Scan(); cancel(); endlessRead(in) })
	_, err := Run(ctx, target, &Options{Cases: helpCase(t), StepTimeout: time.Hour})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAServerThatCannotBeStartedIsNoReport(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, target := range map[string]Target{
		"no such program": &Command{Args: []string{filepath.Join(t.TempDir(), "none")}},
		"no program":      &Command{},
		"nobody listens":  &HTTP{URL: closed.URL},
		"no URL":          &HTTP{URL: "ftp://example.org"},
		"token in clear":  &HTTP{URL: "http://192.0.2.1/mcp", Token: "x"},
	} {
		if _, err := Run(t.Context(), target, &Options{Cases: helpCase(t)}); !errors.Is(err, ErrNotStarted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingIsLeftOfAProgram starts a server whose child ignores its end, and looks
// for both when the run is over.
func TestNothingIsLeftOfAProgram(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no process groups")
	}
	sh, err := exec.LookPath("sh")
	must(t, err)
	file := filepath.Join(t.TempDir(), "pids")
	script := `trap '' TERM INT HUP; (trap '' TERM INT HUP; while :; do sleep 1; done) & echo $$ $! > "$0"; wait`
	report, err := Run(t.Context(), &Command{Grace: grace, Args: []string{sh, "-c", script, file}}, &Options{Cases: helpCase(t), StepTimeout: 500 * time.Millisecond, MaxLost: 1})
	must(t, err)
	if report.OK(false) {
		t.Error("a server that says nothing is conformant")
	}
	b, err := os.ReadFile(file)
	must(t, err)
	for _, field := range strings.Fields(string(b)) {
		deadline := time.Now().Add(10 * time.Second)
		for alive(field) {
			if time.Now().After(deadline) {
				t.Fatalf("process %s is still there", field)
			}
			time.Sleep(10 * time.Millisecond) // until the system has taken it away
		}
	}
}

func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false // gone, or a system without /proc
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// TestHTTPServersThatMisbehave are findings too.
func TestHTTPServersThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "x")
		},
		"empty": func(http.ResponseWriter, *http.Request) {},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, strings.Repeat(" ", 1<<16))
		},
		"event line": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			endless(w, strings.Repeat("x", 1<<16))
		},
		"events": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			endless(w, "data: {}\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if r.Header.Get("Authorization") != "Bearer secret-token" {
					t.Error("no token")
				}
				handler(w, r)
			}))
			defer s.Close()
			report, err := Run(t.Context(), &HTTP{URL: s.URL, Token: "secret-token"}, &Options{Cases: helpCase(t), StepTimeout: time.Second, MaxLost: 1})
			must(t, err)
			b, _ := json.Marshal(report)
			if report.OK(false) || asked.Load() == 0 {
				t.Errorf("not found: %s", b)
			}
			if strings.Contains(string(b), "secret-token") {
				t.Error("the report holds the token")
			}
		})
	}
}
