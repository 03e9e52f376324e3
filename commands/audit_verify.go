package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

// AuditVerifyResult answers audit verify.
type AuditVerifyResult struct {
	OK      bool   `json:"ok"`
	Entries uint64 `json:"entries"`
	First   uint64 `json:"first_seq"`
	Last    uint64 `json:"last_seq"`
	Problem string `json:"problem,omitempty"`
}

func auditVerify(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "audit verify",
		Summary:  "Check that no entry was changed, removed or reordered",
		Effect:   discovery.Admin,
		Examples: []string{"audit verify"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (AuditVerifyResult, error) {
		v, err := d.Store.VerifyAudit(ctx)
		if err != nil {
			return AuditVerifyResult{}, err
		}
		return AuditVerifyResult{v.OK, uint64(v.Entries), v.First, v.Last, v.Problem}, nil
	})
}

// Summary implements discovery.Summarizer.
func (r AuditVerifyResult) Summary() string {
	if r.OK {
		return "The chain is whole"
	}
	return "The chain is broken"
}
