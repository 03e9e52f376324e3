package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/plain"
)

// What a caller learns from a command that does not bind: what is wrong, what was likely
// meant, the command's form in one line, and an example that runs.

// usageFault makes a fault of this command's usage. An empty hint is its form.
func (c *Command) usageFault(code Code, hint, format string, v ...any) *Fault {
	return c.complete(&Fault{Code: code, Message: fmt.Sprintf(format, v...), Hint: hint}, nil)
}

// argumentFault makes a fault of an argument, nil for none in particular. meant is a
// sentence about what was likely meant; empty for none. The example is one that has the
// option, where there is one.
func (c *Command) argumentFault(code Code, a *Argument, meant, format string, v ...any) *Fault {
	return c.complete(&Fault{Code: code, Message: fmt.Sprintf(format, v...), Hint: strings.TrimSpace(meant + " " + c.usageHint())}, a)
}

// complete returns the fault with what every usage error has.
func (c *Command) complete(f *Fault, a *Argument) *Fault {
	d := *f
	d.Hint = cmp.Or(d.Hint, c.usageHint())
	if len(d.Examples) == 0 {
		has := func(example string) bool {
			return a != nil && !a.Positional && strings.Contains(example+" ", " --"+a.Name+" ")
		}
		d.Examples = c.Examples[max(0, slices.IndexFunc(c.Examples, has)):][:1]
	}
	return &d
}

// Usage is the command's form in one line: its path, positionals in capitals, what is
// required, and the options that are neither global nor rare.
func (c *Command) Usage() string {
	list := slices.DeleteFunc(slices.Clone(c.args().list), func(a *Argument) bool { return a.Global || a.Rare })
	slices.SortStableFunc(list, func(a, b *Argument) int { return rank(a) - rank(b) })
	usage := c.Path
	for _, a := range list {
		form := a.value()
		if !a.Positional {
			form = strings.TrimSpace("--" + a.Name + " " + form)
		}
		if !a.Required && !a.Needed {
			form = "[" + form + "]"
		}
		usage += " " + form
	}
	return usage
}

// rank orders arguments: positionals, then what is required, then the rest.
func rank(a *Argument) int {
	switch {
	case a.Positional:
		return 0
	case a.Required:
		return 1
	}
	return 2
}

// longestUsage is the longest usage that helps beside what is wrong, in bytes.
const longestUsage = 300

// usageHint shows the usage, and where there is more than that.
func (c *Command) usageHint() string {
	hint := "Usage: " + c.Usage()
	if len(hint) > longestUsage {
		return "'help " + c.Path + "' lists what it takes."
	}
	if slices.ContainsFunc(c.args().list, func(a *Argument) bool { return a.Rare && !a.Global }) {
		hint += "; 'help " + c.Path + "' has more options"
	}
	return hint
}

// value is what stands for the argument's value in the usage; empty for a flag.
func (a *Argument) value() string {
	v := a.Value
	switch choice := strings.Join(a.Enum, "|"); {
	case v != "":
	case a.Kind == KindFlag:
		return ""
	case a.Positional:
		v = strings.ToUpper(a.Name)
	case len(a.Enum) > 0 && len(choice) <= 40:
		v = choice
	case a.numeric() && a.Default != nil:
		v = fmt.Sprint(a.Default)
	case a.numeric():
		v = "N"
	case a.each() == KindDatetime:
		v = "T"
	default:
		v = strings.ToUpper(a.Name[:1])
	}
	switch {
	case a.Kind != KindArray:
		return v
	case a.Positional:
		return v + "..."
	}
	return v + ",..."
}

// meant is what a value that an argument does not take was likely meant to be; empty
// for no idea. A day in words is one in loc.
func (a *Argument) meant(text string, loc *time.Location) string {
	switch kind := a.each(); {
	case a.Sensitive:
	case kind == KindEnum:
		near := Nearest(text, a.Enum, 1)
		near = append(near, slices.DeleteFunc(slices.Clone(a.Enum), func(e string) bool { return !abbreviates(e, text) })...)
		return strings.Join(near[:min(1, len(near))], "")
	case kind == KindDatetime:
		if day := slices.Index([]string{"yesterday", "today", "tomorrow"}, strings.ToLower(text)); day >= 0 {
			return time.Now().In(loc).AddDate(0, 0, day-1).Format(time.DateOnly)
		}
		if t, err := time.Parse("15:04", text); err == nil {
			return t.Format("15:04")
		}
		for _, layout := range []string{"2006-1-2", "2006/1/2", "2006-1-2 15:04", "2006-1-2 15:04:05", "02.01.2006"} {
			if t, err := time.Parse(layout, text); err == nil && len(layout) <= len("02.01.2006") {
				return t.Format(time.DateOnly)
			} else if err == nil {
				return t.Format("2006-01-02T15:04")
			}
		}
	}
	return ""
}

