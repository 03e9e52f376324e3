package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
)

// Nobody's answer is taken for delivered that did not leave: the client hung up, or
// stopped reading, or the session was ended meanwhile.
func TestNoReceiptForAnAnswerThatDidNotLeave(t *testing.T) {
	const withSession = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cli","arguments":{"command":"x"},"_meta":{"progressToken":1}}}`
	for _, stateless := range []bool{false, true} {
		for _, how := range []string{"hangs up", "reads nothing", "ends the session"} {
			if stateless && how == "ends the session" {
				continue
			}
			t.Run(fmt.Sprintf("%s, stateless %v", how, stateless), func(t *testing.T) {
				began, goOn := make(chan struct{}), make(chan struct{})
				var receipts atomic.Int32
				times := defaultTimes
				times.write = 200 * time.Millisecond
				s := serveWith(t, narrow{listen(t)}, Server{Gateway: fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
					if c.Progress != nil {
						c.Progress(1, 2, string(answerMark)) // something is written before the answer
					}
					began <- struct{}{}
					text := "short"
					switch how {
					case "ends the session":
						<-ctx.Done()
					case "reads nothing": // more than lies between the two
						text = strings.Repeat("long ", 100_000)
						fallthrough
					default:
						<-goOn
					}
					return gateway.Answer{JSON: []byte(text), Receipts: []func(){func() { receipts.Add(1) }}}
				})}, HTTPOptions{}, times)
				head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
				body, session := statelessCall("x"), ""
				if stateless {
					head += "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: cli\r\n"
				} else {
					session = s.begin(t, "ann")
					head += "Mcp-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: " + session + "\r\n"
					body = withSession
				}
				conn := s.dial(t)
				if err := conn.SetReadBuffer(4096); err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body); err != nil {
					t.Fatal(err)
				}
				<-began
				switch how {
				case "hangs up":
					if err := errors.Join(conn.SetLinger(0), conn.Close()); err != nil {
						t.Fatal(err)
					}
				case "ends the session":
					if res, _ := s.send(t, "ann", rawRequest{method: "DELETE", header: inSession(session)}); res.StatusCode != http.StatusNoContent {
						t.Fatal(res.Status)
					}
				}
				close(goOn)
				// When it has stopped, whatever there was to be given has been.
				_ = s.stop() // its error is checked at the end of the test
				got := ""
				if how == "ends the session" { // the answer may have left before that was known
					all, err := io.ReadAll(conn)
					if err != nil {
						t.Fatal(err)
					}
					got = string(all)
				}
				if n := receipts.Load(); n > 1 || n == 1 && !strings.Contains(got, `"short"`) {
					t.Errorf("%d receipts, and what left is %q", n, got)
				}
			})
		}
	}
}

// narrow is a listener whose connections take little that nobody reads.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return c, err
}
