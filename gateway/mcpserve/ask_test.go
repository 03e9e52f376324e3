package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
)

// eras are the protocols in which a person can be asked, the last one without a
// session.
var eras = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// connect starts Server.Stdio and the library's own client, which both end with the
// test.
func connect(t *testing.T, g Gateway, era string, o mcp.ClientOptions) (c *mcp.ClientSession, hangUp func()) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = (&Server{Gateway: g, Principal: gateway.Principal{Name: "agent"}, Name: "test", Version: "1"}).Stdio(t.Context(), inR, outW)
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &o).Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.InitializeResult().ProtocolVersion; era != "2026-07-28" && got != era {
		t.Fatalf("the protocol is %s", got)
	}
	hangUp = func() {
		_, _ = inW.Close(), outR.Close()
		<-served
	}
	t.Cleanup(func() { _ = c.Close(); hangUp() })
	return c, hangUp
}

func calling(t *testing.T, c *mcp.ClientSession, p *mcp.CallToolParams) (storeAnswer, *mcp.CallToolResult) {
	t.Helper()
	p.Name = "cli"
	r, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var a storeAnswer
	if r.NeedsInput() {
		return a, r
	}
	if len(r.Content) != 1 {
		t.Fatalf("%d contents", len(r.Content))
	}
	if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &a); err != nil || r.IsError == a.Success {
		t.Fatalf("isError %v of %+v, %v", r.IsError, a, err)
	}
	return a, r
}

func cli(command string) map[string]any { return map[string]any{"command": command} }

func TestAPersonIsAsked(t *testing.T) {
	for _, era := range eras {
		for name, c := range map[string]struct {
			answer      mcp.ElicitResult
			code, heard string
			audited     string
		}{
			"accept":         {mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, "", "m7 1", "person via client true accepted "},
			"accept, bare":   {mcp.ElicitResult{Action: "accept"}, "", "m7 1", "person via client true accepted "},
			"decline":        {mcp.ElicitResult{Action: "decline"}, "PERMISSION_DENIED", "m7 2", "person via client false declined PERMISSION_DENIED"},
			"cancel":         {mcp.ElicitResult{Action: "cancel"}, "APPROVAL_REQUIRED", "m7 0", "agent true not_answered APPROVAL_REQUIRED"},
			"something else": {mcp.ElicitResult{Action: "ACCEPT"}, "APPROVAL_REQUIRED", "m7 0", "agent true not_answered APPROVAL_REQUIRED"},
		} {
			bubble(t, era+" "+name, func(t *testing.T) {
				d, g := newFakeStore(t, gateway.Options{})
				var shown []string
				client, hangUp := connect(t, g, era, mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = append(shown, r.Params.Mode+" "+r.Params.Message)
					return &c.answer, nil
				}})
				a, _ := calling(t, client, &mcp.CallToolParams{Arguments: cli("do ask --n 7")})
				if string(a.Error.Code) != c.code {
					t.Errorf("answered %+v", a)
				}
				if !slices.Equal(shown, []string{"form Matter 7?"}) {
					t.Errorf("shown %q", shown)
				}
				d.wantReplies(t, c.heard+" person via client")
				if !slices.Equal(d.opened, []int{7}) {
					t.Errorf("opened %d", d.opened)
				}
				d.wantRecords(t, "agent true asked APPROVAL_REQUIRED", c.audited)
				hangUp()
			})
		}
	}
}

// A client that fails to ask has no answer. The stateless one gives up by itself.
func TestAClientThatCannotAskAfterAll(t *testing.T) {
	for _, era := range eras {
		bubble(t, era, func(t *testing.T) {
			d, g := newFakeStore(t, gateway.Options{})
			client, hangUp := connect(t, g, era, mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return nil, errors.New("nobody is here")
			}})
			if era == "2026-07-28" {
				if _, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "cli", Arguments: cli("do ask")}); err == nil {
					t.Error("the client has an answer")
				}
			} else if a, _ := calling(t, client, &mcp.CallToolParams{Arguments: cli("do ask")}); a.Error.Code != "APPROVAL_REQUIRED" {
				t.Errorf("answered %+v", a)
			}
			if heard := d.replies(); slices.ContainsFunc(heard, func(s string) bool { return !strings.Contains(s, " 0 ") }) {
				t.Errorf("heard %q", heard)
			}
			hangUp()
		})
	}
}

func TestOnlyAClientThatCanShowAFormIsAsked(t *testing.T) {
	never := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, errors.New("asked")
	}
	for _, era := range eras {
		for name, o := range map[string]mcp.ClientOptions{
			"silent":   {},
			"url only": {ElicitationHandler: never, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}},
		} {
			bubble(t, era+" "+name, func(t *testing.T) {
				d, g := newFakeStore(t, gateway.Options{})
				client, hangUp := connect(t, g, era, o)
				if a, _ := calling(t, client, &mcp.CallToolParams{Arguments: cli("do ask")}); a.Error.Code != "APPROVAL_REQUIRED" {
					t.Errorf("answered %+v", a)
				}
				d.wantRecords(t, "agent true  APPROVAL_REQUIRED")
				hangUp()
			})
		}
	}
}

