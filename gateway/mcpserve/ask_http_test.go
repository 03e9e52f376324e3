package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

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
