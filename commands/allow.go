package commands

import (
	"errors"
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
		Summary: summary, Details: details, Effect: discovery.Admin}
	for _, e := range examples {
		s.Examples = append(s.Examples, fmt.Sprintf(e, d))
	}
	return s
}

type allowEntriesArgs struct {
	Entries []string `json:"entry" acli:"positional" jsonschema:"minItems=1,maxItems=90,minLength=1,maxLength=320,example=ann@example.org,example=@example.org" jsonschema_description:"An address, @domain for that domain alone, or * for everybody"`
	AccountOption
}

// Validate checks what the entries are. It repeats none of them.
func (a *allowEntriesArgs) Validate() error {
	_, err := a.normal()
	return err
}

// normal is the entries in the form in which they are kept and compared.
func (a *allowEntriesArgs) normal() ([]string, error) {
	list := make([]string, len(a.Entries))
	for i, e := range a.Entries {
		n, err := mail.ValidateEntry(e)
		if err != nil {
			return nil, fmt.Errorf("entry %d cannot be used: %w", i+1, err)
		}
		list[i] = n
	}
	return list, nil
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
	if !l.Enabled {
		r.NextAction = next("The list is off and holds nothing back: turn it on", "account", "edit", a.Name, "--allow-"+string(d), "on")
	}
	return r
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

// errNotOnList is an entry to be removed that is not there.
var errNotOnList = errors.New("not on the list")

// without removes entries from a list, in whatever form they were kept.
func without(list, remove []string) (kept, removed []string, err error) {
	for _, e := range list {
		n, err := mail.ValidateEntry(e)
		if err != nil {
			n = e
		}
		if slices.Contains(remove, n) {
			removed = append(removed, e)
		} else {
			kept = append(kept, e)
		}
	}
	for _, r := range remove {
		if !slices.ContainsFunc(removed, func(e string) bool { n, err := mail.ValidateEntry(e); return e == r || err == nil && n == r }) {
			return nil, nil, errNotOnList
		}
	}
	return kept, removed, nil
}
