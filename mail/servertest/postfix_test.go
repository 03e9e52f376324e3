package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// submit connects over TLS and logs in by this mechanism, unless it is nil.
func submit(t testing.TB, s *PostfixServer, mechanism sasl.Client) *smtp.Client {
	t.Helper()
	c, err := smtp.DialTLS(s.SubmissionsAddr(), s.ClientTLS())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	if mechanism != nil {
		must(t, c.Auth(mechanism))
	}
	return c
}

func plain() sasl.Client { return sasl.NewPlainClient("", "sender@example.org", Password) }

func messageID() string { return fmt.Sprintf("<%d.test@example.org>", users.Add(1)) }

func letter(id, rest string) []byte {
	return []byte("Message-ID: " + id + "\r\nFrom: sender@example.org\r\nTo: everybody:;\r\n" + rest)
}

func TestPostfixLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := Dovecot(t, Config{Submission: true})
	s, err := StartPostfix(PostfixConfig{Dovecot: d})
	Check(t, err)
	id, user := messageID(), someone()
	c := submit(t, s, plain())
	must(t, c.SendMail("sender@example.org", []string{user}, bytes.NewReader(letter(id, "\r\nx\r\n"))))
	d.WaitDelivered(t, user, id)
	if running, err := session(s.cmd.Process.Pid); err != nil || len(running) < 4 {
		t.Errorf("of the server run %q, %v, which cannot be all", running, err)
	}
	for range 2 {
		must(t, s.Stop())
	}
	if left, err := session(s.cmd.Process.Pid); err != nil || len(left) != 0 {
		t.Errorf("left are %q, %v", left, err)
	}
	if err := c.Noop(); err == nil {
		t.Error("a connection outlived the server")
	}
	if _, err := net.Dial("tcp", s.SubmissionAddr()); err == nil {
		t.Error("the port still answers")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// A test binary whose time is over, or that crashed, cleans up nothing; its
// servers end all the same.
func TestPostfixEndsWithItsTest(t *testing.T) {
	const pids = "POSTERN_TEST_PIDS"
	if file := os.Getenv(pids); file != "" {
		d := Dovecot(t, Config{Submission: true})
		p := Postfix(t, PostfixConfig{Dovecot: d})
		ids := fmt.Sprint(shared.cmd.Process.Pid, " ", d.cmd.Process.Pid, " ", p.cmd.Process.Pid)
		must(t, os.WriteFile(file, []byte(ids), 0o600))
		os.Exit(3)
	}
	_, err := findPostfix()
	Check(t, err)
	// Not t.TempDir, whose name is too long for sockets.
	dir, err := os.MkdirTemp("", "killed-")
	must(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	must(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "pids")
	cmd := exec.Command(os.Args[0], "-test.run=^TestPostfixEndsWithItsTest$")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, pids+"="+file)
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("got %v: %s", err, out)
	}
	ids, err := os.ReadFile(file)
	must(t, err)
	fields := strings.Fields(string(ids))
	if len(fields) != 3 {
		t.Fatalf("got %q", ids)
	}
	deadline := time.Now().Add(startTimeout)
	for _, field := range fields {
		id, err := strconv.Atoi(field)
		must(t, err)
		for {
			running, err := session(id)
			must(t, err)
			if len(running) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("still running: %q", running)
				break
			}
			time.Sleep(pollInterval)
		}
	}
}
