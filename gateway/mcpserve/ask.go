package mcpserve

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// An MCP client that declares elicitation can put a question to its person. With
// protocol 2026-07-28 the question is the answer to the call, and the client calls again
// with the person's answer; the server remembers nothing meanwhile. Before that the server
// asks by a request of its own while the call stays open; the call then gives up its place
// in line and among those at work, so that the commands behind it go on.

// questionID names the one question of a result.
const questionID = "approval"

// questionSchema is a form in which the person has to choose: a client that accepts a form
// as it came, empty or with the first choice, approves nothing.
const (
	questionSchema = `{"type":"object","properties":{"decision":{"type":"string","title":"Decision","description":"approve lets exactly this happen; wait leaves it waiting","enum":["wait","approve"]}},"required":["decision"]}`
	questionField  = "decision"
	questionYes    = "approve"
)

// maxOpenQuestions is how many questions of one caller may be open at once to clients
// that keep their call open meanwhile. Further questions are not asked.
const maxOpenQuestions = 16

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

// replyOf returns the answer to a question that a client brings with a call, or nil. An
// answer without the state of its question does not count: the empty state is never
// authentic.
func replyOf(p *mcp.CallToolParamsRaw) *gateway.Reply {
	if p.RequestState == "" && p.InputResponses == nil {
		return nil
	}
	r := &gateway.Reply{State: p.RequestState}
	if e, ok := p.InputResponses[questionID].(*mcp.ElicitResult); ok {
		r.Verdict = verdictOf(e)
	}
	return r
}

// verdictOf reads exactly the protocol's answers, and yes only with the choice made; anything
// else counts as no answer.
func verdictOf(e *mcp.ElicitResult) discovery.Verdict {
	switch {
	case e == nil:
	case e.Action == "accept" && e.Content[questionField] == questionYes:
		return discovery.Accepted
	case e.Action == "decline":
		return discovery.Declined
	}
	return discovery.Unanswered
}

func elicitation(q *gateway.Asked) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: q.Text, RequestedSchema: json.RawMessage(questionSchema)}
}

// ask puts a question while the call stays open, for gateway.AskTime at most, and returns
// the outcome, and the call's next Ticket. It never fails: a person who cannot be asked has
// not answered.
func ask(ctx context.Context, req *mcp.CallToolRequest, c request, q *gateway.Asked) (*gateway.Reply, *gateway.Ticket) {
	reply, ticket := &gateway.Reply{State: q.State}, c.ticket()
	ticket.Finish()
	open := c.questions()
	defer open.Add(-1)
	if open.Add(1) <= maxOpenQuestions {
		asking, cancel := context.WithTimeout(ctx, gateway.AskTime-time.Second) // while the state is still good
		defer cancel()
		resume := c.pause(cancel)
		if asking.Err() == nil {
			if e, err := req.Session.Elicit(asking, elicitation(q)); err == nil {
				reply.Verdict = verdictOf(e)
			}
		}
		_ = resume(ctx) // without a place its client has gone, and with it ctx
	}
	return reply, ticket.Rejoin()
}
