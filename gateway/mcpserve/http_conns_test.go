package mcpserve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

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
	must(t, second(io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\n\r\n")))
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
		must(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
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
	must(t, first.Close())
	for !ask(s.dial(t), "bob") { // the server sees the end in its own time
		time.Sleep(time.Millisecond)
	}
}
