package pdftext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// With one of these verbs as its first argument the test binary runs a child instead of the
// tests.
const childVerb = "pdftext-child"

var childVerbs = map[string]func(args []string) int{
	childVerb: func(args []string) int { return Child(os.Stdin, os.Stdout, args) },
	// These readers use too much of a resource, as a parser of a hostile file may. The
	// bounds that Child sets must hold for them.
	"pdftext-small-pieces": func(args []string) int { return Child(&fakeGrowingReader{}, os.Stdout, args) },
	"pdftext-all-at-once":  func(args []string) int { return Child(fakeHugeReader{}, os.Stdout, args) },
	"pdftext-recursion":    func(args []string) int { return Child(fakeRecursingReader{}, os.Stdout, args) },
	"pdftext-computing":    func(args []string) int { return Child(fakeComputingReader{}, os.Stdout, args) },
	// Only the watchdog, as on a system without resource limits.
	"pdftext-watched": func([]string) int {
		go watch(inUse()+64<<20, time.Now().Add(time.Hour))
		_, _ = new(fakeGrowingReader).Read(nil)
		return 0
	},
	"pdftext-flood": func([]string) int { return flood() },
	"pdftext-hang":  func(args []string) int { return hang(args[0]) },
	"pdftext-env":   func([]string) int { return printEnvironment() },
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if verb := childVerbs[os.Args[1]]; verb != nil {
			os.Exit(verb(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// command returns the argument vector of a child.
func command(t testing.TB, verb string, args ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	return append([]string{exe, verb}, args...)
}

func runner(t testing.TB) *Runner { return &Runner{Command: command(t, childVerb)} }

func TestRunnerReadsText(t *testing.T) {
	pdf := manyPages(typeset(72, 700, "caf\\351", "two"), typeset(72, 700, "three"))
	for _, test := range []struct {
		runes     int
		want      string
		truncated bool
	}{
		{1, "c", true},
		{4, "café", true},
		{14, "café\ntwo\n\nthre", true},
		{15, "café\ntwo\n\nthree", false},
		{50_000, "café\ntwo\n\nthree", false},
	} {
		text, truncated, err := runner(t).Text(t.Context(), pdf, test.runes)
		if err != nil || text != test.want || truncated != test.truncated {
			t.Errorf("%d characters: got %q, %v, %v, want %q, %v", test.runes, text, truncated, err, test.want, test.truncated)
		}
	}
}

func TestRunnerSaysWhyThereIsNoText(t *testing.T) {
	for name, test := range map[string]struct {
		pdf  []byte
		want error
	}{
		"empty":      {nil, ErrDamaged},
		"garbage":    {bytes.Repeat([]byte{0xff, '%', '(', '<'}, 100_000), ErrDamaged},
		"largest":    {make([]byte, MaxBytes), ErrDamaged},
		"too large":  {make([]byte, MaxBytes+1), ErrTooLarge},
		"password":   {encrypted(t), ErrEncrypted},
		"blank":      {onePage("", helvetica), ErrNoText},
		"table loop": {tableLoop(), ErrDamaged},
		"flate bomb": {bomb(t), ErrMemory},
		"objects":    {objectBomb(t), ErrMemory},
		"nesting":    {build("[" + strings.Repeat("[", 1<<20)), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner(t)
			r.MemoryBytes = 64 << 20
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text, _, err := r.Text(t.Context(), test.pdf, 1000)
			if !errors.Is(err, test.want) || text != "" {
				t.Errorf("got %q, %v, want %v", text, err, test.want)
			}
			// Only the child spends memory on the file.
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
				t.Errorf("%d bytes allocated for a PDF of %d", grown, len(test.pdf))
			}
		})
	}
}

// endless returns a PDF that takes far too long to read: thousands of pages that each draw
// a form thousands of times.
func endless() []byte {
	const pages = 5000
	objects := []string{catalog, "<< /Type /Pages /Kids [" + strings.Repeat("<< /Type /Page /Contents 3 0 R >> ", pages) +
		"] /Count 5000 /Resources 4 0 R >>",
		stream("", strings.Repeat("/X Do ", maxForms)),
		"<< /XObject << /X 5 0 R >> >>",
		stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", strings.Repeat("1 0 0 1 0 0 cm ", 5000))}
	return build(objects...)
}

func TestRunnerEndsASlowChild(t *testing.T) {
	t.Parallel()
	r := runner(t)
	r.Timeout = 300 * time.Millisecond
	if text, _, err := r.Text(t.Context(), endless(), 1000); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %q, %v, want %v", text, err, ErrTimeout)
	}
}

// The bounds that Child sets hold for any code in it, without help of the parent.
func TestChildBoundsItself(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb string
		cpu  time.Duration
		want error
	}{
		{"pdftext-small-pieces", time.Minute, ErrMemory},
		{"pdftext-watched", time.Minute, ErrMemory},
		{"pdftext-all-at-once", time.Minute, ErrMemory},
		{"pdftext-recursion", time.Minute, ErrMemory},
		{"pdftext-computing", 0, ErrTimeout},
	} {
		t.Run(test.verb, func(t *testing.T) {
			t.Parallel()
			if test.verb == "pdftext-all-at-once" && runtime.GOOS != "linux" {
				t.Skip("only Linux refuses the allocation itself")
			}
			if test.verb == "pdftext-computing" && testing.Short() {
				t.Skip("a second of computing")
			}
			argv := command(t, test.verb, childArguments{memory: 64 << 20, cpu: test.cpu, runes: 10}.list()...)
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = []string{}
			out, err := cmd.Output()
			if got := verdict(cmd.ProcessState); !errors.Is(got, test.want) || len(out) > 0 {
				t.Errorf("got %v (%v), %d bytes, want %v", got, err, len(out), test.want)
			}
		})
	}
}

func TestChildRefusesOtherArguments(t *testing.T) {
	good := childArguments{memory: 1 << 20, cpu: time.Second, runes: 1}.list()
	if _, ok := parseArguments(good); !ok {
		t.Fatalf("%q refused", good)
	}
	for _, args := range [][]string{nil, good[:2], append(slices.Clone(good), "1"), {"0", "1", "1"}, {"1", "-1", "1"}, {"1", "1", "0"}, {"1", "1", "x"}} {
		if code := Child(strings.NewReader(""), io.Discard, args); code != status(errUsage) {
			t.Errorf("%q: status %d", args, code)
		}
	}
}

// fakeGrowingReader is a reader that takes memory in small pieces, as a growing tree does. It takes two
// gigabytes at most, so that a missing bound fails the test without harm to the machine.
type fakeGrowingReader struct{ kept [][]byte }

func (c *fakeGrowingReader) Read([]byte) (int, error) {
	const size = 64 << 10
	for range 2 << 30 / size {
		c.kept = append(c.kept, bytes.Repeat([]byte{1}, size))
	}
	return 0, io.EOF
}

// fakeHugeReader is a reader that takes eight gigabytes at once and writes to all of them.
type fakeHugeReader struct{}

func (fakeHugeReader) Read([]byte) (int, error) {
	b := bytes.Repeat([]byte{1}, 8<<30)
	return len(b) % 2, io.EOF
}

// fakeRecursingReader is a reader that recurses without end.
type fakeRecursingReader struct{}

func (d fakeRecursingReader) Read(b []byte) (int, error) {
	return d.further(b, len(b))
}

func (d fakeRecursingReader) further(b []byte, n int) (int, error) {
	if n < 0 {
		return 0, io.EOF
	}
	read, err := d.further(b, n+1)
	return read + n, err
}

// fakeComputingReader is a reader that computes without end.
type fakeComputingReader struct{}

func (fakeComputingReader) Read(b []byte) (int, error) {
	n := 0
	for n >= 0 {
		n ^= len(b)
	}
	return n, nil
}

// flood writes to standard output without end.
func flood() int {
	b := bytes.Repeat([]byte("é\xff"), 1<<10)
	for {
		if _, err := os.Stdout.Write(b); err != nil {
			return 0
		}
	}
}

// A child that ignores its arguments cannot harm its parent.
func TestRunnerTakesNoMoreThanItAskedFor(t *testing.T) {
	r := &Runner{Command: command(t, "pdftext-flood")}
	text, truncated, err := r.Text(t.Context(), []byte("x"), 1000)
	// The child ends when the pipe is closed, which is an error on systems that send it a
	// signal then.
	if err == nil && (!truncated || utf8.RuneCountInString(text) != 1000 || !utf8.ValidString(text)) {
		t.Errorf("got %d characters, %v", utf8.RuneCountInString(text), truncated)
	}
	if errors.Is(err, ErrTimeout) {
		t.Error("the child was waited for")
	}
}

func printEnvironment() int {
	for _, e := range os.Environ() {
		fmt.Println(e)
	}
	fmt.Print("end")
	return 0
}

func TestChildHasNoEnvironment(t *testing.T) {
	t.Setenv("POSTERN_KEY", "not for a parser")
	r := &Runner{Command: command(t, "pdftext-env")}
	text, _, err := r.Text(t.Context(), []byte("x"), 10_000)
	must(t, err)
	want := "end"
	if runtime.GOOS == "windows" {
		want = "SYSTEMROOT=" + os.Getenv("SYSTEMROOT") + "\nend" // no process starts without it
	}
	if text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// hang connects to the address and waits until the connection ends.
func hang(address string) int {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, conn)
	return 0
}

// The end of its context ends the first caller's child, and the second caller's wait.
func TestCallersWaitNoLongerThanTheirContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	r := &Runner{Command: command(t, "pdftext-hang", l.Addr().String()), Timeout: time.Hour}
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, _, err := r.Text(first, []byte("x"), 10); !errors.Is(err, context.Canceled) {
			t.Errorf("the first: got %v", err)
		}
	})
	conn, err := l.Accept() // the child of the first is running
	must(t, err)
	defer conn.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := r.Text(ended, []byte("x"), 10); !errors.Is(err, context.Canceled) {
		t.Errorf("the second: got %v, want %v", err, context.Canceled)
	}
	cancel()
	// The connection ends when the child does.
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the child is alive")
	}
}

func TestRunnerWithoutACommandReadsNothing(t *testing.T) {
	if _, _, err := new(Runner).Text(t.Context(), onePage("", helvetica), 10); err == nil {
		t.Error("no error")
	}
	r := &Runner{Command: []string{"/nonexistent/postern", "x"}}
	if _, _, err := r.Text(t.Context(), make([]byte, MaxBytes+1), 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file that is too large: got %v before any child", err)
	}
	if _, _, err := r.Text(t.Context(), onePage("", helvetica), 10); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}
