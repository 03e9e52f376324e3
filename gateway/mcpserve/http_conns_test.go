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

// What a caller keeps of the connections is bounded too, and nobody else's affair. One
// that it closes makes room for another.
func TestKeptConnectionsAreBoundedByCaller(t *testing.T) {
	const most = 3
	s := serveOn(t, whoAndWhat, HTTPOptions{MaxConnections: shares*most + 3})
	open := func() (net.Conn, *bufio.Reader) {
		conn := s.dial(t)
		return conn, bufio.NewReader(conn)
	}
	call := statelessCall("x")
	ask := func(conn net.Conn, r *bufio.Reader, who string) (kept bool) {
		t.Helper()
		_, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: cli\r\nContent-Length: %d\r\n\r\n%s", who, len(call), call)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", who, res.Status, err)
		}
		return !res.Close
	}
	var first net.Conn
	var reader *bufio.Reader
	for i := range most + 2 {
		conn, r := open()
		if kept := ask(conn, r, "ann"); kept != (i < most) {
			t.Errorf("connection %d of ann's is kept: %t", i+1, kept)
		}
		if i == 0 {
			first, reader = conn, r
		}
	}
	if !ask(first, reader, "ann") {
		t.Error("one that was kept is not any more")
	}
	if conn, r := open(); !ask(conn, r, "bob") {
		t.Error("bob keeps none")
	}
	// One that another caller uses is the other's from then on, as behind a proxy.
	if !ask(first, reader, "bob") {
		t.Error("bob has room")
	}
	if conn, r := open(); !ask(conn, r, "ann") {
		t.Error("ann has no room where bob took one over")
	} else if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; { // the server sees the end in its own time
		if conn, r := open(); ask(conn, r, "ann") {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a connection that was closed makes no room")
		}
	}
}
