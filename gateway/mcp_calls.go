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
		return mcpResult(g.Do(ctx, p, call.Command))
	}
}

func mcpResult(a Answer) MCPResult {
	return MCPResult{Text: string(a.JSON), IsError: !a.Success()}
}
