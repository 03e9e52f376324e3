package gateway

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

// MCP returns the function that answers an MCP client's calls as the principal
// (002 section 5.3).
func (g *Gateway) MCP(p Principal) CallFunc {
	return func(ctx context.Context, call MCPCall) MCPResult {
		if call.Progress != nil {
			ctx = WithProgress(ctx, call.Progress)
		}
		if !call.HasCommand {
			return mcpResult(g.Refuse(ctx, p, &discovery.Fault{Code: discovery.ValidationError,
				Message:  "The call's arguments cannot be used: " + call.Fault + ".",
				Hint:     `Call the tool with one argument, "command", that holds the command string.`,
				Examples: []string{"help"}}))
		}
		if r := call.Reply; r != nil {
			return mcpResult(g.Resume(ctx, p, call.Command, r.State, r.Verdict))
		}
		if call.CanAsk {
			ctx = WithQuestions(ctx)
		}
		return mcpResult(g.Do(ctx, p, call.Command))
	}
}

func mcpResult(a Answer) MCPResult {
	r := MCPResult{Text: string(a.JSON), IsError: !a.Success()}
	if len(a.delivered) > 0 {
		r.Delivered = a.Delivered
	}
	if a.Asked != nil {
		r.Question = &MCPQuestion{Text: a.Asked.Text, State: a.Asked.State}
	}
	return r
}
