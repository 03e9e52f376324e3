package commands

import (
	"context"

	"github.com/postern-mail/postern/discovery"
)

// GrantListResult answers grant list.
type GrantListResult struct {
	Grants    []GrantDetail `json:"grants"`
	Truncated bool          `json:"truncated,omitempty"`
}

func grantList(d *Deps) *discovery.Command {
	return newCommand(discovery.Spec{
		Path:     "grant list",
		Summary:  "List the grants with everything but their tokens",
		Details:  "One that has expired opens nothing, and stays in the list until it is removed.",
		Effect:   discovery.Admin,
		Examples: []string{"grant list", "grant list --fields grants.name,grants.expires"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (*GrantListResult, error) {
		grants, err := d.Store.Grants(ctx)
		if err != nil {
			return nil, err
		}
		r := &GrantListResult{Grants: []GrantDetail{}}
		for i := range grants {
			r.Grants = append(r.Grants, d.grantDetail(&grants[i]))
		}
		return r, nil
	})
}

// Summary implements discovery.Summarizer.
func (r *GrantListResult) Summary() string { return count(len(r.Grants), "grant", "grants") }

// Truncate implements discovery.Truncator.
func (r *GrantListResult) Truncate(fraction float64) bool {
	return shorten(&r.Grants, &r.Truncated, fraction)
}
