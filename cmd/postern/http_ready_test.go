package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/postern-mail/postern/mail"
)

// gate stands before a server: what connects waits until it is opened.
type gate struct {
	port uint16
	came chan struct{} // one for each connection
	open func()
}

func newGate(t testing.TB, target string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	g := &gate{port: uint16(l.Addr().(*net.TCPAddr).Port), came: make(chan struct{}, 100), open: sync.OnceFunc(func() { close(opened) })}
	t.Cleanup(func() { g.open(); _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			g.came <- struct{}{}
			go func() {
				defer client.Close()
				<-opened
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
				_, _ = io.Copy(client, server)
			}()
		}
	}()
	return g
}

// httpStatus is the answer to a request without a token, or to one with it.
func httpStatus(t testing.TB, method, url, token, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	res, err := bearerToken(token).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// What a balancer sees of a process: it is ready, its vault goes away and comes back, and it
// is told to stop while a call is at work, which still gets its answer.
func TestABalancerLeavesAServerThatCannotAnswer(t *testing.T) {
	t.Parallel()
	servers, v := sampleServers(t), newVault(t)
	waits := newGate(t, servers.IMAPAddr)
	for _, name := range []string{"work", "other"} { // of two accounts none is connected ahead
		a := servers.Account()
		a.Name, a.Mode = name, mail.ReadOnly
		if name == "work" {
			a.IMAP.Port = waits.port
		}
		v.add(t, a, servers.Password.Reveal())
	}
	token := newHouse(t, v).token(t, "laptop", "--accounts work --profile full")
	c := program(t, v.environment(false), "serve", "--http", "127.0.0.1:0")
	url, log := servingProcess(t, c)
	ready := strings.TrimSuffix(url, "/mcp") + "/ready"
	is := func(status int, word string) func() bool {
		return func() bool {
			res, body := httpStatus(t, "GET", ready, "", "")
			return res.StatusCode == status && body == word+"\n"
		}
	}
	if !is(http.StatusOK, "ready")() {
		t.Error("it is not ready")
	}
	if err := os.Rename(v.path, v.path+".away"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready without a vault", is(http.StatusServiceUnavailable, "unavailable"))
	if err := os.Rename(v.path+".away", v.path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not ready again", is(http.StatusOK, "ready"))

	idle, err := connectHTTP(t, url, token, "2025-06-18", nil) // a session of the era before, which it ends
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := call(t, idle, command("version")); !a.Success {
		t.Errorf("%s", a.raw)
	}
	client, err := connectHTTP(t, url, token, "2026-07-28", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	var a answer
	go func() {
		var err error
		a, err = askOver(t.Context(), client, "mail list --limit 1")
		got <- err
	}()
	<-waits.came
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it does not say that it stops", is(http.StatusServiceUnavailable, "stopping"))
	res, body := httpStatus(t, "POST", url, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"late","version":"1"}}}`)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !res.Close {
		t.Errorf("a new session is answered %s, %v, %s", res.Status, res.Header, body)
	}
	waits.open()
	if err := <-got; err != nil || !a.Success {
		t.Errorf("the call that was at work: %s, %v", a.raw, err)
	}
	if said, err := <-log, c.Wait(); err != nil || strings.Contains(said, "panic") {
		t.Errorf("%v: %s", err, said)
	}
	_ = client.Close()
}
