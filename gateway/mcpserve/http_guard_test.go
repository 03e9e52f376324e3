package mcpserve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
)

// Nothing else is served, and nothing without a valid token. Who was not let in keeps no
// connection, whatever was asked for, and who was does: or a stranger could hold all there may
// be, with one request each now and then.
func TestRefusals(t *testing.T) {
	s := &httpServer{}
	s = serveOn(t, whoAndWhat, HTTPOptions{Origins: []string{"https://desk.example.org"}, Admit: func(ctx context.Context, token string) (Caller, error) {
		if token == "trouble" {
			return Caller{}, errors.New("the store holds secret-of-ann")
		}
		return s.admit(ctx, token)
	}})
	session := s.begin(t, "ann")
	s.revoke("bob")
	// The first one is logged; those of the next second are counted.
	if res, _ := s.send(t, "bob", rawRequest{method: "POST", body: initializing}); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked token: %s", res.Status)
	}
	bodies := map[string]string{}
	for _, c := range testmain.Table[struct{ Line, Header, Answer string }](t, "testdata/cases/refusals.txt") {
		name := c.Line + " " + c.Header
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		header := strings.TrimPrefix(strings.ReplaceAll(c.Header, "SESSION", session)+"\r\n", "\r\n")
		must(t, second(fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", c.Line, header)))
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(res.Body)
		got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("WWW-Authenticate"))
		if err != nil || got != c.Answer || strings.Contains(string(body), "secret") {
			t.Errorf("%s: %s %s, %v", name, got, body, err)
		}
		if res.StatusCode == http.StatusMethodNotAllowed && res.Header.Get("Allow") != "POST, DELETE" {
			t.Errorf("%s: allowed are %s", name, res.Header.Get("Allow"))
		}
		if before, ok := bodies[c.Answer[:3]]; ok && before != string(body) && strings.HasPrefix(c.Answer, "401") {
			t.Errorf("%s: answered otherwise than another wrong one: %q", name, body)
		}
		bodies[c.Answer[:3]] = string(body)
		if in := c.Answer == "415 " || strings.Contains(c.Header, "Mcp-Session-Id: x"); res.Close == in {
			t.Errorf("%s: closed: %t", name, res.Close)
		} else if !in {
			if n, err := r.Read(make([]byte, 1)); n > 0 || err == nil || isTimeout(err) {
				t.Errorf("%s: the connection is kept: %v", name, err)
			}
		}
	}
	log := s.log.String()
	for _, secret := range []string{"secret", "Bearer", "YW5uOg"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q: %s", secret, log)
		}
	}
	if !strings.Contains(log, "because_of=token") {
		t.Errorf("nobody is told of wrong tokens: %s", log)
	}
}

// A page in somebody's browser, under a name of its own or not, gets nowhere, whatever
// it asks for.
func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	s := serveOn(t, whoAndWhat, HTTPOptions{Origins: []string{"https://desk.example.org"}, Host: func(name string) bool { return name == "mail.example.org" }})
	_, port, err := net.SplitHostPort(s.addr)
	must(t, err)
	for _, line := range readLines(t, "hosts.txt") {
		c := strings.Fields(strings.ReplaceAll(line, "PORT", port))
		served, host, origin := c[0] == "served", strings.TrimPrefix(c[1], "-"), strings.TrimPrefix(c[2], "-")
		for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS", "PUT"} {
			q := rawRequest{method: method, header: http.Header{}, host: host}
			if origin != "" {
				q.header["Origin"] = []string{origin}
			}
			if method == "POST" {
				q.body = initializing
			}
			res, text := s.send(t, "ann", q)
			if refused := res.StatusCode == http.StatusForbidden; refused == served {
				t.Errorf("%s at %q from %q: %s %s", method, host, origin, res.Status, text)
			}
			if allow := res.Header.Get("Access-Control-Allow-Origin"); (allow != "") != (served && strings.EqualFold(origin, "https://desk.example.org")) {
				t.Errorf("%s from %q is told %q", method, origin, allow)
			}
		}
	}
	res, _ := s.send(t, "", rawRequest{method: "POST", body: initializing, header: http.Header{"Origin": {"https://desk.example.org", "https://evil.example"}}})
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("two origins: %s", res.Status)
	}
}

