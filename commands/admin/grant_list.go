package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// GrantListResult answers grant list.
type GrantListResult struct {
	Grants    []GrantDetail `json:"grants"`
	Truncated bool          `json:"truncated,omitempty"`
}

func grantList(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "grant list",
		Summary:  "List the grants with everything but their tokens",
		Details:  "One that has expired opens nothing, and stays in the list until it is removed.",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"grant list", "grant list --fields name,expires"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (*GrantListResult, error) {
		grants, err := d.Store.Grants(ctx)
		if err != nil {
			return nil, err
		}
		stopped, err := d.Store.StoppedAlone(ctx)
		if err != nil {
			return nil, err
		}
		r := &GrantListResult{Grants: answer.Each(grants, d.grantDetail)}
		for i := range r.Grants {
			r.Grants[i].Stopped = slices.Contains(stopped, r.Grants[i].Principal)
		}
		return r, nil
	})
}

type grantRow struct {
	Name       string `json:"name"`
	Accounts   string `json:"accounts"`
	Profile    string `json:"profile"`
	Identity   string `json:"identity"`
	Extensions string `json:"extensions"`
	AskClient  bool   `json:"ask_in_client"`
	Expires    string `json:"expires"`
	Expired    bool   `json:"expired"`
	Stopped    bool   `json:"stopped"`
}

// Brief is one row for each grant.
func (r *GrantListResult) Brief() answer.List[grantRow] {
	var rest answer.Rest
	if r.Truncated {
		rest.Hint = "The list is cut: 'grant list --fields name' has all names."
	}
	return answer.ListOf(r.Grants, rest, func(g *GrantDetail) grantRow {
		return grantRow{g.Name, strings.Join(g.Accounts, " "), g.Profile, g.Identity, strings.Join(g.Extensions, " "), g.AskClient, answer.Minute(g.expires), g.Expired, g.Stopped}
	})
}

// Summary implements discovery.Summarizer.
func (r *GrantListResult) Summary() string { return answer.Count(len(r.Grants), "grant", "grants") }

// Truncate implements discovery.Truncator.
func (r *GrantListResult) Truncate(fraction float64) bool {
	return answer.Shorten(&r.Grants, &r.Truncated, fraction)
}
