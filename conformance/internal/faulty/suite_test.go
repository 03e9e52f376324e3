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

// asProcess is the environment variable that makes the test binary a server. Its value is
// the name of a fault, or "none" for a correct server.
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
	_ = flag.Set("test.parallel", "16") // the tests mostly wait for servers that never answer
	os.Exit(m.Run())
}

// inProcess returns a server in this process, which makes a connection for each session.
func inProcess(f Fault) conformance.Target {
	s := New(f)
	return &conformance.Pipe{Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return s.Serve(ctx, in, out)
	}}
}

// ownProcess returns a server that runs in a separate process for each session.
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

// The correct server passes every case, in this process and in a separate one, and only the
// cases in inapplicable do not apply to it.
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
		// A separate process changes only the exchange of messages, so fewer cases are asked.
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

// A server whose answers have no envelope is judged by what reads its commands and describes
// them all the same: only cases about the form of answers fail.
func TestAServerWithoutTheEnvelopeIsJudgedApart(t *testing.T) {
	t.Parallel()
	all, err := cases()
	if err != nil {
		t.Fatal(err)
	}
	o := &conformance.Options{Cases: all, Suite: "acli", AllowEffects: true, StepTimeout: time.Minute}
	if testing.Short() { // the other categories are judged in the same way
		o.IDs = []string{"response.*", "parser.*", "discovery.*"}
	}
	report, err := conformance.Run(t.Context(), inProcess(NoEnvelope), o)
	if err != nil {
		t.Fatal(err)
	}
	failed, passed := map[conformance.Category]int{}, map[conformance.Category]int{}
	for _, c := range report.Results {
		switch c.Status {
		case conformance.Failed:
			if failed[c.Category]++; c.Category != "Response" {
				t.Errorf("%s (%s) failed: %s%s", c.ID, c.Clause, c.Title, explain(c))
			}
		case conformance.Passed:
			passed[c.Category]++
		}
	}
	if failed["Response"] < 10 || passed["Parser"] < 50 || passed["Discovery"] < 20 {
		t.Errorf("passed %v, failed %v", passed, failed)
	}
}

// provoking are cases asked together with those of a row. They cause error answers, for the
// cases that are about every answer.
var provoking = []string{"response.code.*", "response.suggest.command"}

// cases loads the suite once for all runs.
var cases = sync.OnceValues(conformance.Embedded)

// Every fault makes the cases fail that are about it. TestCorrectServerIsConformant shows
// that the same cases pass without it.
func TestFaultsAreFound(t *testing.T) {
	all, err := cases()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for i, row := range table {
		rows[row.fault.Name] = true
		if testing.Short() && (i%6 != 0 || row.process) {
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
