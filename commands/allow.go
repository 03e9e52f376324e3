package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

// direction is one of an account's two allow-lists.
type direction string

const (
	inbound  direction = "in"
	outbound direction = "out"
)

func (d direction) of(a *mail.Account) *mail.AllowList {
	if d == outbound {
		return &a.AllowOut
	}
	return &a.AllowIn
}

// spec names a command of this list, which answers to whitelist too (000 section
// 7.2).
func (d direction) spec(verb, summary, details string, examples ...string) discovery.Spec {
	s := discovery.Spec{Path: fmt.Sprintf("allow %s %s", d, verb), Aliases: []string{fmt.Sprintf("whitelist %s %s", d, verb)},
		Summary: summary, Details: details, Effect: discovery.Admin, Standing: true}
	for _, e := range examples {
		s.Examples = append(s.Examples, fmt.Sprintf(e, d))
	}
	return s
}

type allowEntriesArgs struct {
	Entries []string `json:"entry" acli:"positional" jsonschema:"minItems=1,maxItems=90,minLength=1,maxLength=320,example=ann@example.org,example=@example.org" jsonschema_description:"An address, @domain for that domain alone, or * for everybody"`
	AccountOption

	normal []string // the entries as they are kept and compared, since Validate
}

// Validate checks what the entries are. It repeats none of them.
func (a *allowEntriesArgs) Validate() error {
	a.normal = make([]string, len(a.Entries))
	for i, e := range a.Entries {
		var err error
		if a.normal[i], err = mail.ValidateEntry(e); err != nil {
			return fmt.Errorf("entry %d cannot be used: %w", i+1, err)
		}
	}
	return nil
}

// changeList has change alter a list of the account and returns the account's new
// state.
func (d *Deps) changeList(ctx context.Context, call *discovery.Call, a *allowEntriesArgs, list direction, change func(*mail.AllowList) error) (*AllowResult, error) {
	name, err := d.account(ctx, call, a.AccountOption)
	if err != nil {
		return nil, err
	}
	var changed mail.Account
	err = d.Store.UpdateAccount(ctx, name, func(a *mail.Account) error {
		err := change(list.of(a))
		changed = *a
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return allowResult(&changed, list), nil
}

// AllowResult answers the commands on an allow-list.
type AllowResult struct {
	Account    string      `json:"account_id"`
	List       direction   `json:"list" jsonschema:"enum=in,enum=out"`
	Enabled    bool        `json:"enabled"`
	Entries    []string    `json:"entries"`
	Added      []string    `json:"added,omitempty"`
	Removed    []string    `json:"removed,omitempty"`
	Truncated  bool        `json:"truncated,omitempty"`
	NextAction *NextAction `json:"next_action,omitempty"`
}

func allowResult(a *mail.Account, d direction) *AllowResult {
	l := d.of(a)
	r := &AllowResult{Account: a.Name, List: d, Enabled: l.Enabled, Entries: append([]string{}, l.Entries...)}
	if !l.Enabled && len(l.Entries) > 0 { // one that is on and empty lets nothing pass
		r.NextAction = next("The list is off and holds nothing back: turn it on", "account", "edit", a.Name, "--allow-"+string(d), "on")
	}
	return r
}

// allowBrief is a list, or what was changed of it.
type allowBrief struct {
	Account string   `json:"account"`
	On      bool     `json:"on"`
	Entries []string `json:"entries"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Rest
}

// Brief is the list without its name.
func (r *AllowResult) Brief() allowBrief {
	b := allowBrief{r.Account, r.Enabled, r.Entries, r.Added, r.Removed, Rest{}}
	switch {
	case r.Enabled && len(r.Entries) == 0:
		b.Hint = "The list is on and empty: it lets nothing pass."
	case r.Enabled && len(r.Entries) > 1 && slices.Contains(r.Entries, "*"):
		b.Hint = "The entry * lets everybody pass: remove it if the others are to count."
	case r.NextAction != nil:
		b.Hint = "The list is off: " + r.NextAction.Arguments.Command + " turns it on."
	}
	return b
}

// Summary implements discovery.Summarizer.
func (r *AllowResult) Summary() string {
	s := count(len(r.Entries), "entry", "entries")
	if !r.Enabled {
		s += ", and the list is off"
	}
	return s
}

// Truncate implements discovery.Truncator.
func (r *AllowResult) Truncate(fraction float64) bool {
	return shorten(&r.Entries, &r.Truncated, fraction)
}
