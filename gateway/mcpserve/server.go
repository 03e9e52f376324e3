// Package mcpserve puts a gateway behind the Model Context Protocol: one tool, "cli",
// whose argument is a command string (002 section 3.1). Server.Stdio serves one client
// over two pipes and Server.HTTP any number over streamable HTTP.
//
// The protocol itself is go-sdk's. What stands between it and the wire is here because
// a client or a stranger could otherwise end or fill the process: go-sdk starts
// whatever it can read, ends at a malformed line, cancels what runs at the end of the
// input, and has no bound on sessions or on callers (HTTPOptions).
//
//	stdio    line -> parseFrame -> queue (stdioConn.take) -> Read ─┐
//	HTTP     request -> checks (ServeHTTP) -> admit -> serve ──────┤
//	                                                               ▼
//	         go-sdk: versions, sessions, params -> tool.middleware -> request.carry
//	                                                               ▼
//	         tool.call -> gateway.Do(ctx, gateway.Request) -> Answer -> callResult
//
// A client may send many commands without waiting. Over stdio they are answered as they
// finish, but what they do and show is as if each had waited for the one before
// (gateway.Order); over HTTP nothing is ordered.
package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/plain"
)

// The one tool of an ACLI server, as 002 section 3.1 has it; the end of its definition
// is in Server.library. The library would order the fields by name.
const (
	toolName       = "cli"
	toolDefinition = `{"name":"cli","description":"Execute CLI command. Run 'help' for available commands.",` +
		`"inputSchema":{"type":"object","properties":{"command":{"type":"string","description":"CLI command string (e.g., 'calendar events --today')"}},"required":["command"]}`
)

// MaxInstructions is the most bytes that Server.Instructions may have. A client puts
// them into every conversation.
const MaxInstructions = 400

// Gateway answers calls. *gateway.Gateway is one.
type Gateway interface {
	Do(ctx context.Context, r gateway.Request) gateway.Answer
}

// Server is an MCP server with the one tool "cli". It declares the tools capability
// alone and refuses the methods of every other. It serves clients that start with
// initialize (protocol 2024-11-05 to 2025-11-25) and those that do not (2026-07-28),
// each as it comes. Only Gateway is required. It is not changed once it serves, and may
// serve more than once.
type Server struct {
	Gateway Gateway

	Principal gateway.Principal // the caller over stdio; over HTTP the token tells it

	Name, Title, Version string // of the server, as clients show it

	// Instructions tell a client's model what the server is for, in at most
	// MaxInstructions bytes.
	Instructions string

	// ReadOnly marks the tool as one that changes nothing, so that a person can let
	// a client call it without asking. It is a promise, not a check.
	ReadOnly bool

	MaxInFlight int           // calls at work at once over stdio; 0 means 64
	MaxQueued   int           // requests waiting over stdio, in 16 MiB at most; 0 means 4096
	Grace       time.Duration // for calls at work when told to stop; 0 means 5 s

	Logger *slog.Logger // nil discards; never given a token or a command's text
}

func (s *Server) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// check reports what is wrong with the server's fields.
func (s *Server) check() error {
	switch {
	case s.Gateway == nil:
		return errors.New("mcpserve: no gateway")
	case len(s.Instructions) > MaxInstructions:
		return fmt.Errorf("mcpserve: the instructions have %d bytes, and may have %d", len(s.Instructions), MaxInstructions)
	}
	return nil
}

// A request is one from a client as its transport knows it, which go-sdk hands on
// unchanged in the Extra of its own (extraOf).
type request interface {
	// carry lets the request go on to next, perhaps later or not at all.
	carry(ctx context.Context, req mcp.Request, method string, next func(context.Context) (mcp.Result, error)) (mcp.Result, error)

	// The rest is for a tools/call.
	principal() gateway.Principal
	ticket() *gateway.Ticket
	questions() *atomic.Int32 // how many are open to the caller's person

	// pause takes the call out of those at work until resume, while it waits for
	// something outside. giveUp is called, perhaps at once, when nothing more can come
	// from the client. resume waits for a place among those at work; it is not ok when
	// ctx ends first, and the call has none then. It must be called, and once.
	pause(giveUp func()) (resume func(ctx context.Context) (ok bool))

	// delivered has done called when the call's answer has been written.
	delivered(done func())
}

