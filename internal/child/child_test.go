package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roles are the behaviours of this test's program, by its first argument.
var roles = map[string]func(args []string) int{
	"say":  func(args []string) int { fmt.Print(strings.Join(args, "\n")); return 0 },
	"echo": func([]string) int { _, _ = io.Copy(os.Stdout, os.Stdin); return 0 },
	"flood": func([]string) int {
		for {
			if _, err := fmt.Println(strings.Repeat("x", 4095)); err != nil {
				return 9
			}
		}
	},
	"fail": func([]string) int { fmt.Print("sorry"); return 7 },
	"env":  func([]string) int { fmt.Print(strings.Join(os.Environ(), "\n")); return 0 },
	// family starts another that holds the output open, reports both and waits or ends.
	"family": func(args []string) int {
		c := exec.Command(os.Args[0], "member", args[0])
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			return 1
		}
		if args[1] == "wait" {
			return member(args[0])
		}
		conn, err := net.Dial("tcp", args[0])
		if err != nil {
			return 1
		}
		_, _ = bufio.NewReader(conn).ReadString('\n') // until the other one is there
		fmt.Print("done")
		return 0
	},
	"member": func(args []string) int { return member(args[0]) },
	"limits": func(args []string) int {
		l := Limits{Memory: 1 << 30, CPU: 100 * time.Second, FileBytes: 1 << 20, Files: 64, Processes: 4}
		return l.Become(args[0])
	},
}

func member(address string) int {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, conn)
	return 0
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			os.Exit(role(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Program{Args: append([]string{self}, args...), MaxOutput: 1 << 16}
}

func TestRunReturnsWhatAProgramPrints(t *testing.T) {
	big := strings.Repeat("0123456789", 5000)
	echo := program(t, "echo")
	echo.Stdin = []byte(big)
	flood := program(t, "flood")
	flood.MaxOutput = 10_000
	for name, tc := range map[string]struct {
		p    Program
		want string
		err  error
	}{
		"arguments as they are": {p: program(t, "say", "a b", "$HOME", `"`), want: "a b\n$HOME\n\""},
		"standard input":        {p: echo, want: big},
		"no standard input":     {p: program(t, "echo")},
		"too much":              {p: flood, want: (strings.Repeat("x", 4095) + "\n" + strings.Repeat("x", 4095) + "\n" + strings.Repeat("x", 4095))[:10_000], err: ErrOutput},
		"no program":            {err: ErrStart},
		"no such program":       {p: Program{Args: []string{"no-such-program"}}, err: ErrStart},
		"no such path":          {p: Program{Args: []string{filepath.Join(t.TempDir(), "x")}}, err: ErrStart},
	} {
		got, err := Run(t.Context(), tc.p)
		if string(got) != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	var exit *exec.ExitError
	if got, err := Run(t.Context(), program(t, "fail")); string(got) != "sorry" || !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("a failure: %q, %v", got, err)
	}
	if _, err := Run(t.Context(), Program{Args: []string{"no-such-program"}}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no such program: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ended, program(t, "say")); !errors.Is(err, context.Canceled) || errors.Is(err, ErrStart) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func TestRunPassesNoEnvironmentButWhatIsGiven(t *testing.T) {
	t.Setenv("POSTERN_KEY", "secret")
	p := program(t, "env")
	for _, env := range [][]string{nil, {"A=1", "B=2"}} {
		p.Env = env
		got, err := Run(t.Context(), p)
		lines := slices.DeleteFunc(strings.Fields(string(got)), func(v string) bool { return strings.HasPrefix(v, "SYSTEMROOT=") })
		if err != nil || !slices.Equal(lines, env) {
			t.Errorf("%q: %q, %v", env, got, err)
		}
	}
	if got := Without([]string{"A=POSTERN_", "POSTERN_KEY=x", "postern_db=y", "POST=z"}, "POSTERN_", "MAIL_"); !slices.Equal(got, []string{"A=POSTERN_", "POST=z"}) {
		t.Errorf("%q", got)
	}
}

// TestWhatAProgramStartedEndsWithIt has a program start another and either wait for it
// until its context ends, or end before it.
func TestWhatAProgramStartedEndsWithIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no process groups here")
	}
	for _, tc := range []struct {
		name, then string
		trusted    bool
		lives      bool
	}{
		{"killed", "wait", false, false},
		{"killed, trusted", "wait", true, false},
		{"ended", "end", false, false},
		{"ended, trusted", "end", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := program(t, "family", l.Addr().String(), tc.then)
			p.Trusted = tc.trusted
			type result struct {
				out []byte
				err error
			}
			done := make(chan result, 1)
			go func() {
				out, err := Run(ctx, p)
				done <- result{out, err}
			}()
			var conns []net.Conn
			for range 2 {
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				conns = append(conns, c)
			}
			if tc.then == "wait" {
				cancel()
			} else {
				for _, c := range conns {
					_, _ = c.Write([]byte("\n"))
				}
			}
			r := <-done
			if tc.then == "wait" && !errors.Is(r.err, context.Canceled) || tc.then == "end" && (r.err != nil || string(r.out) != "done") {
				t.Errorf("%q, %v", r.out, r.err)
			}
			living := 0
			for _, c := range conns {
				wait := time.Minute
				if tc.lives {
					wait = 100 * time.Millisecond
				}
				_ = c.SetReadDeadline(time.Now().Add(wait))
				if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
					living++
				}
			}
			if want := map[bool]int{true: 1}[tc.lives]; living != want {
				t.Errorf("%d live on, want %d", living, want)
			}
		})
	}
}

func TestBecomeLowersTheLimitsForGood(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc shows them on Linux alone")
	}
	script := filepath.Join(t.TempDir(), "limits")
	if err := os.WriteFile(script, []byte("#!/bin/sh\numask; ulimit -Hn 1000 2>/dev/null; exec cat /proc/self/limits\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := program(t, "limits", script)
	p.Env = []string{"PATH=/usr/bin:/bin"}
	out, err := Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if mask, err := strconv.ParseInt(strings.Fields(string(out))[0], 8, 32); err != nil || mask&0o022 != 0o022 {
		t.Errorf("umask %o, %v", mask, err)
	}
	for name, want := range map[string]string{"Max core file size": "0 0", "Max cpu time": "100 100", "Max data size": "1073741824 1073741824", "Max file size": "1048576 1048576", "Max open files": "64 64"} {
		_, rest, _ := strings.Cut(string(out), name)
		if f := strings.Fields(rest); len(f) < 2 || f[0]+" "+f[1] != want {
			t.Errorf("%s: %.40q, want %s", name, rest, want)
		}
	}
	out, err = Run(t.Context(), program(t, "limits", "/no/such/program"))
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != CannotStart || len(out) > 0 {
		t.Errorf("no program: %q, %v", out, err)
	}
}
