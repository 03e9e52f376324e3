package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// call answers one tools/call.
func (t *tool) call(ctx context.Context, req *mcp.CallToolRequest, c request) (mcp.Result, error) {
	if req.Params.Name != toolName {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", req.Params.Name)}
	}
	r := gateway.Request{Principal: c.principal(), Ticket: c.ticket(), CanAsk: asks(req), Reply: replyOf(req.Params), Progress: progressTo(ctx, req),
		Pause: func() func(context.Context) bool { return c.pause(func() {}) }}
	line, fault := commandOf(req.Params.Arguments)
	r.Line = line
	if fault != "" {
		r.Refusal = &discovery.Fault{Code: discovery.ValidationError, Message: "The call's arguments cannot be used: " + fault + ".",
			Hint: `Call the tool with one argument, "command", that holds the command string.`, Examples: []string{"help"}}
	}
	a, again := t.server.Gateway.Do(ctx, r), callsAgain(req.Session)
	if a.Asked != nil && r.CanAsk && !again {
		r.CanAsk = false
		r.Reply, r.Ticket = ask(ctx, req, c, a.Asked)
		defer r.Ticket.Finish()
		a = t.server.Gateway.Do(ctx, r)
	}
	if len(a.Receipts) > 0 {
		c.delivered(a.Delivered)
	}
	return &callResult{answer: a, question: a.Asked != nil && r.CanAsk, typed: again}, nil
}

// commandOf returns the command string of a call's arguments, or what is wrong with
// them. It is exact where the schema is lax: names count with their case, and a
// name that the tool does not have or that comes twice is a fault. Nobody's
// "dry_run": true beside a command shall be ignored silently.
func commandOf(arguments json.RawMessage) (command, fault string) {
	const (
		absent  = `the argument "command" is missing`
		wrong   = `the argument "command" is not a string`
		unknown = `the tool has only the argument "command"; options belong in its string`
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
