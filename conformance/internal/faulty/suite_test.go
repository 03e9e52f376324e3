package faulty

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/conformance"
)

// asProcess names the variable that makes the test binary a server with the fault of
// that name, "none" for none.
const asProcess = "ACLI_FAULTY_SERVER"

var whole = flag.Bool("whole", false, "ask every case of every faulty server, and log which of them find the fault")

func TestMain(m *testing.M) {
	if name := os.Getenv(asProcess); name != "" {
		fault, ok := Named(name)
		if !ok && name != "none" {
			fmt.Fprintf(os.Stderr, "there is no fault %q\n", name)
			os.Exit(2)
		}
		if err := New(fault).Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // they wait for servers that never answer more than they compute
	os.Exit(m.Run())
}

// inProcess is the server in this process: one server, and a connection per session.
func inProcess(f Fault) conformance.Target {
	s := New(f)
	return &conformance.Pipe{Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return s.Serve(ctx, in, out)
	}}
}

// ownProcess is the server in a process of its own.
func ownProcess(t *testing.T, f Fault) conformance.Target {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := f.Name
	if name == "" {
		name = "none"
	}
	return &conformance.Command{Args: []string{program}, Env: append(os.Environ(), asProcess+"="+name, "GORACE=atexit_sleep_ms=0")}
}

// failed lists the ids of the cases that failed.
func failed(r *conformance.Report) []string {
	var ids []string
	for _, c := range r.Results {
		if c.Status == conformance.Failed {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func explain(c *conformance.Result) string {
	var b strings.Builder
	for _, f := range c.Findings {
		fmt.Fprintf(&b, "\n  %s step %d sent %s got %s %s %v", f.Instance, f.Step, f.Sent, f.Got, f.Detail, f.Mismatches)
	}
	return b.String()
}

// Nothing is found at a server without a fault, neither in this process nor in one of
// its own, and no case but those the table leaves to others is inapplicable to it.
func TestCorrectServerIsConformant(t *testing.T) {
	t.Parallel()
	all, err := cases()
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]struct {
		target conformance.Target
		ids    []string
	}{
		"in process": {inProcess(Fault{}), nil},
		// What a process changes is how messages come and go.
		"own process": {ownProcess(t, Fault{}), []string{"mcp.*", "parser.*", "limit.*", "discovery.version.*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "own process" {
				t.Skip("the same cases are asked in this process")
			}
			report, err := conformance.Run(t.Context(), run.target, &conformance.Options{
				Cases: all, Suite: "acli", AllowEffects: true, StepTimeout: time.Minute, IDs: run.ids})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range report.Results {
				switch {
				case c.Status == conformance.Failed:
					t.Errorf("%s (%s) failed: %s%s", c.ID, c.Clause, c.Title, explain(c))
				case c.Status == conformance.NotApplicable && !slices.Contains(inapplicable, c.ID):
					t.Errorf("%s is not applicable, so nothing shows that it finds anything: %s", c.ID, c.Reason)
				}
			}
			if run.ids == nil && report.Reached != conformance.Full || !report.OK(true) {
				t.Errorf("it reached %s with the notes %q", report.Reached, report.Notes)
			}
			t.Logf("%d cases, %d messages", len(report.Results), report.Messages)
		})
	}
}

// provoking are cases asked beside those of a row, so that there are failures among
// the answers: a case may be about every answer.
var provoking = []string{"response.code.*", "response.suggest.command"}

// cases loads the suite once, and not for each of some hundred runs.
var cases = sync.OnceValues(conformance.Embedded)

// Every fault makes the cases fail that are about it, and those pass without it.
func TestFaultsAreFound(t *testing.T) {
	all, err := cases()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for i, row := range table {
		rows[row.fault.Name] = true
		if testing.Short() && (i%3 != 0 || row.process) {
			continue
		}
		t.Run(row.fault.Name, func(t *testing.T) {
			t.Parallel()
			o := &conformance.Options{Cases: all, Suite: "acli", AllowEffects: true, StepTimeout: time.Minute, IDs: append(slices.Clone(row.cases), provoking...)}
			if row.within > 0 {
				o.StepTimeout, o.MaxLost = row.within, 2
			}
			if *whole {
				o.IDs = nil
			}
			target := inProcess(row.fault)
			if row.process {
				target = ownProcess(t, row.fault)
			}
			report, err := conformance.Run(t.Context(), target, o)
			if err != nil {
				t.Fatal(err)
			}
			found := failed(report)
			if *whole {
				t.Logf("%s: found by %d: %s %q", row.fault.Name, len(found), strings.Join(found, " "), report.Notes)
			}
			for _, id := range row.cases {
				if !slices.ContainsFunc(found, func(f string) bool { ok, _ := path.Match(id, f); return ok }) {
					t.Errorf("a server that %s passes %s", row.fault.Mistake, id)
				}
			}
			all := strings.Join(report.Notes, "\n")
			for _, c := range report.Results {
				if c.Status == conformance.Failed && slices.Contains(row.cases, c.ID) {
					all += explain(c)
				}
			}
			if !strings.Contains(all, row.says) {
				t.Errorf("nothing says %q of a server that %s: %s", row.says, row.fault.Mistake, all)
			}
			if len(row.cases) == 0 {
				t.Errorf("no case is named that finds a server that %s", row.fault.Mistake)
			}
		})
	}
	for _, f := range All {
		why, known := unseen[f]
		if known {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				o := &conformance.Options{Cases: all, Suite: "acli", AllowEffects: true, StepTimeout: time.Minute, IDs: why.near}
				if *whole {
					o.IDs = nil
				}
				report, err := conformance.Run(t.Context(), inProcess(f), o)
				if err != nil {
					t.Fatal(err)
				}
				if found := failed(report); len(found) > 0 {
					t.Errorf("%v finds a server that %s: it belongs into the table (it was said that %s)", found, f.Mistake, why.reason)
				}
			})
		}
		if rows[f.Name] == known {
			t.Errorf("%s (%s) stands neither in the table nor among the unseen, or in both", f.Name, f.Mistake)
		}
	}
}