func TestASessionIsItsCallersAlone(t *testing.T) {
	s := serveOn(t, whoAndWhat, HTTPOptions{})
	s.callers["ann again"] = Caller{ID: "another id", Principal: gateway.Principal{Name: "ann"}}
	id := s.begin(t, "ann")
	missing, missingBody := s.send(t, "bob", rawRequest{method: "POST", body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, header: inSession("no-such-session")})
	for _, thief := range []string{"bob", "ann again"} {
		for _, q := range []rawRequest{
			{method: "POST", body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, header: inSession(id)},
			{method: "POST", body: `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"cli","arguments":{"command":"x"}}}`, header: inSession(id)},
			{method: "POST", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, header: inSession(id)},
			{method: "DELETE", header: inSession(id)},
		} {
			res, body := s.send(t, thief, q)
			if res.StatusCode != missing.StatusCode || body != missingBody || missing.StatusCode != http.StatusNotFound {
				t.Errorf("%s, %s: %s %q; one that does not exist: %s %q", thief, q.method, res.Status, body, missing.Status, missingBody)
			}
		}
	}
	if status := s.ping(t, "ann", id); status != 200 {
		t.Errorf("its caller: %d", status)
	}
	two := inSession(id)
	two[sessionHeader] = append(two[sessionHeader], id)
	if res, _ := s.send(t, "ann", rawRequest{method: "POST", body: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, header: two}); res.StatusCode != 404 {
		t.Errorf("two sessions at once: %s", res.Status)
	}
	own := s.begin(t, "bob")
	s.revoke("bob")
	if status := s.ping(t, "bob", own); status != 401 {
		t.Errorf("a session whose token has ended: %d", status)
	}
	if res, _ := s.send(t, "ann", rawRequest{method: "DELETE", header: inSession(id)}); res.StatusCode != http.StatusNoContent {
		t.Errorf("its end: %s", res.Status)
	}
	if status := s.ping(t, "ann", id); status != 404 {
		t.Errorf("after its end: %d", status)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	w := newBlockingGateway()
	s := serveOn(t, w, HTTPOptions{MaxSessions: 3})
	var ids []string
	for range 3 {
		ids = append(ids, s.begin(t, "ann"))
	}
	s.ping(t, "ann", ids[0]) // now the second is the one longest unused
	ids = append(ids, s.begin(t, "ann"))
	for i, want := range []int{200, 404, 200, 200} {
		if status := s.ping(t, "ann", ids[i]); status != want {
			t.Errorf("session %d of 4: %d, want %d", i+1, status, want)
		}
	}
	// One that is in use is not taken away, and where all are no other begins.
	busy := []string{ids[0], ids[2], ids[3]}
	answered := make(chan int, len(busy))
	for i, id := range busy {
		go func() {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":"wait"}}}`, i+10)
			res, _ := s.send(t, "ann", rawRequest{method: "POST", body: body, header: inSession(id)})
			answered <- res.StatusCode
		}()
		<-w.began
	}
	if res, _ := s.send(t, "ann", rawRequest{method: "POST", body: initializing}); res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("a fourth while three are in use: %s", res.Status)
	}
	// Another caller has as many, at nobody's cost.
	others := []string{s.begin(t, "bob"), s.begin(t, "bob"), s.begin(t, "bob")}
	for i, want := range []int{200, 200, 200} {
		if status := s.ping(t, "bob", others[i]); status != want {
			t.Errorf("session %d of the other: %d, want %d", i+1, status, want)
		}
	}
	close(w.release)
	for range busy {
		if status := <-answered; status != 200 {
			t.Errorf("a call in a session in use: %d", status)
		}
	}
	// What begins no session leaves no trace.
	for range 10 {
		s.send(t, "ann", rawRequest{method: "POST", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`})
		s.send(t, "ann", rawRequest{method: "POST", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
		s.send(t, "ann", rawRequest{method: "POST", body: `{`})
	}
	for range 3 {
		s.begin(t, "ann")
	}
}

func TestAnIdleSessionEnds(t *testing.T) {
	times := defaultTimes
	times.session = time.Millisecond
	s := serveWith(t, listen(t), Server{Gateway: whoAndWhat}, HTTPOptions{MaxSessions: 1}, times)
	id := s.begin(t, "ann")
	for s.ping(t, "ann", id) != 404 { // each of them begins the time anew
		time.Sleep(2 * time.Millisecond)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	w := newBlockingGateway()
	s := serveOn(t, w, HTTPOptions{MaxConnections: 2 * shares})
	call := rawRequest{method: "POST", body: statelessCall("wait"), header: statelessHeader()}
	answered := make(chan string, 3)
	begin := func(token string) {
		go func() {
			_, body := s.send(t, token, call)
			answered <- body
		}()
		<-w.began
	}
	begin("ann")
	begin("ann")
	if res, _ := s.send(t, "ann", call); res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
		t.Errorf("a third of one caller: %s", res.Status)
	}
	begin("bob")
	close(w.release)
	for range 3 {
		if body := <-answered; !strings.Contains(body, ": wait") {
			t.Errorf("answered %s", body)
		}
	}
	if res, _ := s.send(t, "ann", call); res.StatusCode != 200 {
		t.Errorf("afterwards: %s", res.Status)
	}
}

func TestBodiesAndHeadersAreBounded(t *testing.T) {
	t.Parallel()
	s := serveOn(t, whoAndWhat, HTTPOptions{})
	for name, c := range map[string]struct {
		size    int
		chunked bool
		status  int
	}{
		"fits":             {maxBody, false, 200},
		"fits, in chunks":  {maxBody, true, 200},
		"a byte more":      {maxBody + 1, false, 413},
		"more, in chunks":  {maxBody + 1, true, 413},
		"much more":        {5 << 20, false, 413},
		"much, in chunks":  {5 << 20, true, 413},
		"a second message": {0, false, 400},
		"a batch":          {-1, false, 400},
		"not UTF-8":        {-2, false, 400},
	} {
		body := initializing + strings.Repeat(" ", max(0, c.size-len(initializing)))
		switch c.size {
		case 0:
			body = initializing + initializing
		case -1:
			body = "[" + initializing + "]"
		case -2:
			body = strings.Replace(initializing, `"name":"`, "\"name\":\"\xff", 1)
		}
		res, err := s.do(t, bearing("ann"), rawRequest{method: "POST", body: body, chunked: c.chunked})
		if err != nil { // it was cut off while it was still sending
			if c.size <= maxBody+1 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", name, res.Status, c.status)
		}
	}
	conn := s.dial(t)
	_, _ = fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Long: %s", strings.Repeat("x", 100_000)) // it may be cut off meanwhile
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %s", res.Status)
	}
}

