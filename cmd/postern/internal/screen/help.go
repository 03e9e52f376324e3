package screen

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// help draws a page of help.
func (p *painter) help(data object) bool {
	if data.Str("description") == "" {
		return false
	}
	if c := data.Str("command"); c != "" {
		p.line(p.in(styleBold, text(c)))
	}
	p.wrapped("", "", text(data.Get("description")))
	list, _ := data.Objects("commands")
	if u := data.Str("usage"); u != "" {
		p.line("")
		if data.Str("command") != "" && len(list) > 0 { // a group, whose usage says nothing
			p.wrapped("", "", "Type one of these, most often '"+p.typed(text(usual(list).Get("name")))+"'.")
		} else {
			p.wrapped("", styleDim, "Usage: "+p.typed(text(u)))
		}
	}
	if len(list) > 0 {
		p.line("")
		p.line(p.in(styleBold, "Commands"))
		if data.Str("command") == "" {
			list = grouped(list)
		}
		var rows [][2]string
		for _, c := range list {
			rows = append(rows, [2]string{text(c.Get("name")), text(c.Get("description"))})
		}
		p.columns(rows)
	}
	if list, ok := data.Objects("arguments"); ok && len(list) > 0 {
		p.line("")
		p.line(p.in(styleBold, "Arguments"))
		var rows [][2]string
		for _, a := range list {
			rows = append(rows, [2]string{argumentName(a), argumentText(a)})
		}
		p.columns(rows)
	}
	if list := data.Strings("examples"); len(list) > 0 {
		p.line("")
		p.line(p.in(styleBold, "Examples"))
		for _, x := range list {
			p.line("  ", p.typed(text(x)))
		}
	}
	return true
}

// usual is the command of a group that a person most probably wants: the one that lists or shows
// what there is, else the first.
func usual(commands []object) object {
	for _, verb := range []string{" list", " show", " check"} {
		for _, c := range commands {
			if strings.HasSuffix(c.Str("name"), verb) {
				return c
			}
		}
	}
	return commands[0]
}

// grouped makes one entry of the commands that share their first word: its description
// is their second words. A person finds the rest with help of the group.
func grouped(commands []object) []object {
	var list []object
	at := map[string]int{}
	for _, c := range commands {
		word, rest, _ := strings.Cut(c.Str("name"), " ")
		verb, _, _ := strings.Cut(rest, " ")
		i, known := at[word]
		switch {
		case verb == "":
			list = append(list, c)
		case !known:
			at[word] = len(list)
			list = append(list, object{{Name: "name", Value: word}, {Name: "description", Value: verb}})
		default:
			if d := list[i].Str("description"); !slices.Contains(strings.Fields(d), verb) {
				list[i][1].Value = d + " " + verb
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

func argumentName(a object) string {
	n := text(a.Get("name"))
	if s := text(a.Get("short")); s != "" {
		n += ", -" + strings.TrimPrefix(s, "-")
	}
	return n
}

// argumentText returns the purpose of an argument and its values.
func argumentText(a object) string {
	var more []string
	if a.Get("required") == true {
		more = append(more, "required")
	}
	if list := a.Strings("enum"); len(list) > 0 {
		more = append(more, "one of "+text(strings.Join(list, ", ")))
	}
	low, high := text(a.Get("minimum")), text(a.Get("maximum"))
	switch {
	case low != "" && high != "":
		more = append(more, low+" to "+high)
	case low != "":
		more = append(more, "at least "+low)
	case high != "":
		more = append(more, "at most "+high)
	}
	if d := text(a.Get("default")); d != "" {
		more = append(more, "default "+d)
	}
	s := text(a.Get("description"))
	if len(more) > 0 {
		s += " (" + strings.Join(more, "; ") + ")"
	}
	return s
}
