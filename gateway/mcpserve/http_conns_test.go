package mcpserve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Who was not let in keeps no connection, whatever was asked for, and who was does: or
// a stranger could hold all there may be, with one request each now and then.
func TestAStrangerKeepsNoConnection(t *testing.T) {
	s := serveOn(t, whoAndWhat, HTTPOptions{Origins: []string{"https://desk.example.org"}, Admit: func(_ context.Context, token string) (Caller, error) {
		if token == "trouble" {
			return Caller{}, errors.New("the store is away")
		}
		return Caller{}, ErrNotAdmitted
	}})
	insider := serveOn(t, whoAndWhat, HTTPOptions{})
	for name, c := range map[string]struct {
		server               *httpServer
		line, header, status string
		kept                 bool
	}{
		"another path":      {s, "GET /x", "", "404", false},
		"a stream":          {s, "GET /mcp", "", "405", false},
		"a preflight":       {s, "OPTIONS /mcp", "Origin: https://desk.example.org\r\n", "204", false},
		"another host":      {s, "POST /mcp", "Origin: https://evil.example\r\n", "403", false},
		"no token":          {s, "POST /mcp", "", "401", false},
		"two tokens":        {s, "POST /mcp", "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n", "400", false},
		"tokens unreadable": {s, "POST /mcp", "Authorization: Bearer trouble\r\n", "503", false},
		"let in":            {insider, "POST /mcp", "Authorization: Bearer ann\r\n", "415", true},
	} {
		conn := c.server.dial(t)
		r := bufio.NewReader(conn)
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", c.line, c.header); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err = io.Copy(io.Discard, res.Body); err != nil || !strings.HasPrefix(res.Status, c.status) || res.Close == c.kept {
			t.Errorf("%s: %s, closed: %t, %v", name, res.Status, res.Close, err)
		}
		if !c.kept && res.Close {
			if n, err := r.Read(make([]byte, 1)); n > 0 || err == nil || isTimeout(err) {
				t.Errorf("%s: the connection is kept: %v", name, err)
			}
		}
	}
}

// Who opens more connections than there may be, and sends no whole request on them, keeps
// nobody out, for however long a request may take to come.
func TestHalfOpenConnectionsKeepNobodyOut(t *testing.T) {
	const most = 8
	times := defaultTimes
	times.head = time.Hour
	s := serveWith(t, listen(t), Server{Gateway: whoAndWhat}, HTTPOptions{MaxConnections: most}, times)
	var flood []net.Conn
	for i := range 10 * most {
		conn := s.dial(t)
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: ") // it may be closed already
		}
		flood = append(flood, conn)
	}
	conn := s.dial(t)
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("who has a token is answered %+v, %v", res, err)
	}
	for _, conn := range flood[:len(flood)-most] {
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || isTimeout(err) {
			t.Fatalf("an old connection is kept: %v", err)
		}
	}
}

// While half of the connections are open each ends with its answer, so that who keeps
// the others keeps nobody out.
func TestNotAllConnectionsAreKept(t *testing.T) {
	const most = 4
	s := serveOn(t, whoAndWhat, HTTPOptions{MaxConnections: 2 * most})
	call := statelessCall("x")
	ask := func(conn net.Conn, who string) (kept bool) {
		t.Helper()
		_, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: cli\r\nContent-Length: %d\r\n\r\n%s", who, len(call), call)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", who, res.Status, err)
		}
		return !res.Close
	}
	first := s.dial(t)
	for i := range most + 3 {
		conn := first
		if i > 0 {
			conn = s.dial(t)
		}
		if kept := ask(conn, "ann"); kept != (i < most) {
			t.Errorf("connection %d is kept: %t", i+1, kept)
		}
	}
	ask(s.dial(t), "bob")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for !ask(s.dial(t), "bob") { // the server sees the end in its own time
		time.Sleep(time.Millisecond)
	}
}
