package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// Rekeying says which keys of the vault are replaced, and the files that get the new ones
// in place of where the former ones came from; empty means there.
type Rekeying struct {
	Admin, Agent       bool
	AdminOut, AgentOut string
}

// NewKey is a key that replaced another.
type NewKey struct {
	Key    string `json:"key"`              // admin or agent
	In     string `json:"in"`               // the file that has it, or the system keyring
	Former string `json:"former,omitempty"` // where the former one came from, if it is not In
}

type vaultRekeyArgs struct {
	Admin    bool   `json:"admin,omitempty" jsonschema_description:"Replace the administrator's key only"`
	Agent    bool   `json:"agent,omitempty" jsonschema_description:"Replace the agent's key only"`
	AdminOut string `json:"admin-out,omitempty" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"New file for the administrator's new key, where the present one comes from a variable or a command"`
	AgentOut string `json:"agent-out,omitempty" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"New file for the agent's new key, likewise"`
}

// VaultRekeyResult answers vault rekey.
type VaultRekeyResult struct {
	Keys []NewKey `json:"keys"`
	Note string   `json:"note,omitempty"`
}

// vaultRekey never shows a key: it would be in the terminal's memory and in logs.
func vaultRekey(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "vault rekey",
		Summary: "Replace the vault's keys, and seal everything again",
		Details: "Without options both keys are replaced. A new key goes where the former one came from: its file, or its entry in the system keyring. Other processes go on with it, " +
			"unless a variable handed them the former key. Everything is sealed under a new data key; copies of the file that were made before still open with the former keys.",
		Effect:   discovery.Admin,
		Timeout:  300,
		Examples: []string{"vault rekey", "vault rekey --agent", "vault rekey --admin --admin-out /home/me/new-admin.key"},
	}, func(ctx context.Context, _ *discovery.Call, args *vaultRekeyArgs) (*VaultRekeyResult, error) {
		both := args.Admin == args.Agent
		keys, err := d.Rekey(ctx, Rekeying{Admin: both || args.Admin, Agent: both || args.Agent, AdminOut: args.AdminOut, AgentOut: args.AgentOut})
		if err != nil {
			return nil, err
		}
		r := &VaultRekeyResult{Keys: keys}
		var former []string
		for _, k := range keys {
			if k.Former != "" {
				former = append(former, k.Former)
			}
		}
		if len(former) > 0 {
			r.Note = fmt.Sprintf("Put the new key where the former one came from (%s), and start the processes again that have the former one.", strings.Join(former, " and "))
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *VaultRekeyResult) Summary() string {
	if r.Note != "" {
		return r.Note
	}
	return "The former key no longer opens the vault; copies of its file from before still do"
}
