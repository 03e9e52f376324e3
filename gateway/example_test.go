package gateway_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
)

type greetArgs struct {
	Name  string `json:"name" acli:"positional" jsonschema:"minLength=1,maxLength=40" jsonschema_description:"Whom to greet"`
	Times int    `json:"times,omitempty" jsonschema:"minimum=1,maximum=3,default=1" jsonschema_description:"How often"`
}

type pingArgs struct{}

type text struct {
	Text string `json:"text"`
}

// twoCommands is a gateway that has nothing to do with mail.
func twoCommands() *gateway.Gateway {
	greet := discovery.New(discovery.Spec{Path: "greet", Summary: "Greet someone", Effect: discovery.Read, Examples: []string{"greet Ann"}},
		func(_ context.Context, _ *discovery.Call, a *greetArgs) (text, error) {
			return text{strings.Repeat("Hello "+a.Name+". ", a.Times)}, nil
		})
	ping := discovery.New(discovery.Spec{Path: "ping", Summary: "Answer", Effect: discovery.Read, Examples: []string{"ping"}},
		func(context.Context, *discovery.Call, *pingArgs) (text, error) { return text{"pong"}, nil })
	registry, err := discovery.NewRegistry(discovery.Info{Name: "two", Version: "1"}, greet, ping)
	if err != nil {
		panic(err)
	}
	g, err := gateway.New(gateway.Options{Registry: registry, Profile: gateway.FullProfile()})
	if err != nil {
		panic(err)
	}
	return g
}

func Example() {
	g := twoCommands()
	for _, line := range []string{"greet Ann --times 2 --fields text", "greet Ann --times 4"} {
		fmt.Println(string(g.Do(context.Background(), gateway.Request{Line: line}).JSON))
	}
	// Output:
	// {"success":true,"data":{"text":"Hello Ann. Hello Ann. "}}
	// {"success":false,"error":{"code":"VALIDATION_ERROR","message":"--times must be between 1 and 3.","hint":"Usage: greet NAME [--times 1]","examples":["greet Ann"]}}
}

// Served over standard input and output. A program that does so for a client sets
// os.Stdout to os.Stderr, so that nothing else is written there.
func Example_stdio() {
	server := mcpserve.Server{Gateway: twoCommands(), Name: "two", Version: "1"}
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"client","version":"1"}}}`)
	err := server.Stdio(context.Background(), io.NopCloser(in), stays{os.Stdout}) // os.Stdin
	if err != nil {
		panic(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}},"protocolVersion":"2025-06-18","serverInfo":{"name":"two","version":"1"}}}
}

// stays is an output that outlasts the server, which closes what it writes to.
type stays struct{ io.Writer }

func (stays) Close() error { return nil }