// requestKey is where go-sdk's token of a request has the request.
const requestKey = "postern request"

// tokenOf is what go-sdk takes for the token of a request from a caller.
func tokenOf(r request, caller string) *auth.TokenInfo {
	return &auth.TokenInfo{UserID: caller, Extra: map[string]any{requestKey: r}}
}

// requestOf finds the request that go-sdk's one came in; nil where no transport of ours
// handed it over.
func requestOf(req mcp.Request) request {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	r, _ := extra.TokenInfo.Extra[requestKey].(request)
	return r
}

// tool is the one tool of a server.
type tool struct {
	server *Server
	wire   json.RawMessage // as tools/list shows it
}

// library makes the go-sdk server.
func (s *Server) library() *mcp.Server {
	l := mcp.NewServer(&mcp.Implementation{Name: s.Name, Title: s.Title, Version: s.Version}, &mcp.ServerOptions{
		Instructions: s.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// The tool is the same for the life of a server, but may be different for
		// another person.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		// No logger: the library's log of a fault may hold the text of messages.
	})
	definition := toolDefinition + "}"
	if s.ReadOnly {
		definition = toolDefinition + `,"annotations":{"readOnlyHint":true}}`
	}
	t := &tool{server: s, wire: json.RawMessage(definition)}
	l.AddReceivingMiddleware(t.middleware)
	return l
}

// served reports whether the server answers a request of that method at all. The
// others belong to capabilities that it does not declare.
func served(method string) bool {
	switch method {
	case "initialize", "ping", "server/discover", "tools/list", "tools/call":
		return true
	}
	return false
}

var (
	errMethodNotFound = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has no such method; it has tools/list and tools/call"}
	errInternal       = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
)

// middleware stands before everything the library does with a request. The library
// knows of no tool: the tool is listed and called here.
func (t *tool) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				// The value may carry what the call was working on.
				t.server.logger().Error("request panicked", "panic_type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
				res, err = nil, errInternal
			}
		}()
		switch r := requestOf(req); {
		case strings.HasPrefix(method, "notifications/"):
			return next(ctx, method, req)
		case !served(method):
			return nil, errMethodNotFound
		case r == nil: // rather no effect than one out of turn
			t.server.logger().Error("request that no transport knows")
			return nil, errInternal
		default:
			return r.carry(ctx, req, method, func(ctx context.Context) (mcp.Result, error) {
				if call, ok := req.(*mcp.CallToolRequest); ok {
					return t.call(ctx, call, r)
				}
				res, err := next(ctx, method, req)
				if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
					return listResult{list, []json.RawMessage{t.wire}}, nil
				}
				return res, err
			})
		}
	}
}

// listResult is the answer to tools/list with the tool in our own words.
type listResult struct {
	*mcp.ListToolsResult
	Tools []json.RawMessage `json:"tools"` // in place of the library's
}

// callResult is the answer to tools/call as it goes over the wire: an outcome, which
// always says isError (002 section 5.3), or a question, which is not a result yet. The
// library leaves isError out when it is false.
type callResult struct {
	mcp.CallToolResult // for the _meta that the library adds
	answer             gateway.Answer
	question           bool
	typed              bool // the protocol has a resultType
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MarshalJSON implements json.Marshaler.
func (r *callResult) MarshalJSON() ([]byte, error) {
	var w struct {
		Meta          mcp.Meta            `json:"_meta,omitempty"`
		InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
		RequestState  string              `json:"requestState,omitempty"`
		Content       []text              `json:"content,omitempty"`
		IsError       *bool               `json:"isError,omitempty"`
		ResultType    string              `json:"resultType,omitempty"`
	}
	w.Meta = r.Meta
	kind := "complete"
	if r.question {
		kind = "input_required"
		w.InputRequests, w.RequestState = mcp.InputRequestMap{questionID: elicitation(r.answer.Asked)}, r.answer.Asked.State
	} else {
		w.Content, w.IsError = []text{{"text", string(r.answer.JSON)}}, new(!r.answer.Success())
	}
	if r.typed {
		w.ResultType = kind
	}
	return plain.JSON(w)
}
