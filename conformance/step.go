package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asking runs the steps of one instance.
type asking struct {
	r       *runner
	c       *Case
	vars    scope
	own     *session
	version string // of own
	bare    bool
	isOwn   bool
}

func (k *asking) close() {
	if k.own != nil {
		k.own.conn.Close()
		k.own = nil
	}
}

// session returns the session of a step.
func (k *asking) session(ctx context.Context, s *Step) (*session, answer) {
	switch s.Session {
	case "shared":
		k.close()
		k.isOwn = false
	case "fresh", "bare":
		k.close()
		k.isOwn, k.bare, k.version = true, s.Session == "bare", s.Protocol
		if k.version == "" {
			k.version = defaultVersion
		}
	}
	if !k.isOwn {
		return k.r.sharedSession(ctx)
	}
	if k.own != nil && k.own.dead {
		k.close()
	}
	if k.own != nil {
		return k.own, answer{outcome: OutcomeResult}
	}
	own, a := k.r.open(ctx, k.version, k.bare)
	k.own = own
	return own, a
}

// step sends a message and judges the answer. An error is a fault of the case.
func (k *asking) step(ctx context.Context, s *Step) (*Finding, error) {
	a, sent, err := k.exchange(ctx, s)
	if err != nil {
		return nil, err
	}
	finding := &Finding{Sent: clip(strings.ReplaceAll(sent, "\x00", "\\0"), 300), Got: k.r.excerpt(a.doc)}
	if !slices.Contains(s.Outcome, a.outcome) {
		k.r.countLost(a)
		finding.Detail = fmt.Sprintf("the outcome is %s, expected %s", a.outcome, strings.Join(s.Outcome, " or "))
		if a.detail != "" {
			finding.Detail += ": " + a.detail
		}
		return finding, nil
	}
	if a.outcome == OutcomeLost || a.outcome == OutcomeNone {
		return nil, nil
	}
	if s.Expect != nil {
		miss, err := k.c.judge(s.Expect, a.doc, k.vars)
		if err != nil {
			return nil, err
		}
		if len(miss) > 0 {
			finding.Mismatches = miss
			return finding, nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Save)) {
		v, ok := pointer(k.c.inForm(a.doc), s.Save[name])
		if !ok {
			finding.Mismatches = []Mismatch{{At: s.Save[name], Want: "a value to save as " + name, Got: "nothing"}}
			return finding, nil
		}
		k.vars[name] = v
	}
	return nil, nil
}

// exchange sends the message of a step.
func (k *asking) exchange(ctx context.Context, s *Step) (a answer, sent string, err error) {
	r := k.r
	if s.Client != "" {
		sent = "(an MCP client: tools/list, then the command help)"
		a = r.ask(ctx, nil, "help", false, true, func(ctx context.Context) answer { return r.stockClient(ctx, s) })
		return a, sent, nil
	}
	params, err := k.vars.fillJSON(s.params())
	if err != nil {
		return a, "", err
	}
	command, ofTool := "", false
	var do func(context.Context, *session) answer
	switch {
	case s.Command != nil:
		if command, err = s.Command.expand(k.vars); err != nil {
			return a, "", err
		}
		sent, ofTool = command, true
		do = func(ctx context.Context, in *session) answer { return in.tool(ctx, commandArguments(command)) }
	case s.Arguments != nil:
		sent, ofTool = "arguments "+string(params), true
		if bytes.Equal(params, []byte("null")) {
			params = nil
		}
		do = func(ctx context.Context, in *session) answer { return in.tool(ctx, params) }
	case s.Request != nil:
		sent = s.Request.Method + " " + string(params)
		do = func(ctx context.Context, in *session) answer { return in.request(ctx, s.Request.Method, params) }
	case s.Notify != nil:
		sent = "notification " + s.Notify.Method + " " + string(params)
		do = func(ctx context.Context, in *session) answer { return in.notify(ctx, s.Notify.Method, params) }
	case s.Line != nil:
		text, err := s.Line.expand(k.vars)
		if err != nil {
			return a, "", err
		}
		sent = "line " + text
		do = func(ctx context.Context, in *session) answer {
			if err := in.conn.Send(ctx, []byte(text)); err != nil {
				return in.broken(err)
			}
			return in.await(ctx, "", true)
		}
	}
	in, a := k.session(ctx, s)
	if in == nil {
		a.doc = map[string]any{}
		return a, sent, nil
	}
	limited := true
	if s.Expect != nil {
		b, _ := json.Marshal(s.Expect)
		limited = !bytes.Contains(b, []byte("RATE_LIMITED"))
	}
	return r.ask(ctx, in, command, ofTool, limited, func(ctx context.Context) answer { return do(ctx, in) }), sent, nil
}

