package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
)

// maxFirstCalls bounds what a client reads before its first errand, in bytes on the wire.
const maxFirstCalls = 5200

// TestTheFirstCallsAreSmall counts the answers to initialize, tools/list and help.
func TestTheFirstCallsAreSmall(t *testing.T) {
	h := demoHouse(t)
	h.Principal = gateway.Principal{Name: "agent"}
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"cli","arguments":{"command":"help"}}}
`)
	var out bytes.Buffer
	if err := newProcess(t).mcpServer(h.House, false).Stdio(t.Context(), io.NopCloser(in), nopCloser{&out}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"title":"Postern: a person's mail"`, `"instructions":"This is a person's mail.`, `"name":"cli"`, `mail thread`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	if n := out.Len(); n > maxFirstCalls {
		t.Errorf("%d bytes, more than %d: %s", n, maxFirstCalls, out.String())
	}
}
