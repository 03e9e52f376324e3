package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// reference prints what 'help' knows of every command as one document.
func (p *process) reference(_ context.Context, args []string) error {
	f := p.flags("reference", "[--format markdown|man]")
	format := "markdown"
	choose(f, &format, "format", "markdown, or man for a manual page", "markdown", "man")
	if err := parse(f, args, 0, 0); err != nil {
		return err
	}
	h, err := p.house(house.Plan{Profile: gateway.FullProfile()})
	if err != nil {
		return err
	}
	defer h.Close()
	if format == "man" {
		return writeManual(p.stdout, h.Registry)
	}
	return writeMarkdown(p.stdout, h.Registry)
}

// effects says what a command of each effect can do, in the order of strength.
var effects = map[discovery.Effect]string{
	discovery.Meta:  "speaks of the commands themselves; needs no vault, key or network",
	discovery.Read:  "shows something and changes nothing anywhere",
	discovery.State: "changes what Postern keeps, and nothing on a mail server",
	discovery.Flag:  "marks messages as read on the server",
	discovery.Write: "changes what a mailbox holds",
	discovery.Send:  "lets a message leave",
	discovery.Admin: "for the administrator",
}

// described is an argument in the words of both documents.
type described struct {
	label   string // as it is written, with what it takes
	bounds  string // "1 to 500; default 50"; may be empty
	meaning string
}

func describe(a *discovery.Argument) described {
	d := described{label: a.Label(), meaning: a.Description}
	if a.Short != "" {
		d.label = "-" + a.Short + ", " + d.label
	}
	if a.Kind != discovery.KindFlag && !a.Positional {
		d.label += " " + placeholder(a)
	}
	var facts []string
	if a.Required {
		facts = append(facts, "required")
	}
	if a.Positional && a.Kind == discovery.KindArray {
		facts = append(facts, "one or more")
	}
	if len(a.Enum) > 0 {
		facts = append(facts, strings.Join(a.Enum, ", "))
	}
	facts = append(facts, span(a.Minimum.String(), a.Maximum.String(), ""))
	facts = append(facts, span(count(a.MinLength), count(a.MaxLength), " characters"))
	facts = append(facts, span(count(a.MinItems), count(a.MaxItems), " values"))
	if a.Path {
		facts = append(facts, "below the attachment directory")
	}
	if a.Requires != "" {
		facts = append(facts, "only with --"+a.Requires)
	}
	if a.Default != nil {
		facts = append(facts, fmt.Sprintf("default %v", a.Default))
	}
	facts = slices.DeleteFunc(facts, func(f string) bool { return f == "" })
	d.bounds = strings.Join(facts, "; ")
	return d
}

// placeholder is what stands for an option's value.
func placeholder(a *discovery.Argument) string {
	if a.Kind == discovery.KindArray {
		return strings.ToUpper(string(a.Item)) + ",…"
	}
	return strings.ToUpper(string(a.Kind))
}

func count(n *uint64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func span(low, high, unit string) string {
	switch {
	case low != "" && high != "":
		return low + " to " + high + unit
	case low != "":
		return "at least " + low + unit
	case high != "":
		return "at most " + high + unit
	}
	return ""
}

// commonArguments are the options every command takes, as the first command has them.
func commonArguments(r *discovery.Registry) []*discovery.Argument {
	var out []*discovery.Argument
	for _, a := range r.Lookup("version").Arguments() {
		if a.Common {
			out = append(out, a)
		}
	}
	return out
}

// ownArguments are a command's arguments without those that every command takes in the same
// way.
func ownArguments(c *discovery.Command, shared []*discovery.Argument) []*discovery.Argument {
	var out []*discovery.Argument
	for _, a := range c.Arguments() {
		same := false
		for _, s := range shared {
			same = same || a.Common && s.Name == a.Name && fmt.Sprint(s.Default) == fmt.Sprint(a.Default)
		}
		if !same {
			out = append(out, a)
		}
	}
	return out
}
