package mcpserve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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
			bubble(t, fmt.Sprintf("%s, stateless %v", how, stateless), func(t *testing.T) {
				began, goOn := make(chan struct{}), make(chan struct{})
				var receipts atomic.Int32
				l := newPipes()
				s := serveWith(t, l, Server{Gateway: fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
					began <- struct{}{}
					if c.Progress != nil {
						c.Progress(1, 2, string(answerMark)) // something is written before the answer
					}
					if how == "ends the session" {
						<-ctx.Done()
					} else {
						<-goOn
					}
					return gateway.Answer{JSON: []byte("short"), Receipts: []func(){func() { receipts.Add(1) }}}
				})}, HTTPOptions{}, defaultTimes)
				head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
				body, session := statelessCall("x"), ""
				if stateless {
					head += "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: cli\r\n"
				} else {
					session = s.begin(t, "ann")
					head += "Mcp-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: " + session + "\r\n"
					body = withSession
				}
				conn, err := l.dial(t.Context(), "", "")
				must(t, err)
				defer conn.Close()
				must(t, second(fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)))
				<-began
				got := make(chan []byte, 1)
				switch how {
				case "hangs up":
					_ = conn.Close()
				case "ends the session":
					go func() {
						all, _ := io.ReadAll(conn)
						got <- all
					}()
					if res, _ := s.send(t, "ann", rawRequest{method: "DELETE", header: inSession(session)}); res.StatusCode != http.StatusNoContent {
						t.Fatal(res.Status)
					}
				}
				close(goOn)
				time.Sleep(3 * defaultTimes.write)
				_ = s.stop() // whatever receipt there was to be given has been; its error is checked at the end of the test
				// Where the session ended the answer may have left before that was known.
				if n := receipts.Load(); n > 0 && (how != "ends the session" || n > 1 || !bytes.Contains(<-got, []byte(`"short"`))) {
					t.Errorf("%d receipts", n)
				}
			})
		}
	}
}
