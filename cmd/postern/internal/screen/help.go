package screen

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/discovery"
)

// help draws a page of help.
func (p *painter) help(r *discovery.HelpResult) {
	if r.Command != "" {
		p.line(p.in(styleBold, Line(r.Command)))
	}
	p.wrapped("", "", Line(r.Description))
	list := r.Commands
	if r.Usage != "" {
		p.line("")
		if r.Command != "" && len(list) > 0 { // a group, whose usage says nothing
			p.wrapped("", "", "Type one of these, most often '"+p.typed(usual(list))+"'.")
		} else {
			p.wrapped("", styleDim, "Usage: "+p.typed(Line(r.Usage)))
		}
	}
	if len(list) > 0 {
		p.line("")
		p.line(p.in(styleBold, "Commands"))
		if r.Command == "" {
			list = grouped(list)
		}
		var rows [][2]string
		for _, c := range list {
			rows = append(rows, [2]string{Line(c.Name), Line(c.Description)})
		}
		p.columns(rows)
	}
	if len(r.Arguments) > 0 {
		p.line("")
		p.line(p.in(styleBold, "Arguments"))
		var rows [][2]string
		for _, a := range r.Arguments {
			rows = append(rows, [2]string{argumentName(&a), argumentText(&a)})
		}
		p.columns(rows)
	}
	if len(r.Examples) > 0 {
		p.line("")
		p.line(p.in(styleBold, "Examples"))
		for _, x := range r.Examples {
			p.line("  ", p.typed(Line(x)))
		}
	}
}

// usual is the command of a group that a person most probably wants: the one that lists or shows
// what there is, else the first.
func usual(commands []discovery.CommandHelp) (name string) {
	for _, verb := range []string{" list", " show", " check"} {
		for _, c := range commands {
			if strings.HasSuffix(c.Name, verb) {
				return Line(c.Name)
			}
		}
	}
	return Line(commands[0].Name)
}

// grouped makes one entry of the commands that share their first word: its description
// is their second words. A person finds the rest with help of the group.
func grouped(commands []discovery.CommandHelp) (list []discovery.CommandHelp) {
	at := map[string]int{}
	for _, c := range commands {
		word, rest, _ := strings.Cut(c.Name, " ")
		verb, _, _ := strings.Cut(rest, " ")
		i, known := at[word]
		switch {
		case verb == "":
			list = append(list, c)
		case !known:
			at[word] = len(list)
			list = append(list, discovery.CommandHelp{Name: word, Description: verb})
		default:
			if !slices.Contains(strings.Fields(list[i].Description), verb) {
				list[i].Description += " " + verb
			}
		}
	}
	return list
}

// columns writes names with what they are beside them.
func (p *painter) columns(rows [][2]string) {
	widest := 0
	for _, r := range rows {
		widest = max(widest, runewidth.StringWidth(r[0]))
	}
	if widest = min(widest, 30, p.Width/2); p.Width-widest-4 < narrowest+2 {
		widest = 0 // each has lines of its own
	}
	for _, r := range rows {
		for i, l := range Words(r[1], p.Width-widest-4) {
			switch {
			case i > 0:
				p.line(strings.Repeat(" ", widest+4), l)
			case runewidth.StringWidth(r[0]) > widest:
				p.wrapped("  ", styleBold, r[0])
				p.line(strings.Repeat(" ", widest+4), l)
			default:
				p.line("  ", p.in(styleBold, fill(r[0], widest)), "  ", l)
			}
		}
	}
}

// Section is a part of a page about the program: names, each with what it is. The texts are
// ours and visible.
type Section struct {
	Title string
	Rows  [][2]string
}

// Page draws a text of ours, and sections below it.
func (l Look) Page(about string, sections ...Section) string {
	p := &painter{Look: l}
	p.Width = max(p.Width, minWidth)
	if about != "" || len(sections) == 0 {
		p.wrapped("", "", about)
	}
	for _, s := range sections {
		p.line("")
		p.wrapped("", styleBold, s.Title)
		p.columns(s.Rows)
	}
	return p.b.String()
}

func argumentName(a *discovery.ArgumentHelp) string {
	if a.Short != "" {
		return Line(a.Name) + ", -" + strings.TrimPrefix(Line(a.Short), "-")
	}
	return Line(a.Name)
}

// argumentText returns the purpose of an argument and its values.
func argumentText(a *discovery.ArgumentHelp) string {
	var more []string
	if a.Required {
		more = append(more, "required")
	}
	if len(a.Enum) > 0 {
		more = append(more, "one of "+text(a.Enum))
	}
	switch low, high := text(a.Minimum), text(a.Maximum); {
	case low != "" && high != "":
		more = append(more, low+" to "+high)
	case low != "":
		more = append(more, "at least "+low)
	case high != "":
		more = append(more, "at most "+high)
	}
	if d := text(a.Default); d != "" {
		more = append(more, "default "+d)
	}
	s := Line(a.Description)
	if len(more) > 0 {
		s += " (" + strings.Join(more, "; ") + ")"
	}
	return s
}
