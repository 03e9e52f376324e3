package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// A receipt is given for each answer that left, after it was written, and once.
func TestAReceiptIsGivenWhenTheAnswerHasLeft(t *testing.T) {
	for _, era := range httpEras {
		t.Run(era, func(t *testing.T) {
			receipts := make(chan string, 100)
			s := serveOn(t, fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
				r := whoAndWhat(ctx, c)
				r.JSON = append(r.JSON, `"isError":`+strings.Repeat(" long", 2000)...)
				if c.Progress != nil {
					c.Progress(1, 2, string(answerMark))
				}
				r.Receipts = []func(){func() { receipts <- c.Line }}
				return r
			}), HTTPOptions{})
			c := s.session(t, "ann", era, nil)
			var wg sync.WaitGroup
			var want []string
			for i := range 10 {
				want = append(want, fmt.Sprint("do ", i))
				wg.Go(func() {
					p := &mcp.CallToolParams{Name: "cli", Arguments: cli(fmt.Sprint("do ", i))}
					if i%2 == 0 {
						p.SetProgressToken(i)
					}
					if r, err := c.CallTool(t.Context(), p); err != nil || !strings.HasPrefix(r.Content[0].(*mcp.TextContent).Text, fmt.Sprint("ann: do ", i)) {
						t.Errorf("%d: %v", i, err)
					}
				})
			}
			wg.Wait()
			var got []string
			for range want {
				got = append(got, <-receipts)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("receipts for %q", got)
			}
			if err := s.stop(); !errors.Is(err, context.Canceled) || len(receipts) > 0 {
				t.Errorf("%d receipts more, %v", len(receipts), err)
			}
		})
	}
}

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
					if res, _ := s.send(t, "ann", request{method: "DELETE", header: inSession(session)}); res.StatusCode != http.StatusNoContent {
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

// scoped is a principal that a grant of its own lets in.
func scoped(name string, valid func(context.Context) error) gateway.Principal {
	return gateway.Principal{Name: name, Scope: &gateway.Scope{Profile: gateway.FullProfile(), Valid: valid}}
}

func TestAPersonIsAskedOverHTTP(t *testing.T) {
	for _, era := range httpEras[1:] { // the first cannot ask
		for action, want := range map[string][2]string{
			"accept":  {"", "person via client of ann true accepted "},
			"decline": {"PERMISSION_DENIED", "person via client of ann false declined PERMISSION_DENIED"},
			"cancel":  {"APPROVAL_REQUIRED", "ann true not_answered APPROVAL_REQUIRED"},
		} {
			t.Run(era+" "+action, func(t *testing.T) {
				d, g := newFakeStore(t, gateway.Options{})
				s := serveOn(t, g, HTTPOptions{MaxCalls: 1})
				s.callers["ann"] = Caller{ID: "1", Principal: scoped("ann", nil)}
				var shown []string
				var c *mcp.ClientSession
				c = s.session(t, "ann", era, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = append(shown, r.Params.Message)
					// Meanwhile the call holds no place, of which there is one.
					if a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli("do write --n 1")}); !a.Success {
						t.Errorf("while a person is asked: %+v", a)
					}
					return &mcp.ElicitResult{Action: action}, nil
				}})
				a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli("do ask --n 7")})
				if string(a.Error.Code) != want[0] || !slices.Equal(shown, []string{"Matter 7?"}) {
					t.Errorf("answered %+v, shown %q", a, shown)
				}
				d.wantRecords(t, "ann true asked APPROVAL_REQUIRED", want[1])
			})
		}
	}
}

