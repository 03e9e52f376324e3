package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// AuditVerifyResult answers audit verify.
type AuditVerifyResult struct {
	OK       bool   `json:"ok"`
	Entries  uint64 `json:"entries"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
	Bad      uint64 `json:"bad_seq,omitempty"` // the first altered entry that was found
	Problem  string `json:"problem,omitempty"`
	Signed   uint64 `json:"signed_seq,omitempty"` // the last entry that the administrator signed
	SignedAt string `json:"signed_at,omitempty" jsonschema:"format=date-time"`
}

func auditVerify(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:    "audit verify",
		Summary: "Check that no entry was changed, removed or reordered",
		Details: "Each administrator's command signs the log up to itself. What a process with the agent's key altered before the last of them is found; " +
			"behind it such a process can make entries that fit, and the answer says from which entry and time on.",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"audit verify"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (AuditVerifyResult, error) {
		v, err := d.Store.VerifyAudit(ctx)
		if err != nil {
			return AuditVerifyResult{}, err
		}
		r := AuditVerifyResult{OK: v.OK, Entries: uint64(v.Entries), First: v.First, Last: v.Last, Bad: v.Bad, Problem: v.Problem, Signed: v.Signed}
		if v.Signed > 0 {
			r.SignedAt = v.SignedAt.Format(time.RFC3339)
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r AuditVerifyResult) Summary() string {
	switch {
	case !r.OK && r.Bad == 0:
		return "The chain is whole, and the database was altered beside it: " + r.Problem
	case !r.OK:
		return fmt.Sprintf("The chain is broken at entry %d: %s", r.Bad, r.Problem)
	case r.Signed == 0:
		return "The chain is whole, and was never signed before: a process with the agent's key could have rewritten any entry"
	}
	return fmt.Sprintf("The chain is whole. Entries up to number %d are as the administrator's key signed them, the last at %s; a process with the agent's key could have rewritten later ones", r.Signed, r.SignedAt)
}
