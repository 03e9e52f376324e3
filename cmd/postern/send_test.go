package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
)

// sendingHouse is a whole house on the sample servers, whose account sends to
// @example.com in the given mode.
func sendingHouse(t *testing.T, mode mail.Mode) (admin *testHouse, servers *demo.Servers) {
	t.Helper()
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Mode, a.AllowOut = mode, mail.AllowList{Enabled: true, Entries: []string{"@example.com"}}
	v.add(t, a, servers.Password.Reveal())
	if err := v.opened(t, 0).SetSetting(t.Context(), "ask_in_client", "on"); err != nil {
		t.Fatal(err)
	}
	return newHouse(t, v), servers
}

// client is the library's own MCP client, served as an agent over pipes.
func (h *testHouse) client(t *testing.T, era string, o mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server := &mcpserve.Server{Gateway: h.Gateway, Principal: gateway.Principal{Name: "agent"}, Name: "postern"}
		_ = server.Stdio(t.Context(), inR, outW)
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &o).Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_, _ = inW.Close(), outR.Close()
		<-ended
	})
	return c
}

type sending struct {
	answer
	Data struct {
		ID       string `json:"outbox_id"`
		State    string `json:"state"`
		Decided  string `json:"decided_by"`
		Replayed bool   `json:"replayed"`
		Digest   string `json:"digest"`
		Sent     string `json:"sent_copy"`
		Messages []struct {
			ID    string `json:"outbox_id"`
			State string `json:"state"`
		} `json:"messages"`
	} `json:"data"`
}

func call(t *testing.T, c *mcp.ClientSession, p *mcp.CallToolParams) (sending, *mcp.CallToolResult) {
	t.Helper()
	p.Name = "cli"
	r, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var s sending
	if !r.NeedsInput() {
		if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &s); err != nil {
			t.Fatal(err)
		}
	}
	return s, r
}

func command(line string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Arguments: map[string]any{"command": line}}
}

const lunch = "mail send --to 'Ann Lee <ann@example.com>' --bcc bob@example.com --subject 'Lunch on Friday' --body 'Shall we say noon?' --full"

// TestAPersonDecidesInTheirClient goes all the way: an agent's client, the gateway,
// the vault and a submission server.
func TestAPersonDecidesInTheirClient(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		for action, want := range map[string]struct {
			code, state string
			sent        int
		}{"accept": {"", "accepted", 1}, "decline": {"PERMISSION_DENIED", "rejected", 0}, "cancel": {"APPROVAL_REQUIRED", "waiting", 0}} {
			t.Run(era+" "+action, func(t *testing.T) {
				h, servers := sendingHouse(t, mail.Approve)
				var shown string
				c := h.client(t, era, mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = r.Params.Message
					if n := len(servers.Outgoing()); n != 0 {
						t.Errorf("%d messages left before the person answered", n)
					}
					return &mcp.ElicitResult{Action: action, Content: map[string]any{"decision": "approve"}}, nil
				}})
				s, _ := call(t, c, command(lunch))
				if string(s.Error.Code) != want.code || len(servers.Outgoing()) != want.sent {
					t.Errorf("%+v, %d sent", s, len(servers.Outgoing()))
				}
				for _, part := range []string{"To:      ann@example.com, called \"Ann Lee\"\n", "Bcc:     bob@example.com\n", "Subject: \"Lunch on Friday\"\n", "\n> Shall we say noon?\n"} {
					if !strings.Contains(shown, part) {
						t.Errorf("the question has no %q:\n%s", part, shown)
					}
				}
				if l, _ := call(t, c, command("outbox list --full")); len(l.Data.Messages) != 1 || l.Data.Messages[0].State != want.state {
					t.Errorf("the outbox has %+v", l.Data)
				}
				if want.sent == 1 {
					if m := servers.Outgoing()[0]; len(m.To) != 2 || !strings.Contains(string(m.Raw), "Shall we say noon?") || strings.Contains(string(m.Raw), "bob@example.com") {
						t.Errorf("to %q went\n%s", m.To, m.Raw)
					}
					if s.Data.Decided != gateway.PersonViaClient {
						t.Errorf("decided by %s", s.Data.Decided)
					}
				}
			})
		}
	}
}

// TestOneYesSendsOnce brings the same yes many times at once, as a broken or
// malicious client may, and a yes that belongs to another message.
func TestOneYesSendsOnce(t *testing.T) {
	t.Parallel()
	h, servers := sendingHouse(t, mail.Approve)
	c := h.client(t, "2026-07-28", mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { panic("unused") }})
	_, first := call(t, c, command(lunch))
	other := strings.Replace(lunch, "Friday", "Monday", 1)
	_, second := call(t, c, command(other))
	yes := func(line, state string) *mcp.CallToolParams {
		p := command(line)
		p.RequestState = state
		p.InputResponses = mcp.InputResponseMap{}
		for id := range first.InputRequests {
			p.InputResponses[id] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}
		}
		return p
	}
	if s, _ := call(t, c, yes(other, first.RequestState)); s.Error.Code != "PERMISSION_DENIED" || len(servers.Outgoing()) != 0 {
		t.Errorf("a yes to another message: %+v", s)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r, err := c.CallTool(t.Context(), func() *mcp.CallToolParams { p := yes(lunch, first.RequestState); p.Name = "cli"; return p }())
			if err != nil {
				t.Error(err)
				return
			}
			if text := r.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, `"state":"accepted"`) && !strings.Contains(text, `"code":"CONFLICT"`) {
				t.Errorf("answered %s", text)
			}
		})
	}
	wg.Wait()
	if s, _ := call(t, c, yes(lunch, first.RequestState)); !s.Success || !s.Data.Replayed {
		t.Errorf("the same yes later: %+v", s)
	}
	if got := servers.Outgoing(); len(got) != 1 || !strings.Contains(string(got[0].Raw), "Friday") {
		t.Fatalf("%d messages left", len(got))
	}
	if s, _ := call(t, c, yes(other, second.RequestState)); !s.Success || len(servers.Outgoing()) != 2 {
		t.Errorf("the other message: %+v", s)
	}
}
