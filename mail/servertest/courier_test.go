package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
)

func TestCourierStopEndsEverything(t *testing.T) {
	s, err := StartCourier(CourierConfig{})
	Check(t, err)
	c := login(t, s, "u@example.org")
	login(t, s, "v@example.org")
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
	if err := c.Noop().Wait(); err == nil {
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