// params returns the params of a step without a text.
func (s *Step) params() json.RawMessage {
	switch {
	case s.Request != nil:
		return s.Request.Params
	case s.Notify != nil:
		return s.Notify.Params
	}
	return s.Arguments
}

// fillJSON fills the placeholders in the strings of a JSON text. Without any, the
// text stays as it is, byte for byte.
func (v scope) fillJSON(raw json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(raw, []byte("${")) {
		return raw, nil
	}
	value, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if value, err = v.fill(value); err != nil {
		return nil, err
	}
	return marshalPlain(value)
}

// notify sends a notification and then a request that shows whether the notification
// was answered.
func (s *session) notify(ctx context.Context, method string, params json.RawMessage) answer {
	if err := s.send(ctx, s.message(map[string]any{"method": method}, params)); err != nil {
		return s.broken(err)
	}
	before := len(s.faults)
	a := s.request(ctx, "tools/list", json.RawMessage("{}"))
	switch {
	case a.outcome == OutcomeLost || a.id == nil:
		return a
	case slices.ContainsFunc(s.faults[before:], func(f string) bool { return strings.HasPrefix(f, strayResponse) }):
		return a // the notification was answered
	}
	return answer{outcome: OutcomeNone, doc: map[string]any{}}
}

func (r *runner) clientTransport(ctx context.Context) (mcp.Transport, func(), error) {
	if own, ok := r.target.(clientTransport); ok {
		return own.clientTransport()
	}
	conn, err := r.target.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return client{conn}, conn.Close, nil
}

// stockClient has the client of the MCP library talk to the server: it shows how a
// common client reads an answer.
func (r *runner) stockClient(ctx context.Context, s *Step) answer {
	transport, stop, err := r.clientTransport(ctx)
	if err != nil {
		return lost("no fresh server: %v", err)
	}
	defer stop()
	version := s.Protocol
	if version == "" {
		version = map[string]string{"initialize": defaultVersion, "stateless": statelessVersion}[s.Client]
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "acli-conformance", Version: "1"}, nil)
	connected, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return lost("the client cannot connect: %v", err)
	}
	defer func() { stop(); _ = connected.Close() }()
	if agreed := connected.InitializeResult().ProtocolVersion; s.Client == "stateless" && agreed < statelessVersion {
		return lost("the client had to fall back to protocol %s", agreed)
	}
	tools, err := connected.ListTools(ctx, nil)
	if err != nil {
		return lost("the client cannot list the tools: %v", err)
	}
	if !slices.ContainsFunc(tools.Tools, func(t *mcp.Tool) bool { return t.Name == r.o.Tool }) {
		return lost("the client sees no tool %s", r.o.Tool)
	}
	result, err := connected.CallTool(ctx, &mcp.CallToolParams{Name: r.o.Tool, Arguments: map[string]any{"command": "help"}})
	if err != nil {
		return lost("the client cannot call the tool: %v", err)
	}
	b, err := json.Marshal(result)
	if err != nil {
		return lost("the client cannot read the answer: %v", err)
	}
	v, err := decode(b)
	if err != nil {
		return lost("the client cannot read the answer: %v", err)
	}
	// The server is not responsible for members that the library drops or adds.
	if m, ok := v.(map[string]any); ok {
		m["isError"] = result.IsError
	}
	return (&session{}).response(map[string]any{"result": v}, len(b))
}
