package screen

import "strings"

// describe draws the agent mailbox in short: its commands, or one of them with its arguments.
func (p *painter) describe(data object) bool {
	commands, whole := data.Get("commands").(object)
	if !whole {
		commands = data
	}
	var rows [][2]string
	for _, c := range commands {
		about, ok := c.Value.(object)
		if !ok || about.Str("description") == "" {
			return false
		}
		if !whole {
			return p.help(append(object{{Name: "command", Value: "agent " + c.Name}}, append(about, member{Name: "arguments", Value: about.Get("args")})...))
		}
		first, _, _ := strings.Cut(text(about.Get("description")), ". ")
		rows = append(rows, [2]string{"agent " + text(c.Name), strings.TrimSuffix(first, ".")})
	}
	if len(rows) == 0 {
		return false
	}
	p.wrapped("", "", text(data.Get("description")))
	p.line("")
	p.line(p.in(styleBold, "Commands"))
	p.columns(rows)
	p.line("")
	p.line(p.in(styleDim, "One of them with its arguments: "+p.typed("agent describe send")))
	return true
}
