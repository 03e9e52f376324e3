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
	if r.Command == "" {
		list = grouped(list)
	}
	commands, arguments := Section{Title: "Commands"}, Section{Title: "Arguments"}
	for _, c := range list {
		commands.Rows = append(commands.Rows, [2]string{Line(c.Name), Line(c.Description)})
	}
	for _, a := range r.Arguments {
		arguments.Rows = append(arguments.Rows, argument(&a))
	}
	p.section(commands)
	p.section(arguments)
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
		p.section(s)
	}
	return p.b.String()
}

// section draws what has any rows.
func (p *painter) section(s Section) {
	if len(s.Rows) > 0 {
		p.line("")
		p.wrapped("", styleBold, s.Title)
		p.columns(s.Rows)
	}
}

// argument returns the names of an argument, and its purpose and values.
func argument(a *discovery.ArgumentHelp) [2]string {
	low, high, usual := text(a.Minimum), text(a.Maximum), text(a.Default)
	bounds := "at least " + low
	switch {
	case low == "":
		bounds = where(high != "", "at most "+high)
	case high != "":
		bounds = low + " to " + high
	}
	more := []string{where(a.Required, "required"), where(len(a.Enum) > 0, "one of "+text(a.Enum)), bounds, where(usual != "", "default "+usual)}
	said := strings.Join(slices.DeleteFunc(more, func(s string) bool { return s == "" }), "; ")
	return [2]string{Line(a.Name) + where(a.Short != "", ", -"+strings.TrimPrefix(Line(a.Short), "-")), Line(a.Description) + where(said != "", " ("+said+")")}
}
