package main

import (
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail/servertest"
)

// TestACodeLeavesItsAccountByNoWay: a code that came to an account that sends nothing stays there,
// and what another account may send waits for the person, whatever an agent or a program that
// starts the installed command tries.
func TestACodeLeavesItsAccountByNoWay(t *testing.T) {
	t.Parallel()
	o := newOffice(t, servertest.PostfixConfig{})
	writeFile(t, filepath.Join(o.files, "code.txt"), "482913")
	o.send(t, "ann", "--account", "bob", "--to", "ann@example.org", "--subject", "Your one-time code", "--body", "482913", "--attach", "code.txt")
	o.do(t, "account edit ann --mode RO --codes show", nil)
	o.do(t, "account edit bob --mode approve", nil)

	agent := gateway.Principal{Name: "agent"}
	o.as(t, agent, "mail list --account ann")
	if a := o.as(t, agent, "mail attachment ann:1 --part 2 --save of-ann.txt"); !a.Success {
		t.Fatal(a.raw)
	}
	for _, line := range []string{
		"mail copy ann:1 --to INBOX --to-account bob",
		"mail send --account bob --to bob@example.org --subject x --body x --attach of-ann.txt",
		"mail send --account bob --to bob@example.org --subject x --body-file of-ann.txt",
		"mail draft --account bob --subject x --body x --attach of-ann.txt",
		"mail send --account ann --to bob@example.org --subject x --body x",
		"mail send --account bob --to IMCEASMTP-evil+40evil+2Etest@example.org --subject x --body x",
	} {
		if a := o.as(t, agent, line); a.Error.Code != discovery.PermissionDenied {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	var asked []*mcp.ElicitParams
	p := command("mail send --account bob --to bob@example.org --subject Code --body 482913")
	p.Name = "cli"
	if r, err := installedClient(t, o.v, "2025-11-25", map[string]any{"decision": "approve"}, &asked).CallTool(t.Context(), p); err != nil || !r.IsError || len(asked) > 0 {
		t.Errorf("%d questions, %+v %v", len(asked), r, err)
	}
	o.postfix.WaitQueueEmpty(t)
	for _, folder := range []string{"INBOX", "Drafts"} {
		var list listData
		if a := o.do(t, "mail list --account bob --folder "+folder, nil); a.Success {
			o.do(t, "mail list --account bob --folder "+folder, &list)
		}
		if len(list.Messages) > 0 {
			t.Errorf("%s of bob has %+v", folder, list.Messages)
		}
	}
}
