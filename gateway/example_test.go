package gateway_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

type greetArgs struct {
	Name  string `json:"name" acli:"positional" jsonschema:"minLength=1,maxLength=40" jsonschema_description:"Whom to greet"`
	Times int    `json:"times,omitempty" jsonschema:"minimum=1,maximum=3,default=1" jsonschema_description:"How often"`
}

type pingArgs struct{}

type text struct {
	Text string `json:"text"`
}

// A server of two commands that has nothing to do with mail.
func Example() {
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
	for _, line := range []string{"greet Ann --times 2 --fields text", "greet Ann --times 4"} {
		fmt.Println(strings.Split(string(g.Do(context.Background(), gateway.Request{Line: line}).JSON), `,"_meta"`)[0])
	}
	// Output:
	// {"success":true,"data":{"text":"Hello Ann. Hello Ann. "}
	// {"success":false,"error":{"code":"VALIDATION_ERROR","message":"--times must be between 1 and 3.","hint":"Run 'help greet' for its arguments.","examples":["greet Ann"]}
}
