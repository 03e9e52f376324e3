package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// installedClient starts what install wrote for a client, as any program can that reads its
// configuration, and says yes to whatever it is asked, in this form.
func installedClient(t *testing.T, v testVault, era string, form map[string]any, asked *[]*mcp.ElicitParams) *mcp.ClientSession {
	t.Helper()
	d := clientHomeOf(t, v)
	if out, _, err := d.do(t, "install claude-code --profile full"); err != nil {
		t.Fatal(err, out)
	}
	var config struct {
		Servers map[string]struct {
			Args []string
			Env  map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(read(t, d.file(t, "claude-code"))), &config); err != nil {
		t.Fatal(err)
	}
	entry := config.Servers["postern"]
	var env []string
	for name, value := range entry.Env {
		env = append(env, name+"="+value)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "greedy", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*asked = append(*asked, r.Params)
		return &mcp.ElicitResult{Action: "accept", Content: form}, nil
	}}).Connect(t.Context(), &mcp.CommandTransport{Command: program(t, env, entry.Args...)}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A program that starts the installed command and accepts every question sends nothing
// unless the person let the client be asked, and then not with a form that it did not read.
func TestAProgramCannotApproveForThePerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setting string
		form    map[string]any
		asked   int
		sent    int
	}{
		"by default":              {"", nil, 0, 0},
		"by default, with a form": {"", map[string]any{"decision": "approve"}, 0, 0},
		"asked, without a form":   {"on", nil, 1, 0},
		"asked, an empty form":    {"on", map[string]any{}, 1, 0},
		"asked, the first choice": {"on", map[string]any{"decision": "wait"}, 1, 0},
		"asked, and approved":     {"on", map[string]any{"decision": "approve"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, era := range []string{"2025-11-25", "2026-07-28"} {
				v, servers := workVault(t)
				if c.setting != "" {
					newHouse(t, v).do(t, "config set ask_in_client "+c.setting, &struct{}{})
				}
				var asked []*mcp.ElicitParams
				p := command("mail send --to ann@example.org --subject Code --body 482913")
				p.Name = "cli"
				r, err := installedClient(t, v, era, c.form, &asked).CallTool(t.Context(), p)
				answer := "" // the library's client holds back a form that is not as it was asked for
				if err == nil {
					answer = r.Content[0].(*mcp.TextContent).Text
				}
				sent := len(servers.Outgoing())
				if len(asked) != c.asked || sent != c.sent || err != nil && c.form == nil || err == nil && strings.Contains(answer, "APPROVAL_REQUIRED") != (c.sent == 0) {
					t.Errorf("%s: asked %d times, %d left, %s %v", era, len(asked), sent, answer, err)
				}
			}
		})
	}
}

// Whatever an agent can ask of the outbox, nothing of the answers approves: neither the
// digest nor the code that the administrator is shown.
func TestNothingThatAnAgentReadsApproves(t *testing.T) {
	h, servers := sendingHouse(t, mail.Approve)
	agent := gateway.Principal{Name: "agent"}
	var said []string
	hear := func(line string) {
		for _, full := range []bool{false, true} {
			a := h.Gateway.Do(t.Context(), gateway.Request{Principal: agent, Line: line, Full: full, CanAsk: true})
			said = append(said, line+": "+string(a.JSON))
			if a.Asked != nil {
				state, err := base64.RawURLEncoding.DecodeString(a.Asked.State)
				if err != nil {
					t.Fatal(err)
				}
				said = append(said, line+" asks: "+a.Asked.Text, line+" asks with: "+string(state))
			}
		}
	}
	const line = "mail send --to ann@example.com --subject Code --body 482913 --idempotency-key one"
	hear(line)
	hear(line + " --dry-run")
	h.do(t, "config set ask_in_client on", &struct{}{})
	hear(strings.Replace(line, "one", "two", 1))
	var list struct {
		Messages []struct {
			ID string `json:"outbox_id"`
		} `json:"messages"`
	}
	h.do(t, "outbox list", &list)
	if len(list.Messages) != 2 {
		t.Fatalf("%+v", list)
	}
	ids := []string{list.Messages[0].ID, list.Messages[1].ID}
	for _, line := range []string{"help", "help outbox", "help outbox show", "help mail send", "schema outbox show", "policy show", "policy explain '" + line + "'", "doctor", "outbox list", "audit list",
		"outbox show " + ids[0], "outbox show " + ids[1], "outbox approve " + ids[0] + " --code 0", "outbox reject " + ids[1], "outbox cancel " + ids[1], "outbox show " + ids[1]} {
		hear(line)
	}
	for _, id := range ids {
		var shown struct {
			Digest string `json:"digest"`
			Code   string `json:"code"`
			Next   struct {
				Arguments struct{ Command string } `json:"arguments"`
			} `json:"next_action"`
		}
		h.do(t, "outbox show "+id, &shown)
		if len(shown.Digest) != 64 || id == ids[0] && !strings.Contains(shown.Next.Arguments.Command, "outbox approve "+id) {
			t.Fatalf("the administrator is shown %+v", shown)
		}
		for _, s := range said {
			if strings.Contains(s, shown.Digest[:8]) || shown.Code != "" && strings.Contains(s, shown.Code) || !strings.HasPrefix(s, "outbox approve") && strings.Contains(s, "outbox approve "+id) {
				t.Errorf("an agent is told what approves %s: %s", id, s)
			}
		}
	}
	if len(servers.Outgoing()) != 0 {
		t.Error("something left")
	}
}
