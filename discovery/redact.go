package discovery

import (
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces text that must not be logged.
const Redacted = "[redacted]"

// Redact returns the tokens as they may be shown and logged, whether or not they
// bind: as they came, but for the values of sensitive arguments. Of a command that has
// such an argument only what it recognises is kept, names and values of its other
// arguments: all else might be a text or a password in the wrong place, such as the value
// of a misspelled option. Of any other command, the value of an unknown option with the
// name of a secret is replaced.
func (c *Command) Redact(tokens []string) []string {
	if !c.Sensitive() {
		return c.redactSecrets(tokens)
	}
	s := scanner{command: c}
	out := make([]string, 0, len(tokens))
	bare := func(t string) {
		a := s.next()
		s.placed++
		if a == nil || a.Sensitive {
			t = Redacted
		}
		out = append(out, t)
	}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if t == "--" {
			out = append(out, t)
			for _, p := range tokens[i+1:] {
				bare(p)
			}
			break
		}
		if !strings.HasPrefix(t, "-") || len(t) == 1 || s.negativePositional(t) {
			bare(t)
			continue
		}
		head, value, attached, a := c.splitOption(t)
		show := a != nil && !a.Sensitive
		switch {
		case attached && !show:
			out = append(out, head+"="+Redacted)
		case attached:
			out = append(out, head+"="+value)
		default:
			out = append(out, head)
			takes := a == nil || a.Kind != KindFlag
			if takes && t != "--help" && t != "-h" && i+1 < len(tokens) && (a == nil && !strings.HasPrefix(tokens[i+1], "-") || a != nil && a.takesNext(tokens[i+1])) {
				i++
				if v := tokens[i]; show {
					out = append(out, v)
				} else {
					out = append(out, Redacted)
				}
			}
		}
	}
	return out
}

// Sensitive reports whether an argument's value must not be shown or logged.
func (c *Command) Sensitive() bool {
	return slices.ContainsFunc(c.args().list, func(a *Argument) bool { return a.Sensitive })
}

// Account is the account that the tokens name in an argument whose Form says so, whether or
// not they bind; empty for none.
func (c *Command) Account(tokens []string) string {
	s := newScanner(c, tokens)
	s.tolerant = true
	s.scan()
	for _, a := range c.args().list {
		for _, text := range s.given[a] {
			if a.account == nil {
				break
			}
			if name := a.account(text); name != "" {
				return name
			}
		}
	}
	return ""
}

// secretName is what the name of an option with a secret holds.
var secretName = regexp.MustCompile(`(?i)pass|pwd|secret|token|credential`)

func (c *Command) redactSecrets(tokens []string) []string {
	out := slices.Clone(tokens)
	for i, t := range tokens {
		name, option := strings.CutPrefix(t, "--")
		name, _, attached := strings.Cut(name, "=")
		switch {
		case !option || c.args().byName[name] != nil || !secretName.MatchString(name):
		case attached:
			out[i] = "--" + name + "=" + Redacted
		case i+1 < len(tokens) && !strings.HasPrefix(tokens[i+1], "--"):
			out[i+1] = Redacted
		}
	}
	return out
}

// splitOption takes an option token apart. The head of an unknown option is shown
// only when it has the form of a name.
func (c *Command) splitOption(t string) (head, value string, attached bool, a *Argument) {
	if body, long := strings.CutPrefix(t, "--"); long {
		head, value, attached = strings.Cut(body, "=")
		a = c.args().byName[head]
		if a != nil && a.Positional {
			a = nil
		}
		if a == nil && (!namePattern.MatchString(head) || len(head) > 40) {
			head = Redacted
		}
		return "--" + head, value, attached, a
	}
	a = c.args().byShort[t[1:2]]
	if a == nil && t == "-h" {
		return t, "", false, nil
	} else if a == nil {
		return "-" + Redacted, "", false, nil
	}
	value = t[2:]
	return t[:2], strings.TrimPrefix(value, "="), value != "", a
}
