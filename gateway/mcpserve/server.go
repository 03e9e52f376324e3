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
//	         go-sdk: versions, sessions, params -> tool.middleware -> transport.carry
//	                                                               ▼
//	         tool.call -> gateway.Do(ctx, gateway.Request) -> Answer -> callResult
//
// A client may send many commands without waiting. Over stdio they are answered as they
// finish, but what they do and show is as if each had waited for the one before
// (gateway.Order); over HTTP nothing is ordered.
package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
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

	Principal gateway.Principal // who calls over stdio; over HTTP the token says that

	Name, Version string // of the server, as clients show it

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

// A transport knows of a request what go-sdk does not hand on.
type transport interface {
	// carry lets a request go on to next, perhaps later or not at all. The call is nil
	// but for tools/call.
	carry(ctx context.Context, method string, req mcp.Request, next func(context.Context, call) (mcp.Result, error)) (mcp.Result, error)
}

// A call is a tools/call as its transport knows it.
type call interface {
	principal() gateway.Principal
	caller() string // tells callers apart, see Caller.ID
	ticket() *gateway.Ticket

	// pause takes the call out of those at work until resume, while it waits for
	// something outside. giveUp is called, perhaps at once, when nothing more can come
	// from the client. resume waits for a place among those at work; it is not ok when
	// ctx ends first, and the call has none then. It must be called, and once.
	pause(giveUp func()) (resume func(ctx context.Context) (ok bool))

	// delivered has done called when the call's answer has been written.
	delivered(done func())
}

// tool is the one tool on one transport.
type tool struct {
	server    *Server
	transport transport
	log       *slog.Logger
	wire      json.RawMessage // as tools/list shows it
	questions openQuestions
}

// library makes the go-sdk server.
func (s *Server) library(t transport) *mcp.Server {
	l := mcp.NewServer(&mcp.Implementation{Name: s.Name, Version: s.Version}, &mcp.ServerOptions{
		Instructions: s.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// The tool is the same for the life of a server, but may be different for
		// another person.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		// No logger: what the library logs of a fault may hold what was said.
	})
	definition := toolDefinition + "}"
	if s.ReadOnly {
		definition = toolDefinition + `,"annotations":{"readOnlyHint":true}}`
	}
	h := &tool{server: s, transport: t, log: s.logger(), wire: json.RawMessage(definition), questions: openQuestions{of: map[string]int{}}}
	l.AddReceivingMiddleware(h.middleware)
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
				t.log.Error("request panicked", "panic_type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
				res, err = nil, errInternal
			}
		}()
		if !strings.HasPrefix(method, "notifications/") && !served(method) {
			return nil, errMethodNotFound
		}
		return t.transport.carry(ctx, method, req, func(ctx context.Context, c call) (mcp.Result, error) {
			if r, ok := req.(*mcp.CallToolRequest); ok {
				if c == nil { // rather no effect than one out of turn
					t.log.Error("call that the transport does not know")
					return nil, errInternal
				}
				return t.call(ctx, r, c)
			}
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
				return listResult{list, []json.RawMessage{t.wire}}, nil
			}
			return res, err
		})
	}
}

// listResult is the answer to tools/list with the tool in our own words.
type listResult struct {
	*mcp.ListToolsResult
	Tools []json.RawMessage `json:"tools"` // in place of the library's
}

// callResult is the answer to tools/call as it goes over the wire: an outcome, which
// always says isError (002 section 5.3), or a question, which is none yet. It is
// written by hand because the library leaves isError out when false, and writes its
// answers twice.
type callResult struct {
	mcp.CallToolResult // for the _meta that the library adds
	answer             gateway.Answer
	question           bool
	typed              bool // the protocol has a resultType
}

// MarshalJSON implements json.Marshaler.
func (r *callResult) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(r.answer.JSON)+len(r.answer.JSON)/8+256), '{')
	if len(r.Meta) > 0 {
		m, err := json.Marshal(r.Meta)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, `"_meta":`...), m...), ',')
	}
	kind := "complete"
	if r.question {
		asked, err := json.Marshal(mcp.InputRequestMap{questionID: elicitation(r.answer.Asked)})
		if err != nil {
			return nil, err
		}
		kind = "input_required"
		b = append(append(b, `"inputRequests":`...), asked...)
		b = appendString(append(b, `,"requestState":`...), r.answer.Asked.State)
	} else {
		b = appendString(append(b, `"content":[{"type":"text","text":`...), r.answer.JSON)
		b = strconv.AppendBool(append(b, `}],"isError":`...), !r.answer.Success())
	}
	if r.typed {
		b = append(append(append(b, `,"resultType":"`...), kind...), '"')
	}
	return append(b, '}'), nil
}

// appendString writes s as a JSON string. It leaves <, > and & as they are: answers are
// full of them.
func appendString[T ~string | ~[]byte](b []byte, s T) []byte {
	w := bytes.NewBuffer(b)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(string(s)) // a string always has a JSON form
	return bytes.TrimSuffix(w.Bytes(), []byte{'\n'})
}
