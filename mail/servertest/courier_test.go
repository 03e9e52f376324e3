package servertest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
)

// wire is a connection that is spoken to in raw lines.
type wire struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func dialWire(t testing.TB, s *CourierServer, secure bool) *wire {
	t.Helper()
	var conn net.Conn
	var err error
	if secure {
		conn, err = tls.Dial("tcp", s.IMAPSAddr(), s.ClientTLS())
	} else {
		conn, err = net.Dial("tcp", s.IMAPAddr())
	}
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	return &wire{t, conn, bufio.NewReader(conn)}
}

// do sends bytes and returns the lines up to the first that starts with end.
func (w *wire) do(send, end string) []string {
	w.t.Helper()
	if _, err := io.WriteString(w.conn, send); err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for {
		line, err := w.r.ReadString('\n')
		lines = append(lines, strings.TrimRight(line, "\r\n"))
		if err != nil {
			w.t.Fatalf("after %q: %v", lines, err)
		}
		if strings.HasPrefix(line, end) {
			return lines
		}
	}
}

func TestCourierStopEndsEverything(t *testing.T) {
	s, err := StartCourier(CourierConfig{})
	Check(t, err)
	w := dialWire(t, s, false)
	w.do("a LOGIN u@example.org "+Password+"\r\n", "a OK")
	waiting := dialWire(t, s, false)
	waiting.do("", "* OK")
	programs := children(t)
	if len(programs) < 2 {
		t.Fatalf("%d programs run for two sessions", len(programs))
	}
	must(t, s.Stop())
	if err := s.Stop(); err != nil {
		t.Fatal("second call:", err)
	}
	left := children(t)
	for _, pid := range programs {
		if slices.Contains(left, pid) && strings.Contains(commandOf(pid), "imap") {
			t.Errorf("process %d is left: %s", pid, commandOf(pid))
		}
	}
	if _, err := w.r.ReadByte(); err == nil {
		t.Error("a connection outlived the server")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// children lists the processes this one started that run a program of Courier.
func children(t testing.TB) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) && strings.Contains(commandOf(pid), "imap") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}

func TestCourierLogsInOverSTARTTLS(t *testing.T) {
	s := Courier(t, CourierConfig{})
	for user, ok := range map[string]bool{someone(): true, "../u": false} {
		c, err := imapclient.DialStartTLS(s.IMAPAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		must(t, err)
		defer c.Close()
		if err := c.Authenticate(sasl.NewPlainClient("", user, Password)); (err == nil) != ok {
			t.Errorf("%q: %v, want success %v", user, err, ok)
		}
	}
}
