package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
)

// An MCP client that declares elicitation can put a question to its person. With
// protocol 2026-07-28 the question is the answer to the call, and the client calls
// again with what the person said; the server remembers nothing meanwhile. Before
// that the server asks by a request of its own while the call stays open; the call
// then gives up its place in line and among those at work, so that the commands
// behind it go on.

// MCPReply is what a client brings back for a question.
type MCPReply struct {
	State   string // of the MCPQuestion, as the client says
	Verdict discovery.Verdict
}

// MCPQuestion is a question to the client's person.
type MCPQuestion struct {
	Text  string // plain text
	State string // comes back with the answer; a client can read and forge it
}

// questionID names the one question of a result.
const questionID = "approval"

// questionSchema is a form without fields: the person accepts or declines.
const questionSchema = `{"type":"object","properties":{}}`

// maxOpenQuestions is how many questions of one caller may be open at once to clients
// that keep their call open meanwhile. Beyond it nobody is asked.
const maxOpenQuestions = 16

// openQuestions counts by caller; over stdio there is one.
type openQuestions struct {
	mu sync.Mutex
	of map[string]int
}

func (q *openQuestions) begin(caller string) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[caller] >= maxOpenQuestions {
		return false
	}
	if q.of == nil {
		q.of = map[string]int{}
	}
	q.of[caller]++
	return true
}

func (q *openQuestions) end(caller string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[caller]--; q.of[caller] == 0 {
		delete(q.of, caller)
	}
}

// asks reports whether the client of a request can put a form to its person.
func asks(req *mcp.CallToolRequest) bool {
	c := req.ClientCapabilities()
	// A client from before there were other modes says that it can ask, and no more.
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// callsAgain reports whether the client calls again with the answer to a question.
// The library decides by the same.
func callsAgain(s *mcp.ServerSession) bool {
	p := s.InitializeParams()
	return p == nil || p.ProtocolVersion >= "2026-07-28"
}

// replyOf returns what a client brings with a call, or nil. An answer without the
// state of its question is none: the empty state is never authentic.
func replyOf(p *mcp.CallToolParamsRaw) *MCPReply {
	if p.RequestState == "" && p.InputResponses == nil {
		return nil
	}
	r := &MCPReply{State: p.RequestState}
	if e, ok := p.InputResponses[questionID].(*mcp.ElicitResult); ok {
		r.Verdict = verdictOf(e)
	}
	return r
}

// verdictOf reads exactly what the protocol has; anything else is no answer.
func verdictOf(e *mcp.ElicitResult) discovery.Verdict {
	switch {
	case e == nil:
	case e.Action == "accept":
		return discovery.Accepted
	case e.Action == "decline":
		return discovery.Declined
	}
	return discovery.Unanswered
}

func elicitation(q *MCPQuestion) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: q.Text, RequestedSchema: json.RawMessage(questionSchema)}
}

// questionResult is the answer that makes a client ask and call again.
func questionResult(q *MCPQuestion) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{questionID: elicitation(q)}, RequestState: q.State}
}

// ask puts the question while the call stays open, for AskTime at most, and returns
// what became of it, and the context for going on, whose Ticket is another one. It never fails: who cannot be
// asked has not answered.
func (h *toolHandler) ask(ctx context.Context, req *mcp.CallToolRequest, q *MCPQuestion) (context.Context, *MCPReply) {
	reply := &MCPReply{State: q.State}
	caller, _ := CallerOf(ctx)
	if !h.open.begin(caller.ID) {
		return ctx, reply
	}
	defer h.open.end(caller.ID)
	asking, cancel := context.WithTimeout(ctx, AskTime-time.Second) // while the state is still good
	defer cancel()
	ticket := ticketOf(ctx)
	ticket.Finish()
	if source, ok := ctx.Value(ticketSourceKey{}).(ticketSource); ok {
		resume := source.pause(req.Extra, cancel)
		defer func() { _ = resume(ctx) }() // without a place its client has gone, and with it ctx
	}
	if asking.Err() == nil {
		if e, err := req.Session.Elicit(asking, elicitation(q)); err == nil {
			reply.Verdict = verdictOf(e)
		}
	}
	return WithTicket(ctx, ticket.Rejoin()), reply
}
