package faulty

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/conformance"
	"github.com/postern-mail/postern/internal/testmain"
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
	os.Exit(testmain.Run(m.Run))
}

// grace is how long a server may go on that does not end by itself.
const grace = 100 * time.Millisecond

// inProcess returns a server in this process, which makes a connection for each session.
func inProcess(f Fault) conformance.Target {
	s := New(f)
	return &conformance.Pipe{Grace: grace, Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
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
	env := append(os.Environ(), asProcess+"="+cmp.Or(f.Name, "none"), "GORACE=atexit_sleep_ms=0")
	return &conformance.Command{Grace: grace, Args: []string{program}, Env: env}
}

// inapplicable are the cases about optional parts that the correct server does not have, and about
// short options that help does not name, which package household has.
var inapplicable = []string{"extension.audit", "argument.short-taken"}

// cases loads the suite once for all runs.
var cases = sync.OnceValues(conformance.Embedded)

// options asks every case of the protocol.
func options(t *testing.T) *conformance.Options {
	t.Helper()
	all, err := cases()
	if err != nil {
		t.Fatal(err)
	}
	return &conformance.Options{Cases: all, Suite: "acli", AllowEffects: true, StepTimeout: time.Minute}
}

func run(t *testing.T, target conformance.Target, o *conformance.Options) *conformance.Report {
	t.Helper()
	report, err := conformance.Run(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
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
	for name, way := range map[string]struct {
		target conformance.Target
		ids    []string
	}{
		"in process": {inProcess(Fault{}), nil},
		// A separate process changes only the exchange of messages, so fewer cases are asked.
		"own process": {ownProcess(t, Fault{}), []string{"mcp.*", "limit.*", "discovery.version.*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "own process" {
				t.Skip("the same cases are asked in this process")
			}
			o := options(t)
			o.IDs = way.ids
			report := run(t, way.target, o)
			for _, c := range report.Results {
				switch {
				case c.Status == conformance.Failed:
					t.Errorf("%s (%s) failed: %s%s", c.ID, c.Clause, c.Title, explain(c))
				case c.Status == conformance.NotApplicable && !slices.Contains(inapplicable, c.ID):
					t.Errorf("%s is not applicable, so nothing shows that it finds anything: %s", c.ID, c.Reason)
				}
			}
			if way.ids == nil && report.Reached != conformance.Full || !report.OK(true) {
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
	o := options(t)
	if testing.Short() { // the other categories are judged in the same way
		o.IDs = []string{"response.*", "parser.*", "discovery.*"}
	}
	report := run(t, inProcess(NoEnvelope), o)
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

// A row of testdata/found.txt, which says what it means.
type row struct {
	fault  Fault
	cases  []string
	says   string
	unseen bool // says is why
}

func readRows(t *testing.T) (rows []row) {
	t.Helper()
	b, err := os.ReadFile("testdata/found.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") || line == "\n" {
			continue
		}
		line, says, _ := strings.Cut(strings.TrimSpace(line), " | ")
		line, unseen := strings.CutPrefix(line, "! ")
		name, cases, _ := strings.Cut(line, ": ")
		fault, ok := Named(name)
		if !ok || cases == "" || slices.ContainsFunc(rows, func(r row) bool { return r.fault == fault }) {
			t.Errorf("no fault, no case, or there twice: %s", line)
		}
		rows = append(rows, row{fault, strings.Fields(cases), says, unseen})
	}
	return rows
}

// Every fault makes the cases fail that are about it. TestCorrectServerIsConformant shows
// that the same cases pass without it.
func TestFaultsAreFound(t *testing.T) {
	rows := readRows(t)
	if len(rows) < len(All) || len(All) < 40 {
		t.Errorf("%d rows for %d faults", len(rows), len(All))
	}
	for i, r := range rows {
		process := r.says == "ended the connection"
		if testing.Short() && (i%6 != 0 || process) {
			continue
		}
		t.Run(r.fault.Name, func(t *testing.T) {
			t.Parallel()
			target, o := inProcess(r.fault), options(t)
			o.IDs = r.cases
			if process {
				target = ownProcess(t, r.fault)
			}
			if r.says == "no answer in time" {
				o.StepTimeout, o.MaxLost = 100*time.Millisecond, 2
			}
			if !r.unseen {
				o.IDs = append(o.IDs, provoking...)
			}
			if *whole {
				o.IDs = nil
			}
			report := run(t, target, o)
			var found []string
			said := strings.Join(report.Notes, "\n")
			for _, c := range report.Failed(true) {
				found = append(found, c.ID)
				if slices.Contains(r.cases, c.ID) {
					said += explain(c)
				}
			}
			if *whole {
				t.Logf("%s: found by %d: %s %q", r.fault.Name, len(found), strings.Join(found, " "), report.Notes)
			}
			if r.unseen {
				if len(found) > 0 {
					t.Errorf("%v finds a server that %s (it was said that %s)", found, r.fault.Mistake, r.says)
				}
				return
			}
			for _, id := range r.cases {
				if !slices.Contains(found, id) {
					t.Errorf("a server that %s passes %s", r.fault.Mistake, id)
				}
			}
			if !strings.Contains(said, r.says) {
				t.Errorf("nothing says %q of a server that %s: %s", r.says, r.fault.Mistake, said)
			}
		})
	}
	names := regexp.MustCompile(`\A[a-z]+(-[a-z]+)*\z`)
	for _, f := range All {
		if !names.MatchString(f.Name) || f.Mistake == "" {
			t.Errorf("fault %q (%s) is badly named", f.Name, f.Mistake)
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return r.fault == f }) {
			t.Errorf("%s (%s) is not in testdata/found.txt", f.Name, f.Mistake)
		}
	}
}