// Who has a token writes its client's answers. Nobody is asked through one that is not
// trusted with that, and what it says of a question it was asked before is not heard.
func TestAClientThatIsNotBelievedIsAskedNothing(t *testing.T) {
	for _, era := range httpEras {
		t.Run(era, func(t *testing.T) {
			d, g := newFakeStore(t, gateway.Options{})
			s := serveOn(t, g, HTTPOptions{})
			p := scoped("ann", nil)
			state := g.Do(t.Context(), gateway.Request{Principal: p, Line: "do ask --n 7", CanAsk: true}).Asked.State
			p.Unasked = true
			s.callers["ann"] = Caller{ID: "1", Principal: p}
			c := s.session(t, "ann", era, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				t.Error("it was asked")
				return &mcp.ElicitResult{Action: "accept"}, nil
			}})
			if a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli("do ask --n 7")}); a.Error.Code != discovery.ApprovalRequired {
				t.Errorf("%+v", a)
			}
			if a := g.Do(t.Context(), gateway.Request{Principal: p, Line: "do ask --n 7", Reply: &gateway.Reply{State: state, Verdict: discovery.Accepted}}); a.Code != discovery.PermissionDenied {
				t.Errorf("%s", a.JSON)
			}
			d.wantReplies(t)
		})
	}
}

// What lets a client in may end while its person is asked. Then yes is no more.
func TestAnAnswerAfterTheEndOfAGrantDoesNothing(t *testing.T) {
	for _, era := range httpEras[1:] {
		t.Run(era, func(t *testing.T) {
			d, g := newFakeStore(t, gateway.Options{})
			var over atomic.Bool
			s := serveOn(t, g, HTTPOptions{})
			s.callers["ann"] = Caller{ID: "1", Principal: scoped("ann", func(context.Context) error {
				if over.Load() {
					return &discovery.Fault{Code: discovery.AuthFailed, Message: "It has ended.", Reason: "grant"}
				}
				return nil
			})}
			c := s.session(t, "ann", era, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				over.Store(true)
				return &mcp.ElicitResult{Action: "accept"}, nil
			}})
			if a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli("do ask --n 7")}); a.Error.Code != discovery.AuthFailed {
				t.Errorf("%+v", a)
			}
			d.wantReplies(t)
			if a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli("do read --n 1")}); a.Error.Code != discovery.AuthFailed {
				t.Errorf("a command afterwards: %+v", a)
			}
		})
	}
}

// One caller's open questions do not keep another's person from being asked.
func TestOpenQuestionsAreBoundedByCaller(t *testing.T) {
	_, g := newFakeStore(t, gateway.Options{})
	s := serveOn(t, g, HTTPOptions{})
	asked, answer := make(chan string, 100), make(chan struct{})
	connect := func(token string) *mcp.ClientSession {
		return s.session(t, token, "2025-06-18", &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- token
			<-answer
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
	}
	ann, bob := connect("ann"), connect("bob")
	codes := make(chan discovery.Code, 100)
	begin := func(c *mcp.ClientSession, n int) {
		go func() {
			a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli(fmt.Sprint("do ask --n ", n))})
			codes <- a.Error.Code
		}()
	}
	for i := range maxOpenQuestions + 1 {
		begin(ann, i)
	}
	if code := <-codes; code != discovery.ApprovalRequired {
		t.Errorf("one question too many: %s", code)
	}
	begin(bob, 1)
	for range maxOpenQuestions + 1 {
		<-asked
	}
	close(answer)
	for range maxOpenQuestions + 1 {
		if code := <-codes; code != "" {
			t.Errorf("an open question: %s", code)
		}
	}
}

// When the server stops, an open question has no answer, and nothing is done.
func TestStoppingEndsOpenQuestions(t *testing.T) {
	d, g := newFakeStore(t, gateway.Options{})
	s := serveWith(t, listen(t), Server{Gateway: g, Grace: time.Minute}, HTTPOptions{}, defaultTimes)
	asked, over := make(chan struct{}), make(chan struct{})
	defer close(over) // the client waits for it
	c := s.session(t, "ann", "2025-06-18", &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		close(asked)
		<-over
		return nil, errors.New("nobody is here")
	}})
	answered := make(chan storeAnswer, 1)
	go func() {
		a, _ := calling(t, c, &mcp.CallToolParams{Arguments: cli("do ask --n 7")})
		answered <- a
	}()
	<-asked
	_ = s.stop() // its error is checked at the end of the test
	if a := <-answered; a.Error.Code != discovery.ApprovalRequired {
		t.Errorf("%+v", a)
	}
	d.wantReplies(t, "m7 0 person via client")
}
