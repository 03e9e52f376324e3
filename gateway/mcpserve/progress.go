package mcpserve

import (
	"context"
	"math"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressTo returns the function that reports a call's progress to the client, or nil if
// it did not ask for that. Each notification must have a greater value than the one before
// (MCP, progress): if the command's has not, the next greater one is sent.
func progressTo(ctx context.Context, req *mcp.CallToolRequest) func(float64, float64, string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	var mu sync.Mutex
	last := math.Inf(-1)
	return func(done, total float64, message string) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if done <= last {
			done = last + 0.001
		}
		last = done
		if total > 0 && total < done {
			total = 0 // unknown
		}
		// A client that cannot be told will not be answered either; the session
		// notices by itself.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: total, Message: message})
	}
}
