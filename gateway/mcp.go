package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The one tool of an ACLI server, as 002 section 3.1 has it.
const (
	toolName        = "cli"
	toolDescription = `Execute CLI command. Run 'help' for available commands.`
	toolSchema      = `{"type":"object","properties":{"command":{"type":"string","description":"CLI command string (e.g., 'calendar events --today')"}},"required":["command"]}`
)

// MaxInstructions is the most bytes that MCPOptions.Instructions may have. A
// client puts them into every conversation.
const MaxInstructions = 400

// MCPCall is one call of the tool.
type MCPCall struct {
	// Command is the command string, and HasCommand whether there is one. Without
	// one, Fault says what is wrong with the call's arguments in a sentence that
	// can be shown, without a full stop and without anything of the arguments.
	Command    string
	HasCommand bool
	Fault      string

	// Progress tells the client how far the call is; nil if it did not ask. Each
	// call must report more than the one before; a total of 0 is unknown. It is
	// safe for concurrent use and does nothing once the call is cancelled.
	Progress func(done, total float64, message string)

	// CanAsk reports whether a question in the result can be put to a person.
	CanAsk bool
	// Reply is what the client brings back for a question of an earlier call with
	// the same command string; nil if it brings nothing.
	Reply *MCPReply
}

// MCPResult is what a call returns: the text of its one content and whether it
// reports a failure.
type MCPResult struct {
	Text    string
	IsError bool

	// Delivered is called once the result has been written to the client; nil for
	// nobody. Over a transport that does not tell, it is called when the result goes
	// there.
	Delivered func()

	// Question, where CanAsk is set, is asked in place of the text. The call comes
	// again with the Reply, or never.
	Question *MCPQuestion
}

// CallFunc answers one call of the tool. It stops when ctx ends. Calls come
// concurrently. A panic becomes the result that MCPOptions.PanicResult makes.
type CallFunc func(ctx context.Context, call MCPCall) MCPResult

// MCPOptions configure an MCP server. The zero value is usable but nameless.
type MCPOptions struct {
	Name, Version string

	// Instructions tell a client's model what the server is for, in at most
	// MaxInstructions bytes.
	Instructions string

	// ReadOnly marks the tool as one that changes nothing, so that a person can let
	// a client call it without asking. It is a promise, not a check.
	ReadOnly bool

	// PanicResult makes the answer to a call that panicked. nil answers with a
	// JSON-RPC internal error.
	PanicResult func(v any) MCPResult

	MaxInFlight int           // calls at work at once in ServeStdio; 0 means 64
	MaxQueued   int           // requests waiting in ServeStdio, in 16 MiB at most; 0 means 4096
	Grace       time.Duration // for calls at work when ServeStdio is told to stop; 0 means 5 s

	Logger *slog.Logger // nil discards; never given a command's text
}

func (o *MCPOptions) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// NewMCPServer makes an MCP server with the one tool "cli" (002 section 3.1), whose
// calls it gives to call. It declares the tools capability alone and refuses the
// methods of every other. It serves clients that start with initialize (protocol
// 2024-11-05 to 2025-11-25) and those that do not (2026-07-28), each as it comes,
// over any transport and any number of sessions.
//
// It panics if the instructions are too long, which no input decides.
func NewMCPServer(call CallFunc, o MCPOptions) *mcp.Server {
	if len(o.Instructions) > MaxInstructions {
		panic(fmt.Sprintf("gateway: MCP instructions of %d bytes, at most %d", len(o.Instructions), MaxInstructions))
	}
	s := mcp.NewServer(&mcp.Implementation{Name: o.Name, Version: o.Version}, &mcp.ServerOptions{
		Instructions: o.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// The tool is the same for the life of a server, but may be different for
		// another person.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		// No logger: what the library logs of a fault may hold what was said.
	})
	h := &toolHandler{call: call, panicResult: o.PanicResult, log: o.logger()}
	s.AddTool(&mcp.Tool{Name: toolName, Description: toolDescription, InputSchema: json.RawMessage(toolSchema)}, h.handle)
	s.AddReceivingMiddleware(h.middleware(toolDefinition(o.ReadOnly)))
	return s
}

// toolDefinition is the tool as it goes over the wire. The library would order its
// fields by name.
func toolDefinition(readOnly bool) json.RawMessage {
	b := []byte(`{"name":`)
	b = appendString(b, toolName)
	b = append(b, `,"description":`...)
	b = appendString(b, toolDescription)
	b = append(b, `,"inputSchema":`+toolSchema...)
	if readOnly {
		b = append(b, `,"annotations":{"readOnlyHint":true}`...)
	}
	return append(b, '}')
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

func methodNotFound() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has no such method; it has tools/list and tools/call"}
}

// A ticketSource is a connection that gives requests tickets as they arrive. The
// library starts handlers side by side in no certain order, and hands them nothing
// of the transport's but the extra of the request and the values of the context
// that the connection was made with, where the source is found.
type ticketSource interface {
	ticketOf(*mcp.RequestExtra) *Ticket
	// pause takes a call out of those at work until resume, while it waits for
	// something outside. giveUp is called, perhaps at once, when nothing more can come
	// from the client. resume waits for a place among those at work; it is not ok when
	// ctx ends first, and the call has none then. It must be called, and once.
	pause(extra *mcp.RequestExtra, giveUp func()) (resume func(ctx context.Context) (ok bool))
}

// A receiptSource is a ticketSource that can tell when the answer to a call has been
// written, upon which it calls done.
type receiptSource interface {
	delivered(extra *mcp.RequestExtra, done func())
}

type ticketSourceKey struct{}

type toolHandler struct {
	call        CallFunc
	panicResult func(any) MCPResult
	log         *slog.Logger
	open        openQuestions
}