// abbreviates reports whether letters stand for a word, as RO does for readonly: it begins with the
// first of them and has the others in their order.
func abbreviates(letters, word string) bool {
	if letters == "" || letters != strings.ToUpper(letters) || !strings.HasPrefix(strings.ToUpper(word), letters[:1]) {
		return false
	}
	for _, r := range strings.ToUpper(word) {
		letters = strings.TrimPrefix(letters, string(r))
	}
	return letters == ""
}

// idsGoWith says where an id belongs that stands where a date does; empty where the command
// has no option for ids.
func (c *Command) idsGoWith(id string) string {
	var options []string
	for _, a := range c.args().list {
		if a.account != nil && !a.Positional && a.Name != "account" {
			options = append(options, "--"+a.Name)
		}
	}
	if len(options) == 0 {
		return ""
	}
	return fmt.Sprintf("An id such as %s goes with %s. ", id, strings.Join(options, " or "))
}

func didYouMean(names []string, quote string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Did you mean %s%s%s?", quote, strings.Join(names, quote+" or "+quote), quote)
}

// unknown is the fault of an option that the command does not have.
func (c *Command) unknown(name string) *Fault {
	shown := "--" + plain.Excerpt(name, 40)
	also := slices.IndexFunc(c.args().list, func(a *Argument) bool { return a.Name == name || slices.Contains(a.Also, name) })
	if also >= 0 && c.args().list[also].Positional {
		a := c.args().list[also]
		return c.argumentFault(ValidationError, a, "Give it without a name.", "'%s' has no option '%s'.", c.Path, shown)
	}
	var names []string
	for _, a := range c.args().list {
		if !a.Positional {
			names = append(names, a.Name)
		}
	}
	near := Nearest(name, names, 3)
	if also >= 0 {
		near = []string{c.args().list[also].Name}
	} else if len(near) == 0 {
		near = sharing(name, names)
	}
	var a *Argument
	options := make([]string, len(near))
	for i := range near {
		a, options[i] = c.args().byName[near[0]], "--"+near[i]
	}
	f := c.argumentFault(ValidationError, a, didYouMean(options, ""), "'%s' has no option '%s'.", c.Path, shown)
	if a == nil {
		f.option = name
	}
	return f
}

// sharing returns the names that consist of words of name, those with the most words first:
// chars of body-chars, attachments of has-attachment.
func sharing(name string, names []string) []string {
	words := func(s string) []string {
		list := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '-' || r == '_' })
		for i := range list {
			list[i] = strings.TrimSuffix(list[i], "s")
		}
		return list
	}
	has := words(name)
	var found []string
	for _, n := range names {
		if !slices.ContainsFunc(words(n), func(w string) bool { return !slices.Contains(has, w) }) {
			found = append(found, n)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return len(words(b)) - len(words(a)) })
	return found[:min(2, len(found))]
}

// unknownShort is the same of a short form.
func (c *Command) unknownShort(body string) *Fault {
	name, _, _ := strings.Cut(body, "=")
	if a := c.args().byName[name]; a != nil && !a.Positional {
		return c.argumentFault(ValidationError, a, didYouMean([]string{"--" + name}, ""), "'%s' has no option '-%s'.", c.Path, plain.Excerpt(body, 40))
	}
	return c.argumentFault(ValidationError, nil, "Attach a value that starts with a dash, as in --name=-value; behind -- nothing is an option.", "'%s' has no option '-%s'.", c.Path, plain.Excerpt(body, 2))
}

// surplus is the fault of a value too many: most likely a phrase without quotes.
func (c *Command) surplus() *Fault {
	takes := "only options"
	switch n := len(c.args().positionals); {
	case n == 1:
		takes = "one value besides its options"
	case n > 1:
		takes = fmt.Sprintf("%d values besides its options", n)
	}
	return c.argumentFault(ValidationError, nil, "Quote a value that holds spaces, and give options by name.", "There is one value too many: '%s' takes %s.", c.Path, takes)
}

// elsewhere completes the fault of an unknown option that other commands have.
func (r *Registry) elsewhere(c *Command, f *Fault, visible func(*Command) bool) {
	var have, far []string // of the same group, and others
	group, _, _ := strings.Cut(c.Path, " ")
	for _, other := range r.commands {
		if a := other.args().byName[f.option]; a == nil || a.Positional || !visible(other) {
			continue
		} else if under(other.Path, group) {
			have = append(have, other.Path)
		} else {
			far = append(far, other.Path)
		}
	}
	have = append(have, far...)
	if n := len(have); n > 0 {
		verb := "have"
		if n == 1 {
			verb = "has"
		}
		f.Hint = fmt.Sprintf("'%s' %s it. %s", strings.Join(have[:min(3, n)], "' and '"), verb, f.Hint)
	}
}

// Bind is Command.Bind for a caller that knows the visible commands: where one of them
// has an option that c lacks, the error says so.
func (r *Registry) Bind(c *Command, tokens []string, loc *time.Location, visible func(*Command) bool) (*Bound, error) {
	b, err := c.Bind(tokens, loc)
	if f := AsFault(err); f != nil && f.option != "" {
		r.elsewhere(c, f, visible)
	}
	return b, err
}
