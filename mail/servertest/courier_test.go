package servertest

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
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

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
)

func courierLogin(t testing.TB, s *CourierServer, user string) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Login(user, Password).Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

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
	if err != nil {
		t.Fatal(err)
	}
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

func TestCourierSpeaksForItselfBeforeAndAfterLogin(t *testing.T) {
	s := Courier(t, CourierConfig{})
	for _, test := range []struct {
		secure bool
		before string
	}{
		{false, CourierCapability + " ACL ACL2=UNION STARTTLS ENABLE UTF8=ACCEPT"},
		{true, CourierCapability + " AUTH=PLAIN ACL ACL2=UNION ENABLE UTF8=ACCEPT"},
	} {
		t.Run(fmt.Sprint("secure ", test.secure), func(t *testing.T) {
			user := someone()
			s.Deliver(t, user, "", exact[0])
			w := dialWire(t, s, test.secure)
			if got := w.do("", "* OK"); !strings.HasPrefix(got[0], "* OK [CAPABILITY "+test.before+"] Courier-IMAP ready.") {
				t.Errorf("greeting %q", got)
			}
			if got := w.do("a CAPABILITY\r\n", "a "); got[0] != "* CAPABILITY "+test.before {
				t.Errorf("before login: %q", got)
			}
			if got := w.do("b LOGIN "+user+" wrong\r\n", "b "); got[0] != "b NO Login failed." {
				t.Errorf("a wrong password: %q", got)
			}
			if got := w.do("c LOGIN \""+user+"\" {6}\r\n", "+ "); got[0] != "+ OK" {
				t.Errorf("a literal: %q", got)
			}
			// What follows in the same write is for the program behind the login.
			got := w.do(Password+"\r\nd CAPABILITY\r\ne EXAMINE INBOX\r\nf LOGOUT\r\n", "f ")
			after := "* CAPABILITY " + CourierCapability
			if test.secure {
				after += " AUTH=PLAIN"
			}
			for _, want := range []string{"c OK LOGIN Ok.", after + " ACL ACL2=UNION ENABLE UTF8=ACCEPT", "* 1 EXISTS", "e OK [READ-ONLY] Ok"} {
				if !slices.Contains(got, want) {
					t.Errorf("after login: no %q in %q", want, got)
				}
			}
			if _, err := w.r.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after LOGOUT: %v", err)
			}
		})
	}
}

func TestCourierAcceptsEveryWayToLogIn(t *testing.T) {
	s := Courier(t, CourierConfig{})
	plain := func(c *imapclient.Client) error {
		return c.Authenticate(sasl.NewPlainClient("", "u@example.org", Password))
	}
	for name, test := range map[string]struct {
		dial func() (*imapclient.Client, error)
		do   func(c *imapclient.Client) error
		ok   bool
	}{
		"TLS and PLAIN": {func() (*imapclient.Client, error) {
			return imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		}, plain, true},
		"STARTTLS and PLAIN": {func() (*imapclient.Client, error) {
			return imapclient.DialStartTLS(s.IMAPAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		}, plain, true},
		"STARTTLS and LOGIN": {func() (*imapclient.Client, error) {
			return imapclient.DialStartTLS(s.IMAPAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		}, func(c *imapclient.Client) error { return c.Login("u@example.org", Password).Wait() }, true},
		"another password": {func() (*imapclient.Client, error) {
			return imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		}, func(c *imapclient.Client) error { return c.Login("u@example.org", "wrong").Wait() }, false},
		"a name that leaves the mailbox": {func() (*imapclient.Client, error) {
			return imapclient.DialTLS(s.IMAPSAddr(), &imapclient.Options{TLSConfig: s.ClientTLS()})
		}, func(c *imapclient.Client) error { return c.Login("../u", Password).Wait() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := test.dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := test.do(c); (err == nil) != test.ok {
				t.Fatalf("login: %v, want success %v", err, test.ok)
			}
			if !test.ok {
				return
			}
			if _, err := c.Select("INBOX", nil).Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCourierRefusesAPasswordInTheClear(t *testing.T) {
	s := Courier(t, CourierConfig{RequireTLS: true})
	w := dialWire(t, s, false)
	if got := w.do("", "* OK"); !strings.Contains(got[0], " LOGINDISABLED ") {
		t.Errorf("greeting %q", got)
	}
	if got := w.do("a LOGIN u secret\r\n", "a "); got[0] != "a NO STARTTLS required" {
		t.Errorf("got %q", got)
	}
	if err := courierLogin(t, s, "u").Noop().Wait(); err != nil {
		t.Error(err)
	}
}

func TestCourierAnnouncesWhatItIsTold(t *testing.T) {
	s := Courier(t, CourierConfig{Capability: "IMAP4rev1 IDLE"})
	caps := courierLogin(t, s, someone()).Caps()
	if caps.Has(imap.CapUIDPlus) || !caps.Has(imap.CapIdle) {
		t.Errorf("got %v", caps)
	}
}

func TestCourierDeliversInOrderAndKeepsBytes(t *testing.T) {
	s := Courier(t, CourierConfig{})
	messages := exact
	for folder, name := range map[string]string{"": "INBOX", "Archive": "INBOX.Archive", "Projects/2026": "INBOX.Projects.2026", "Projects/Été": "INBOX.Projects.Été"} {
		t.Run(cmp.Or(folder, "INBOX"), func(t *testing.T) {
			user := someone()
			s.Deliver(t, user, folder, messages[:3]...)
			s.Deliver(t, user, folder, messages[3:]...)
			files := s.Files(t, user)
			if len(files) != len(messages) {
				t.Fatalf("%d files, want %d", len(files), len(messages))
			}
			for i, f := range files {
				if f.Folder != cmp.Or(folder, "INBOX") || !f.New || f.Sum != sha256.Sum256(stored(messages[i])) {
					t.Errorf("file %d: %+v", i, f)
				}
			}
			c := courierLogin(t, s, user)
			list, err := c.List("", "*", nil).Collect()
			if err != nil || !slices.ContainsFunc(list, func(l *imap.ListData) bool { return l.Mailbox == name && l.Delim == '.' }) {
				t.Errorf("no %q in the list: %v", name, err)
			}
			selected, err := c.Select(name, nil).Wait()
			if err != nil || int(selected.NumMessages) != len(messages) {
				t.Fatalf("got %+v, %v", selected, err)
			}
			for i, want := range messages {
				section := &imap.FetchItemBodySection{Peek: true}
				got, err := c.Fetch(imap.UIDSetNum(imap.UID(i+1)), &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
				if err != nil || len(got) != 1 {
					t.Fatalf("UID %d: %d messages, %v", i+1, len(got), err)
				}
				if body := got[0].FindBodySection(section); !bytes.Equal(body, want) {
					t.Errorf("UID %d: got %q, want %q", i+1, body, want)
				}
			}
		})
	}
}

func TestCourierDeliveryReachesAnOpenSession(t *testing.T) {
	s := Courier(t, CourierConfig{})
	user := someone()
	w := dialWire(t, s, true)
	w.do("a LOGIN "+user+" "+Password+"\r\n", "a OK")
	w.do("b SELECT INBOX\r\n", "b OK")
	s.Deliver(t, user, "INBOX", exact[1], exact[2])
	if got := w.do("c NOOP\r\n", "c OK"); !slices.Contains(got, "* 2 EXISTS") {
		t.Errorf("got %q", got)
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
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