// middleware stands before everything the library does with a request.
func (h *toolHandler) middleware(tool json.RawMessage) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
			defer func() {
				if v := recover(); v != nil {
					h.logPanic(v)
					res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
				}
			}()
			if !strings.HasPrefix(method, "notifications/") && !served(method) {
				return nil, methodNotFound()
			}
			if source, ok := ctx.Value(ticketSourceKey{}).(ticketSource); ok && method == "tools/call" {
				ticket := source.ticketOf(req.GetExtra())
				if ticket == nil { // rather no effect than one out of turn
					h.log.Error("call without a ticket")
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
				}
				defer ticket.Finish()
				ctx = context.WithValue(WithTicket(ctx, ticket), pauseKey{}, pauseFunc(func() func(context.Context) bool {
					return source.pause(req.GetExtra(), func() {})
				}))
			}
			res, err = next(ctx, method, req)
			if err != nil {
				return nil, err
			}
			switch r := res.(type) {
			case *mcp.ListToolsResult:
				return listResult{r, tool}, nil
			case *mcp.CallToolResult:
				return callResult{r}, nil
			}
			return res, nil
		}
	}
}

// logPanic logs where it happened. The value is not logged as such, since it may
// carry what the call was working on.
func (h *toolHandler) logPanic(v any) {
	h.log.Error("call panicked", "panic", panicText(v), "stack", string(debug.Stack()))
}

func (h *toolHandler) handle(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, err error) {
	if h.panicResult != nil {
		defer func() {
			if v := recover(); v != nil {
				h.logPanic(v)
				res, err = toolResult(h.panicResult(v)), nil
			}
		}()
	}
	call := MCPCall{Progress: mcpProgress(ctx, req), CanAsk: asks(req), Reply: replyOf(req.Params)}
	call.Command, call.Fault = commandOf(req.Params.Arguments)
	call.HasCommand = call.Fault == ""
	r := h.call(ctx, call)
	if r.Question == nil || !call.CanAsk {
		announce(ctx, req.Extra, r.Delivered)
		return toolResult(r), nil
	}
	if callsAgain(req.Session) {
		return questionResult(r.Question), nil
	}
	ctx, call.Reply = h.ask(ctx, req, r.Question)
	defer ticketOf(ctx).Finish()
	call.CanAsk = false
	r = h.call(ctx, call)
	announce(ctx, req.Extra, r.Delivered)
	return toolResult(r), nil
}

// announce has done called when the answer of a request has been written, as far as
// its connection can tell.
func announce(ctx context.Context, extra *mcp.RequestExtra, done func()) {
	if done == nil {
		return
	}
	if source, ok := ctx.Value(ticketSourceKey{}).(receiptSource); ok {
		source.delivered(extra, done)
		return
	}
	done()
}

func toolResult(r MCPResult) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Text}}, IsError: r.IsError}
}

// commandOf returns the command string of a call's arguments, or what is wrong with
// them. It is exact where the schema is lax: names count with their case, and a
// name that the tool does not have or that comes twice is a fault. Nobody's
// "dry_run": true beside a command shall be ignored silently.
func commandOf(arguments json.RawMessage) (command, fault string) {
	const (
		absent  = `the argument "command" is missing`
		wrong   = `the argument "command" is not a string`
		unknown = `the tool has the argument "command" alone; options belong into its string`
	)
	d := json.NewDecoder(bytes.NewReader(arguments))
	switch start, err := d.Token(); {
	case err != nil || start == nil: // nothing, or null
		return "", absent
	case start != json.Delim('{'):
		return "", "the arguments are not an object"
	}
	found := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return "", "the arguments are not valid JSON"
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", "the arguments are not valid JSON"
		}
		switch {
		case name != "command":
			fault = unknown
		case found:
			return "", `the argument "command" is there twice`
		default:
			found = true
			if value[0] != '"' || json.Unmarshal(value, &command) != nil {
				return "", wrong
			}
		}
	}
	switch {
	case fault != "":
		return "", fault
	case !found:
		return "", absent
	}
	return command, ""
}

// listResult is the answer to tools/list with the tool in our own words.
type listResult struct {
	*mcp.ListToolsResult
	tool json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (r listResult) MarshalJSON() ([]byte, error) {
	b, err := marshal(r.ListToolsResult)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	fields["tools"] = append(append(json.RawMessage{'['}, r.tool...), ']')
	return marshal(fields)
}

// callResult is the answer to tools/call. It always says isError (002 section 5.3),
// which the library leaves out when false, and writes the text as it is: the library
// makes six bytes of each of the angle brackets that answers are full of.
type callResult struct{ *mcp.CallToolResult }

// MarshalJSON implements json.Marshaler.
func (r callResult) MarshalJSON() ([]byte, error) {
	if r.InputRequests != nil {
		return r.question()
	}
	rest := *r.CallToolResult
	text, ok := plainText(rest.Content)
	if ok {
		rest.Content = nil
	}
	b, err := marshal(&rest)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	if ok {
		content := append(make([]byte, 0, len(text)+len(text)/8+64), `[{"type":"text","text":`...)
		fields["content"] = append(appendString(content, text), "}]"...)
	}
	fields["isError"] = strconv.AppendBool(nil, r.IsError)
	return marshal(fields)
}

// question is the result that asks for input: it is no outcome yet, so it has
// neither content nor isError.
func (r callResult) question() ([]byte, error) {
	b, err := marshal(r.CallToolResult)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	delete(fields, "content")
	delete(fields, "isError")
	return marshal(fields)
}

func plainText(content []mcp.Content) (string, bool) {
	if len(content) != 1 {
		return "", false
	}
	t, ok := content[0].(*mcp.TextContent)
	if !ok || t.Meta != nil || t.Annotations != nil {
		return "", false
	}
	return t.Text, true
}
