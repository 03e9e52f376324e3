package faulty

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The codes of JSON-RPC 2.0 section 5.1.
const (
	rpcParse   = -32700
	rpcRequest = -32600
	rpcMethod  = -32601
	rpcParams  = -32602
	rpcVersion = -32022 // of MCP
)

// request is a JSON-RPC request or, without an id, a notification.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type rpcError struct {
	code    int
	message string
	data    object // nil for none
}

// protocols are the MCP versions that the handshake agrees on, the latest last.
var protocols = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// stateless is the MCP version that has no handshake: each request names it.
const stateless = "2026-07-28"

// session is one connection of a client.
type session struct {
	*Server
	out    io.Writer
	calls  int
	modern bool // the request being answered is of the stateless version
}

// Serve speaks MCP over a pair of streams, one message per line, until in ends, out
// cannot be written to, ctx ends, or the server's fault ends it. A fault that ends
// the server makes Serve return, nothing more, so that a process can end with it.
// Calls run one after another.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	n := &session{Server: s, out: out}
	if s.is(ExitsAtOnce) {
		return nil
	}
	if s.is(GarbageAtStart) {
		if err := n.write([]byte("Welcome to the example server!")); err != nil {
			return err
		}
	}
	r := bufio.NewReader(in)
	for ctx.Err() == nil {
		line, err := r.ReadBytes('\n')
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			goOn, err := n.message(ctx, trimmed)
			if err != nil || !goOn {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// message answers one message; goOn is false if the server ends with it.
func (n *session) message(ctx context.Context, line []byte) (goOn bool, err error) {
	var q request
	if !utf8.Valid(line) || !json.Valid(line) {
		if n.is(BadLineEnds) {
			return false, nil
		}
		return true, n.fail(nil, &rpcError{code: rpcParse, message: "the line is not JSON"})
	}
	if json.Unmarshal(line, &q) != nil || q.Version != "2.0" || q.Method == "" && q.ID == nil {
		return true, n.fail(q.ID, &rpcError{code: rpcRequest, message: "the line is not a JSON-RPC message"})
	}
	if q.Method == "" { // a response, and this server asks nothing
		return true, nil
	}
	if q.ID == nil {
		if n.is(NotificationAnswered) {
			return true, n.reply(nil, object{})
		}
		return true, nil
	}
	if e := n.version(q.Params); e != nil {
		return true, n.fail(q.ID, e)
	}
	switch q.Method {
	case "initialize":
		if n.is(NoInitialize) {
			return true, nil
		}
		return true, n.reply(q.ID, initialize(q.Params))
	case "server/discover":
		if n.modern {
			return true, n.reply(q.ID, n.cached(object{{"supportedVersions", append([]string{stateless}, protocols...)}, {"capabilities", object{{"tools", object{}}}}}))
		}
	case "ping":
		return true, n.reply(q.ID, object{})
	case "tools/list":
		return true, n.reply(q.ID, n.cached(object{{"tools", n.tools()}}))
	case "tools/call":
		return n.call(ctx, q)
	}
	if n.is(UnknownMethodAnswers) {
		return true, n.reply(q.ID, object{})
	}
	return true, n.fail(q.ID, &rpcError{code: rpcMethod, message: "there is no method " + q.Method})
}

func initialize(params json.RawMessage) object {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	agreed := protocols[len(protocols)-1]
	if json.Unmarshal(params, &p) == nil && slices.Contains(protocols, p.ProtocolVersion) {
		agreed = p.ProtocolVersion
	}
	return object{{"protocolVersion", agreed}, {"capabilities", object{{"tools", object{}}}},
		{"serverInfo", object{{"name", "example-acli"}, {"version", "1.0.0"}}}}
}

// tools lists the server's only tool (002 section 3.1).
func (s *Server) tools() []object {
	command := object{{"type", "string"}, {"description", "CLI command string (e.g., 'calendar events --today')"}}
	if s.is(OtherToolProperty) {
		command = command.with("description", "The command")
	}
	properties := object{{"command", command}}
	if s.is(ExtraToolProperty) {
		properties = append(properties, member{"timeout", object{{"type", "integer"}}})
	}
	input := object{{"type", "object"}, {"properties", properties}, {"required", []string{"command"}}}
	switch {
	case s.is(CommandOptional):
		input = input.without("required")
	case s.is(ToolSchemaAddition):
		input = append(input, member{"additionalProperties", false})
	}
	tool := object{{"name", "cli"}, {"description", "Execute CLI command. Run 'help' for available commands."}, {"inputSchema", input}}
	switch {
	case s.is(OtherToolName):
		tool = tool.with("name", "acli")
	case s.is(OtherDescription):
		tool = tool.with("description", "Runs a command.")
	case s.is(ToolOutputSchema):
		tool = append(tool, member{"outputSchema", object{{"type", "object"}}})
	case s.is(ExtraTool):
		return []object{tool, {{"name", "notes"}, {"description", "List notes."}, {"inputSchema", object{{"type", "object"}}}}}
	}
	return []object{tool}
}

// call answers a tools/call.
func (n *session) call(ctx context.Context, q request) (goOn bool, err error) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(q.Params, &p) != nil || p.Name != n.tools()[0].name() && !n.is(AnyToolName) {
		return true, n.fail(q.ID, &rpcError{code: rpcParams, message: "there is no such tool"})
	}
	if n.calls++; n.is(ExitsAfterOne) && n.calls > 1 {
		return false, nil
	}
	line, wrong := n.commandOf(p.Arguments)
	absent := !bytes.Contains(p.Arguments, []byte(`"command"`))
	switch {
	case n.is(CrashMissingCommand) && absent,
		n.is(CrashNull) && string(bytes.ReplaceAll(p.Arguments, []byte(" "), nil)) == `{"command":null}`:
		return false, nil
	case n.is(MissingCommandRuns) && absent:
		line, wrong = "help", ""
	}
	var a answer
	if wrong != "" {
		a.problem = &problem{code: "VALIDATION_ERROR", message: "Invalid argument: " + wrong + ".",
			hint: "Call the tool with one text, the command.", examples: []string{"help"}}
	} else {
		a = n.do(ctx, line)
	}
	unread := a.problem != nil && a.problem.code == "PARSE_ERROR"
	quote := unread && strings.Contains(a.problem.message, "not closed")
	switch {
	case n.is(Silent), n.is(SilentOnParseError) && quote:
		return true, nil
	case n.is(CrashOnOpenQuote) && quote, n.is(CrashOnLong) && len(line) > 5000:
		return false, nil
	case n.is(Huge) && line == "help":
		return true, n.flood(ctx, 64<<20)
	case n.is(Endless) && line == "help":
		return true, n.flood(ctx, -1)
	case n.is(FaultsAsRPC) && a.problem != nil:
		return true, n.fail(q.ID, &rpcError{code: -32000, message: a.problem.message})
	}
	return true, n.answer(ctx, q.ID, n.result(line, a))
}

func (o object) name() string {
	name, _ := o[0].value.(string)
	return name
}

// commandOf returns the command string of a call's arguments, or what is wrong with
// them.
func (s *Server) commandOf(arguments json.RawMessage) (line, wrong string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil || members == nil {
		return "", "there are no arguments"
	}
	raw, ok := members["command"]
	if s.is(CommandNameCase) && !ok {
		for name, value := range members {
			if strings.EqualFold(name, "command") {
				raw, ok = value, true
			}
		}
	}
	var list []string
	switch {
	case !ok:
		return "", "command is missing"
	case s.is(NumberCommandRuns) && raw[0] != '"':
		return string(raw), ""
	case s.is(ArrayCommandRuns) && json.Unmarshal(raw, &list) == nil && list != nil:
		return strings.Join(list, " "), ""
	case raw[0] != '"' || json.Unmarshal(raw, &line) != nil:
		return "", "command is not a string"
	case len(members) > 1 && !s.is(ExtraToolProperty):
		return "", "there is more than a command"
	}
	return line, ""
}

// answer writes the answer to a call, as the server's fault has it.
func (n *session) answer(ctx context.Context, id json.RawMessage, result object) error {
	switch {
	case n.is(WrongID):
		id = json.RawMessage(`987654321`)
	case n.is(GarbageBefore):
		if err := n.write([]byte("handling a call...")); err != nil {
			return err
		}
	case n.is(AnswersTwice):
		if err := n.reply(id, result); err != nil {
			return err
		}
	case n.is(SplitLines):
		b, err := plain(object{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}})
		if err != nil {
			return err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, b, "", " "); err != nil {
			return err
		}
		return n.write(indented.Bytes())
	case n.is(Trickles):
		b, err := plain(object{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}})
		if err != nil {
			return err
		}
		return n.trickle(ctx, b)
	}
	return n.reply(id, result)
}