// What a caller's bodies take together is bounded, before any of it is read.
func TestBodiesOfACallerAreBoundedTogether(t *testing.T) {
	h := (&Server{Gateway: echo}).newHTTPHandler(HTTPOptions{MaxConnections: defaultConnections}, defaultTimes, true)
	ann, bob := Caller{ID: "ann"}, Caller{ID: "bob"}
	for _, length := range []int64{maxBody, -1, 5 << 20} { // a longer one is cut at the bound, and so may be one of unknown length
		var open []*httpRequest
		for range maxBodies / maxBody {
			r, status := h.open(ann, length)
			if status != 0 {
				t.Fatalf("%d of length %d, then %d", len(open), length, status)
			}
			open = append(open, r)
		}
		if _, status := h.open(ann, length); status != http.StatusTooManyRequests {
			t.Errorf("one more of length %d: %d", length, status)
		}
		if r, status := h.open(bob, maxBody); status != 0 {
			t.Errorf("another caller: %d", status)
		} else {
			r.done()
		}
		for _, r := range open {
			r.done()
		}
	}
}

// Who sends a byte now and then holds a connection no longer than they may.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	// A busy machine may take seconds to read a head that was sent whole, so where that
	// matters only what follows the head is cut off soon.
	const soon = 300 * time.Millisecond
	heads, bodies := defaultTimes, defaultTimes
	heads.head, heads.idle = soon, soon
	bodies.body, bodies.idle = soon, soon
	noHead := serveWith(t, listen(t), Server{Gateway: whoAndWhat}, HTTPOptions{MaxConnections: 4 * shares}, heads)
	s := serveWith(t, listen(t), Server{Gateway: whoAndWhat}, HTTPOptions{MaxConnections: 4 * shares}, bodies)
	const head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 1000\r\n"
	clients := map[string]struct{ sent, answer string }{
		"says nothing":             {"", ""},
		"half a head":              {"POST /mcp HT", ""},
		"a head without its end":   {head, ""},
		"no body":                  {head + "Authorization: Bearer ann\r\n\r\n", "408"},
		"half a body":              {head + "Authorization: Bearer ann\r\n\r\n{\"jsonrpc\"", "408"},
		"half a body, not let in":  {head + "\r\n{", "401"},
		"half a body, not foreign": {strings.Replace(head, "localhost", "evil.example", 1) + "\r\n{", "403"},
		"another path":             {strings.Replace(head, "/mcp", "/x", 1) + "\r\n{", "404"},
		"nothing more after one":   {strings.Replace(head, "1000", "1", 1) + "Authorization: Bearer ann\r\n\r\n{", "400"},
	}
	for range 2 {
		var wg sync.WaitGroup
		for name, c := range clients {
			to := s
			if !strings.Contains(c.sent, "\r\n\r\n") {
				to = noHead
			}
			conn := to.dial(t)
			wg.Go(func() {
				if _, err := conn.Write([]byte(c.sent)); err != nil {
					t.Error(err)
					return
				}
				var answer strings.Builder
				if _, err := bufio.NewReader(conn).WriteTo(&answer); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
					t.Errorf("%s: it is not cut off", name)
				}
				_ = conn.Close()
				if got := answer.String(); c.answer == "" && got != "" && !strings.HasPrefix(got, "HTTP/1.1 40") || c.answer != "" && !strings.HasPrefix(got, "HTTP/1.1 "+c.answer) {
					t.Errorf("%s: answered %q", name, got)
				}
			})
		}
		wg.Wait()
	}
	// There may not be as many connections as were cut off.
	if status := s.ping(t, "ann", s.begin(t, "ann")); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestTLSIsServedAndHTTP2IsNot(t *testing.T) {
	lender := httptest.NewTLSServer(nil)
	lender.Close()
	s := serveOn(t, whoAndWhat, HTTPOptions{TLS: &tls.Config{Certificates: lender.TLS.Certificates}})
	wantText(t, s.session(t, "ann", "2025-11-25", nil), "x", "ann: x")
	conn, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	must(t, err)
	if got := conn.ConnectionState(); got.NegotiatedProtocol != "http/1.1" || got.Version < tls.VersionTLS12 {
		t.Errorf("%q, TLS %x", got.NegotiatedProtocol, got.Version)
	}
	_ = conn.Close()
	if _, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is served")
	}
	res, err := http.Post(strings.Replace(s.url, "https", "http", 1), "application/json", strings.NewReader(initializing))
	if err == nil {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("in plaintext: %s", res.Status)
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
