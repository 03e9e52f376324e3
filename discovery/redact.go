package discovery

import "strings"

// Redacted replaces text that must not be logged.
const Redacted = "[redacted]"

// Redact returns the tokens as they may be shown and logged, whether or not they
// bind. What it keeps is what it recognises: names and values of arguments that
// are not sensitive. Everything else might be a body or a password in the wrong
// place, such as the value of a misspelled option, and is replaced.
func (c *Command) Redact(tokens []string) []string {
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
			if takes && t != "--help" && i+1 < len(tokens) && (a == nil && !strings.HasPrefix(tokens[i+1], "-") || a != nil && a.takesNext(tokens[i+1])) {
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

// splitOption takes an option token apart. The head of an unknown option is shown
// only when it has the form of a name.
func (c *Command) splitOption(t string) (head, value string, attached bool, a *Argument) {
	if body, long := strings.CutPrefix(t, "--"); long {
		head, value, attached = strings.Cut(body, "=")
		a = c.args.byName[head]
		if a != nil && a.Positional {
			a = nil
		}
		if a == nil && (!namePattern.MatchString(head) || len(head) > 40) {
			head = Redacted
		}
		return "--" + head, value, attached, a
	}
	a = c.args.byShort[t[1:2]]
	if a == nil {
		return "-" + Redacted, "", false, nil
	}
	value = t[2:]
	return t[:2], strings.TrimPrefix(value, "="), value != "", a
}
