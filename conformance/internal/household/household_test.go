// Package household judges a second server that is right, or wrong in exactly one way. It is a
// program in Python (testdata/server.py) that shares no code, and no reading of what the
// specification leaves open, with the server in package faulty.
package household

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/conformance"
	"github.com/postern-mail/postern/internal/testmain"
)

const program = "testdata/server.py"

// python ends the test where there is no Python: by a failure where servers are required.
func python(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("python3")
	switch {
	case err == nil:
	case os.Getenv("POSTERN_REQUIRE_SERVERS") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

// household is a process that has any mistake, one for each message.
type household struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

func start(t *testing.T) *household {
	t.Helper()
	python(t)
	cmd := exec.Command("python3", "-I", program, "--many")
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &household{in: in, out: bufio.NewReader(out)}
}

// with is the server with a mistake, or with "none".
func (h *household) with(mistake string) conformance.Target {
	return &conformance.Pipe{Grace: 100 * time.Millisecond, Serve: func(_ context.Context, in io.ReadCloser, out io.WriteCloser) error {
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return nil
			}
			answer, err := h.answer(mistake + "\t" + line)
			if err == nil && answer != "\n" {
				_, err = io.WriteString(out, answer)
			}
			if err != nil {
				return err
			}
		}
	}}
}

func (h *household) answer(line string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := io.WriteString(h.in, line); err != nil {
		return "", err
	}
	return h.out.ReadString('\n')
}

func judge(t *testing.T, target conformance.Target, o *conformance.Options) *conformance.Report {
	t.Helper()
	o.Suite, o.AllowEffects, o.StepTimeout = "acli", true, time.Minute
	report, err := conformance.Run(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// What the specification leaves open costs no level, however a server does it: no case of strength
// must fails. Every mistake makes the cases fail that are about it, and that the right server passes.
func TestTheHousehold(t *testing.T) {
	t.Parallel()
	h := start(t)
	report := judge(t, h.with("none"), &conformance.Options{})
	hold(t, report, conformance.Full)
	right := map[string]bool{}
	for _, c := range report.Results {
		right[c.ID] = c.Status == conformance.Passed
		if c.Status == conformance.NotApplicable && strings.HasPrefix(c.ID, "parser.") {
			t.Errorf("%s was not asked: %s", c.ID, c.Reason)
		}
	}
	t.Run("read otherwise", func(t *testing.T) {
		hold(t, judge(t, h.with("otherwise"), &conformance.Options{}), conformance.Full)
	})
	t.Run("without schema and version", func(t *testing.T) {
		hold(t, judge(t, h.with("minimal"), &conformance.Options{Level: conformance.Minimal}), conformance.Minimal)
	})
	t.Run("under another name", func(t *testing.T) {
		report := judge(t, h.with("named-run"), &conformance.Options{Tool: "run", IDs: []string{"mcp.*", "response.code.*", "extension.declared"}})
		hold(t, report, conformance.Full)
		if !strings.Contains(fmt.Sprint(report.Notes), "it is called cli") {
			t.Errorf("the notes are %q", report.Notes)
		}
	})
	t.Run("without help of its commands", func(t *testing.T) {
		report := judge(t, h.with("no-help-of-commands"), &conformance.Options{IDs: []string{"parser.quote.*"}})
		unread := 0
		for _, c := range report.Results {
			if strings.Contains(c.Reason, "how strings are read") {
				unread++
			}
		}
		if !report.OK(false) || unread < 8 {
			t.Errorf("%d cases say that nothing shows how strings are read, and %d fail", unread, len(report.Failed(false)))
		}
	})
	rows := readRows(t)
	for i, r := range rows {
		if testing.Short() && i%6 != 0 {
			continue
		}
		t.Run(r.mistake, func(t *testing.T) {
			t.Parallel()
			// The cases response.code make answers that fail, for the cases about every answer.
			report := judge(t, h.with(r.mistake), &conformance.Options{IDs: append([]string{"response.code.*"}, r.cases...)})
			for _, id := range r.cases {
				at := slices.IndexFunc(report.Results, func(c *conformance.Result) bool { return c.ID == id })
				if !right[id] || at < 0 || report.Results[at].Status != conformance.Failed {
					t.Errorf("%s does not find it, or not it alone", id)
				}
			}
		})
	}
	source, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:bad\(|\(".", )"([a-z-]+)"\)`).FindAllSubmatch(source, -1) {
		name := string(m[1])
		if name != "otherwise" && name != "no-help-of-commands" && !slices.ContainsFunc(rows, func(r row) bool { return r.mistake == name }) {
			t.Errorf("%s is in no row of testdata/found.txt", name)
		}
	}
	if len(rows) < 40 {
		t.Errorf("%d mistakes", len(rows))
	}
}

func hold(t *testing.T, report *conformance.Report, level conformance.Level) {
	t.Helper()
	if report.Reached != level {
		t.Errorf("reached %s, notes %q", report.Reached, report.Notes)
	}
	for _, c := range report.Failed(false) {
		t.Errorf("%s: %+v", c.ID, c.Findings)
	}
}

type row struct {
	mistake string
	cases   []string
}

func readRows(t *testing.T) (rows []row) {
	t.Helper()
	b, err := os.ReadFile("testdata/found.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if mistake, cases, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			rows = append(rows, row{mistake, strings.Fields(cases)})
		}
	}
	return rows
}

// The same program as anybody starts it.
func TestTheHouseholdAsAProgram(t *testing.T) {
	t.Parallel()
	python(t)
	target := &conformance.Command{Args: []string{"python3", "-I", program}, Stderr: t.Output()}
	if report := judge(t, target, &conformance.Options{IDs: []string{"mcp.tool.definition", "response.code.parse"}}); !report.OK(false) {
		t.Errorf("%+v", report.Failed(false))
	}
}

func TestMain(m *testing.M) { os.Exit(testmain.Run(m.Run)) }
