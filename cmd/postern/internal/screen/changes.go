package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/commands"
)

// What was changed in mailboxes, or would be, and what was taken back.

// undoes says below an answer what takes it back, where something does.
func (p *painter) undoes(undo string) {
	if undo != "" {
		p.said = sentence(p.said) + p.advice(" '"+strings.TrimPrefix(Line(undo), "mail ")+"' takes it back")
	}
}

// undone draws what was taken back, folder by folder, and what was left as it is, with why.
func (p *painter) undone(r *commands.MailUndoResult) {
	var places []string
	now := map[string][]string{}
	for _, m := range r.Restored {
		place := "In " + Line(m.Folder)
		if len(m.Kept) > 0 {
			place += ", with flags that others changed since"
		}
		if m.Trashed {
			place += ", since it was made by the change"
		}
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
		id := "one whose id the server did not tell"
		if m.ID != "" {
			id = p.id(m.ID)
		}
		now[place] = append(now[place], id)
	}
	for _, place := range places {
		p.wrapped("", "", place+": "+some(now[place], len(now[place]))+".")
	}
	if n := r.Count - len(r.Restored); n > 0 {
		p.wrapped("", "", fmt.Sprintf("And %d more.", n))
	}
	if len(r.Left) > 0 {
		p.line(p.in(styleBold, "Left as they are"))
	}
	for _, l := range r.Left {
		var ids []string
		for _, id := range l.IDs {
			ids = append(ids, p.id(id))
		}
		p.hanging("  ", "", strings.TrimSpace(Line(l.Why)+": "+some(ids, l.Count)))
	}
	if r.Undo != "" {
		p.said = sentence(p.said) + p.advice(" '"+strings.TrimPrefix(Line(r.Undo), "mail ")+"' takes this undo back")
	}
}

// some are the first of n names.
func some(names []string, n int) string {
	const most = 20
	shown := names[:min(len(names), most)]
	s := strings.Join(shown, ", ")
	if more := n - len(shown); more > 0 && s != "" {
		s += fmt.Sprintf(" and %d more", more)
	} else if more > 0 {
		s = fmt.Sprint(more)
	}
	return s
}

// plan draws what a plan would do: first what among its messages is no bulk mail, then by sender.
func (p *painter) plan(s *commands.PlanShown) {
	p.header("Does", Line(s.Does))
	var folders []string
	for _, f := range s.Folders {
		folders = append(folders, fmt.Sprintf("%s (%d)", Line(f.Name), f.Messages))
	}
	p.header("Folders", some(folders, len(folders)+s.OtherFolders))
	if s.Oldest != "" {
		p.header("Dates", p.when(s.Oldest)+" to "+p.when(s.Newest))
	}
	p.header("Look at", Line(s.NotBulk))
	p.line("")
	for _, m := range s.Examples {
		p.hanging("> ", "", strings.Join([]string{runewidth.FillRight(p.id(m.ID), 6), fill(p.when(m.Date), 16), Line(m.From), Line(m.Subject)}, "  "))
		if m.Marks != "" {
			p.line("  ", p.in(styleBold, Line(m.Marks)))
		}
	}
	p.line("")
	for _, f := range s.Senders {
		p.hanging("> ", "", fmt.Sprintf("%6d from %s", f.Messages, Line(f.Name)))
	}
	if s.OtherSenders > 0 {
		p.wrapped("", "", fmt.Sprintf("And from %d others.", s.OtherSenders))
	}
}