// version reads which era of the protocol a request is of.
func (n *session) version(params json.RawMessage) *rpcError {
	var p struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // without _meta the version stays empty
	n.modern = p.Meta.Version == stateless
	if p.Meta.Version != "" && !n.modern && !slices.Contains(protocols, p.Meta.Version) {
		return &rpcError{code: rpcVersion, message: "there is no support for that protocol version",
			data: object{{"supported", append([]string{stateless}, protocols...)}, {"requested", p.Meta.Version}}}
	}
	return nil
}

// cached marks a result that a client of the stateless version may not keep.
func (n *session) cached(o object) object {
	if !n.modern {
		return o
	}
	return append(o, member{"ttlMs", 0}, member{"cacheScope", "private"})
}

func (n *session) reply(id json.RawMessage, result object) error {
	if n.is(StringIDAsNull) && bytes.HasPrefix(id, []byte(`"`)) {
		id = nil
	}
	if n.modern {
		result = append(result, member{"resultType", "complete"},
			member{"_meta", object{{"io.modelcontextprotocol/serverInfo", object{{"name", "example-acli"}, {"version", "1.0.0"}}}}})
	}
	return n.send(object{{"jsonrpc", "2.0"}, {"id", orNull(id)}, {"result", result}})
}

func (n *session) fail(id json.RawMessage, e *rpcError) error {
	o := object{{"code", e.code}, {"message", e.message}}
	if e.data != nil {
		o = append(o, member{"data", e.data})
	}
	return n.send(object{{"jsonrpc", "2.0"}, {"id", orNull(id)}, {"error", o}})
}

func orNull(id json.RawMessage) json.RawMessage {
	if id == nil {
		return json.RawMessage("null")
	}
	return id
}

func (n *session) send(o object) error {
	b, err := plain(o)
	if err != nil {
		return err
	}
	return n.write(b)
}

func (n *session) write(line []byte) error {
	_, err := n.out.Write(append(line, '\n'))
	return err
}

// flood writes a result of so many bytes, or without an end.
func (n *session) flood(ctx context.Context, size int) error {
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	if _, err := io.WriteString(n.out, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`); err != nil {
		return err
	}
	for sent := 0; sent < size || size < 0; sent += len(chunk) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := n.out.Write(chunk); err != nil {
			return err
		}
	}
	_, err := io.WriteString(n.out, "\"}]}}\n")
	return err
}

// trickle writes a message byte by byte, one in a second.
func (n *session) trickle(ctx context.Context, b []byte) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := range b {
		if _, err := n.out.Write(b[i : i+1]); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	_, err := n.out.Write([]byte("\n"))
	return err
}