// A question is no outcome yet: it says neither what is in the answer nor whether
// that is an error.
func TestTheQuestionOfAStatelessClientOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := newFakeStore(t, gateway.Options{})
		s := startSession(t, g, Server{Name: "test", Version: "1"})
		s.send(strings.Replace(modernLine(1, "do ask --n 3"), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1))
		var m struct {
			Result map[string]json.RawMessage
		}
		got := s.one()
		if err := json.Unmarshal([]byte(got), &m); err != nil {
			t.Fatal(err)
		}
		want := `{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"Matter 3?","requestedSchema":` + questionSchema + `}}}`
		if r := m.Result; string(r["inputRequests"]) != want || string(r["resultType"]) != `"input_required"` || r["content"] != nil || r["isError"] != nil || r["requestState"] == nil {
			t.Errorf("got %s", got)
		}
		for _, response := range []string{`{"roots":[]}`, `{"role":"user","content":{"type":"text","text":"accept"},"model":"m"}`, `{"action":"accept "}`} { // none is a yes
			s.send(strings.Replace(modernLine(2, "do ask --n 3"), `"params":{`, `"params":{"requestState":`+string(m.Result["requestState"])+`,"inputResponses":{"approval":`+response+`},`, 1))
			if got := codes(t, []string{s.one()}); !slices.Equal(got, []string{"2 APPROVAL_REQUIRED"}) {
				t.Errorf("%s: %q", response, got)
			}
		}
		if heard := d.replies(); !slices.Equal(heard, slices.Repeat([]string{"m3 0 person via client"}, 3)) {
			t.Errorf("heard %q", heard)
		}
	})
}

// byHand is a stateless client that shows its program the question.
func byHand(t *testing.T, g Gateway) (client *mcp.ClientSession, hangUp func()) {
	t.Helper()
	return connect(t, g, "2026-07-28", mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, errors.New("unused") }})
}

func accepted() mcp.InputResponseMap {
	return mcp.InputResponseMap{questionID: &mcp.ElicitResult{Action: "accept"}}
}

func TestAStatelessClientBringsTheStateBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := newFakeStore(t, gateway.Options{})
		client, hangUp := byHand(t, g)
		_, first := calling(t, client, &mcp.CallToolParams{Arguments: cli("do ask --n 1")})
		_, second := calling(t, client, &mcp.CallToolParams{Arguments: cli("do ask --n 2")})
		if !first.NeedsInput() || first.RequestState == "" || first.RequestState == second.RequestState || len(first.Content) > 0 || len(first.InputRequests) != 1 {
			t.Fatalf("%+v", first)
		}
		for name, c := range map[string]struct {
			p     mcp.CallToolParams
			code  string
			heard string
		}{
			"swapped":           {mcp.CallToolParams{Arguments: cli("do ask --n 2"), RequestState: first.RequestState, InputResponses: accepted()}, "PERMISSION_DENIED", ""},
			"forged":            {mcp.CallToolParams{Arguments: cli("do ask --n 1"), RequestState: "bTE", InputResponses: accepted()}, "PERMISSION_DENIED", ""},
			"without its state": {mcp.CallToolParams{Arguments: cli("do ask --n 1"), InputResponses: accepted()}, "PERMISSION_DENIED", ""},
			"without an answer": {mcp.CallToolParams{Arguments: cli("do ask --n 1"), RequestState: first.RequestState}, "APPROVAL_REQUIRED", "m1 0 person via client"},
			"another's answer":  {mcp.CallToolParams{Arguments: cli("do ask --n 1"), RequestState: first.RequestState, InputResponses: mcp.InputResponseMap{"other": &mcp.ElicitResult{Action: "accept"}}}, "APPROVAL_REQUIRED", "m1 0 person via client"},
		} {
			a, _ := calling(t, client, &c.p)
			if heard := strings.Join(d.replies(), ","); string(a.Error.Code) != c.code || heard != c.heard {
				t.Errorf("%s: %+v, heard %q", name, a, heard)
			}
		}
		d.opened = nil
		for _, n := range []int{2, 1, 1} { // the command decides what a second one means
			state := []string{first.RequestState, second.RequestState}[n-1]
			a, _ := calling(t, client, &mcp.CallToolParams{Arguments: cli(fmt.Sprint("do ask --n ", n)), RequestState: state, InputResponses: accepted()})
			if heard := d.replies(); !a.Success || !slices.Equal(heard, []string{fmt.Sprintf("m%d 1 person via client", n)}) {
				t.Errorf("%d: %+v, heard %q", n, a, heard)
			}
		}
		if len(d.opened) != 0 {
			t.Errorf("an answer opened %d anew", d.opened)
		}
		hangUp()
	})
}

func TestAClientThatDiesWhileItsPersonIsAsked(t *testing.T) {
	for _, era := range eras {
		bubble(t, era, func(t *testing.T) {
			d, g := newFakeStore(t, gateway.Options{})
			asked, gone := make(chan struct{}), make(chan struct{})
			client, hangUp := connect(t, g, era, mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				close(asked)
				<-gone
				return &mcp.ElicitResult{Action: "accept"}, nil
			}})
			ended := make(chan error, 1)
			go func() {
				_, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "cli", Arguments: cli("do ask")})
				ended <- err
			}()
			<-asked
			hangUp()
			close(gone)
			if err := <-ended; err == nil {
				t.Error("the client has an answer")
			}
			if heard := d.replies(); slices.ContainsFunc(heard, func(s string) bool { return !strings.Contains(s, " 0 ") }) {
				t.Errorf("heard %q", heard)
			}
			if got := d.records("do ask"); got[0] != "agent true asked APPROVAL_REQUIRED" || era != "2026-07-28" && len(got) != 2 {
				t.Errorf("audited as %q", got)
			}
		})
	}
}
