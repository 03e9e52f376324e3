package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
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

func TestAClientThatCannotAskLearnsWhatApproves(t *testing.T) {
	t.Parallel()
	h, servers := sendingHouse(t, mail.Approve)
	s, _ := call(t, h.client(t, "2025-11-25", mcp.ClientOptions{}), command(lunch))
	if s.Error.Code != "APPROVAL_REQUIRED" || len(servers.Outgoing()) != 0 {
		t.Fatalf("%+v", s)
	}
	// The person looks at it, and is told there what sends it; the agent is not.
	_, rest, _ := strings.Cut(s.Error.Message, "in the outbox as ")
	id, _, ok := strings.Cut(rest, " ")
	if !ok || strings.Contains(string(s.Error.Message+s.Error.Hint), "'") {
		t.Fatalf("the hint is: %s", s.Error.Hint)
	}
	var shown struct {
		Next struct {
			Arguments struct{ Command string } `json:"arguments"`
		} `json:"next_action"`
	}
	h.do(t, "outbox show "+id, &shown)
	approve, ok := strings.CutPrefix(shown.Next.Arguments.Command, "outbox approve ")
	if !ok {
		t.Fatalf("the administrator is told %+v", shown)
	}
	var went struct {
		State, Text string
		Sent        string `json:"sent_copy"`
	}
	h.do(t, "outbox approve "+approve, &went)
	if went.State != "accepted" || went.Text != "Shall we say noon?" && went.Text != "Shall we say noon?\n" || went.Sent != "filed" || len(servers.Outgoing()) != 1 {
		t.Errorf("%+v, %d sent", went, len(servers.Outgoing()))
	}
	if a := h.do(t, "outbox approve "+approve, nil); a.Error.Code != "CONFLICT" || len(servers.Outgoing()) != 1 {
		t.Errorf("approved again: %s, %d sent", a.raw, len(servers.Outgoing()))
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

func TestASendWithAKeyLeavesOnce(t *testing.T) {
	t.Parallel()
	h, servers := sendingHouse(t, mail.ReadWrite)
	writeFile(t, filepath.Join(h.files, "menu.txt"), "soup\n")
	line := lunch + " --attach menu.txt --idempotency-key lunch-1"
	var s struct {
		ID       string `json:"outbox_id"`
		State    string `json:"state"`
		Replayed bool   `json:"replayed"`
		Sent     string `json:"sent_copy"`
	}
	h.do(t, line+" --dry-run", &s)
	if s.ID != "" || len(servers.Outgoing()) != 0 {
		t.Errorf("a dry run: %+v, %d sent", s, len(servers.Outgoing()))
	}
	h.do(t, line, &s)
	id := s.ID
	if s.State != "accepted" || s.Replayed || s.Sent != "filed" {
		t.Errorf("%+v", s)
	}
	h.do(t, line, &s)
	if s.ID != id || !s.Replayed || len(servers.Outgoing()) != 1 {
		t.Errorf("%+v, %d sent", s, len(servers.Outgoing()))
	}
	if a := h.do(t, strings.Replace(line, "noon", "one", 1), nil); a.Error.Code != "CONFLICT" {
		t.Errorf("another message with the key: %s", a.raw)
	}
	if a := h.do(t, strings.Replace(lunch, "bob@example.com", "eve@evil.example", 1), nil); a.Error.Code != "PERMISSION_DENIED" || len(servers.Outgoing()) != 1 {
		t.Errorf("outside the list: %s", a.raw)
	}
	var list struct {
		Messages []struct {
			ID string `json:"message_id"`
		} `json:"messages"`
	}
	h.do(t, "mail list --folder Sent --limit 1", &list)
	if a := h.do(t, "mail get "+list.Messages[0].ID, nil); !strings.Contains(string(a.raw), "Shall we say noon?") || !strings.Contains(string(a.raw), "menu.txt") {
		t.Errorf("the copy is %s", a.raw)
	}
	h.do(t, "config set sends_per_hour 1", &struct{}{})
	if a := h.do(t, lunch, nil); a.Error.Code != "RATE_LIMITED" || len(servers.Outgoing()) != 1 {
		t.Errorf("beyond the rate: %s", a.raw)
	}
}

func TestAReplyIsOne(t *testing.T) {
	t.Parallel()
	h, servers := sendingHouse(t, mail.ReadWrite)
	var list struct {
		Messages []struct {
			ID        string `json:"message_id"`
			Subject   string `json:"subject"`
			MessageID string `json:"internet_message_id"`
		} `json:"messages"`
	}
	h.do(t, "mail list --full --limit 1", &list)
	m := list.Messages[0]
	h.do(t, "mail send --to ann@example.com --body yes --reply-to "+m.ID, &struct{}{})
	raw := string(servers.Outgoing()[0].Raw)
	if !strings.Contains(raw, "\r\nIn-Reply-To: <"+strings.Trim(m.MessageID, "<>")+">") || !strings.Contains(raw, "\r\nSubject: Re: ") {
		t.Errorf("to %+v went\n%s", m, raw)
	}
	if a := h.do(t, "mail send --to ann@example.com --body yes --reply-to "+strings.Replace(m.ID, ":1:", ":2:", 1), nil); a.Error.Code != "CONFLICT" || len(servers.Outgoing()) != 1 {
		t.Errorf("a reply to an id that is gone: %s", a.raw)
	}
	var draft struct {
		ID string `json:"message_id"`
	}
	h.do(t, "mail draft --body later --subject x", &draft)
	if a := h.do(t, "mail get "+draft.ID, nil); !a.Success || !strings.Contains(string(a.raw), "later") || len(servers.Outgoing()) != 1 {
		t.Errorf("the draft is %s", a.raw)
	}
}
