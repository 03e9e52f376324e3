package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/mail"
)

// when returns a date in its shortest form that is clear today.
func (p *painter) when(date string) string {
	t, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return ""
	}
	t = t.In(p.Zone)
	return t.Format("2006-01-02 15:04")
}

// date is when for a date, else the text as it is.
func (p *painter) date(s string) string { return cmp.Or(p.when(s), Line(s)) }

// id returns a message's id as it is typed here, of the one that an answer has.
func (p *painter) id(long string) string { return Line(p.ID(long)) }

// flags says what a person understands of the flags of a message; empty for one that was read
// and has no other.
func flags(list []string) string {
	var words []string
	if !slices.Contains(list, `\Seen`) {
		words = append(words, "unread")
	}
	for _, f := range list {
		if f := Line(f); f != `\Seen` && f != `\Recent` {
			words = append(words, strings.ToLower(strings.TrimLeft(f, `\$`)))
		}
	}
	return strings.Join(words, ", ")
}

// marks returns the flags of a message for a list, in one character each. One whose flags are not known is not unread.
func marks(m *commands.MessageEntry) string {
	mark := []byte("   ")
	for i, is := range []bool{m.Flags != nil && !slices.Contains(m.Flags, `\Seen`), slices.Contains(m.Flags, `\Flagged`), m.HasAttachments} {
		if is {
			mark[i] = "N*@"[i]
		}
	}
	return string(mark)
}

// correspondent is who wrote a message, in a column; to whom, where the account itself did.
func correspondent(m *commands.MessageEntry, columns int) string {
	if m.Own && m.To != "" {
		return "to " + Line(m.To)
	}
	return sender(Line(m.From), columns)
}

// messages draws a list, one message a line, or two lines for each in a narrow
// window.
func (p *painter) messages(account, folder string, list []commands.MessageEntry) {
	if len(list) == 0 {
		return
	}
	idWidth, longest := 3, 0
	for i := range list {
		longest = max(longest, runewidth.StringWidth(correspondent(&list[i], p.Width)))
		idWidth = max(idWidth, runewidth.StringWidth(p.id(list[i].ID)))
	}
	p.line(p.in(styleBold, folderOf(account, folder)))
	apart := idWidth > p.Width/2 // on a line of its own
	if apart {
		idWidth = 0
	}
	rest := p.Width - 4 - idWidth - 2 - 16 - 2
	wide := rest >= 30
	from, all := max(12, min(longest, rest*2/5)), []string{}
	for i := range list {
		m := &list[i]
		all = append(all, marks(m))
		date := p.when(cmp.Or(m.Date, m.Received))
		head := all[i] + " " + fill(p.id(m.ID), idWidth) + "  " + fill(date, 16) + "  "
		style := ""
		if strings.HasPrefix(head, "N") {
			style = styleBold
		}
		subject := cmp.Or(strings.TrimSpace(Line(m.Subject)), "(no subject)")
		room := p.Width - runewidth.StringWidth(head)
		if wide {
			room = from
		}
		if !wide && room < 12 { // the sender has a line of their own
			p.line(p.in(style, strings.TrimRight(Cut(head, p.Width), " ")))
			head, room = "     ", p.Width-5
		}
		sender := cmp.Or(correspondent(m, room), "(no sender)")
		if wide {
			p.line(p.in(style, strings.TrimRight(head+fill(sender, from)+"  "+Cut(subject, rest-from-2), " ")))
		} else {
			p.line(p.in(style, strings.TrimRight(Cut(head+sender, p.Width), " ")))
			p.line("     ", Cut(subject, p.Width-5))
		}
		if apart {
			p.line("     ", p.id(m.ID))
		}
		p.doubts("     ", m)
		if m.Snippet != "" {
			p.broken("     ", styleDim, Line(linked(m.Snippet)))
		}
	}
	p.legend(all)
	p.first = list[0].ID
	p.line(p.in(styleDim, "Read one: "+p.typed("read ")+p.Quote(p.id(p.first))))
}

// legend explains the marks of a list, as far as it has any.
func (p *painter) legend(marks []string) {
	var used []string
	for _, meaning := range []string{"N unread", "* flagged", "@ attachments"} {
		if strings.Contains(strings.Join(marks, ""), meaning[:1]) {
			used = append(used, meaning)
		}
	}
	if len(used) > 0 {
		p.wrapped("", styleDim, "Marks: "+strings.Join(used, ", ")+".")
	}
}

// doubtsOf says where the sender of a message is not who it seems, or does not get an answer,
// each a field and its value.
func doubtsOf(m *commands.MessageEntry) (all [][2]string) {
	if m.Sender == mail.Failed {
		all = append(all, [2]string{"Sender", "forged, as the mail server says"})
	}
	if m.PosingAs != "" {
		all = append(all, [2]string{"Name", "it shows another address: " + Line(m.PosingAs)})
	}
	if m.AnswersTo != "" {
		all = append(all, [2]string{"Answers", "they go to " + Line(m.AnswersTo)})
	}
	if m.ByAgent {
		all = append(all, [2]string{"Draft", "written by an agent"})
	}
	return all
}

// doubts is doubtsOf in a list.
func (p *painter) doubts(indent string, m *commands.MessageEntry) {
	for _, d := range doubtsOf(m) {
		p.broken(indent, styleBold, "["+d[0]+": "+d[1]+"]")
	}
}

// sender returns the sender of a message in so many columns. A name that could pass
// for an address is left out where the address would be cut off. The screen has only
// the answer, so this is the one place that separates name and address in their
// text, and only to draw less of it: no decision depends on the name.
func sender(from string, columns int) string {
	i := strings.LastIndex(from, " <")
	if i < 0 || runewidth.StringWidth(from) <= columns {
		return from
	}
	if name := from[:i]; !strings.ContainsAny(name, "@<>") {
		return from
	}
	return strings.Trim(from[i:], " <>")
}

// folderOf names the account and the folder of an answer, of which it may have neither.
func folderOf(account, folder string) string {
	return strings.Trim(Line(account)+", "+Line(folder), ", ")
}

// thread draws a conversation: each message below the one it answers, or where texts are
// shown one below the other, with what is new in it.
func (p *painter) thread(r *commands.MailThreadResult) {
	depth, subject, all := map[string]int{}, Line(r.Subject), []string{}
	texts := slices.ContainsFunc(r.Messages, func(m commands.ThreadEntry) bool { return m.BodyText != "" })
	p.broken("", styleBold, subject)
	p.line(p.in(styleDim, folderOf(r.Account, r.Folder)))
	for i := range r.Messages {
		m, d := &r.Messages[i], 0
		parent, known := depth[m.Parent]
		if known {
			d = min(parent+1, 10)
		}
		depth[m.ID], p.first = d, r.Messages[0].ID
		all = append(all, marks(&m.MessageEntry))
		indent, style := "", ""
		if d > 0 && !texts {
			indent = strings.Repeat("  ", d-1) + "└ "
		}
		if texts || all[i][0] == 'N' {
			style = styleBold
		}
		if texts {
			p.line("")
		}
		head := indent + all[i] + " " + runewidth.FillRight(p.id(m.ID), 2) + "  "
		head += Cut(fill(p.when(cmp.Or(m.Date, m.Received)), 16)+"  "+Line(m.From), p.Width-runewidth.StringWidth(head))
		p.line(p.in(style, strings.TrimRight(head, " ")))
		if known && texts && m.Parent != r.Messages[i-1].ID {
			p.line("    ", p.in(styleDim, "answers "+p.id(m.Parent)))
		}
		if s := Line(m.Subject); s != "" && !strings.EqualFold(strings.TrimPrefix(s, "Re: "), subject) {
			p.line(strings.Repeat(" ", runewidth.StringWidth(indent)+4), Cut("Subject: "+s, p.Width-runewidth.StringWidth(indent)-4)) // it could be a sentence of ours
		}
		p.doubts("     ", &m.MessageEntry)
		if m.BodyText != "" {
			p.quoted(linked(m.BodyText), "    | ", "", p.Width)
		}
	}
	p.legend(all)
}

// header writes a field of a message: its name and its value.
func (p *painter) header(name, value string) {
	const column = 9
	if value == "" {
		return
	}
	for i, l := range Wrap(value, p.Width-column) {
		if i == 0 {
			p.line(p.in(styleBold, fill(name+":", column)), l)
		} else {
			p.line(strings.Repeat(" ", column), l)
		}
	}
}

// hanging writes one of several rows; its further lines are indented, so that they
// cannot pass for other rows.
func (p *painter) hanging(indent, style, s string) {
	first := Wrap(s, p.Width-len(indent))[0]
	p.line(indent, p.in(style, first))
	if rest := strings.TrimLeft(s[len(first):], " "); rest != "" {
		p.broken(indent+strings.Repeat(" ", 9), style, rest)
	}
}

// linked says in a person's words which links of a text lead elsewhere than they show.
func linked(s string) string { return strings.ReplaceAll(s, "(other host ", "(the link goes to ") }

// mails draws a message, or several with a rule between them.
func (p *painter) mails(r *commands.MailGetResult) {
	for i, m := range r.Details() {
		if i > 0 {
			p.line("")
			p.line(p.in(styleDim, strings.Repeat("─", min(p.Width, 100))))
		}
		p.mail(m)
	}
}

func (p *painter) mail(m *commands.MessageDetail) {
	id := p.id(m.ID)
	p.header("From", Line(m.From))
	for _, d := range doubtsOf(&commands.MessageEntry{Sender: m.Sender, PosingAs: m.PosingAs, AnswersTo: m.AnswersTo, ByAgent: m.ByAgent}) { // fields of their own: a long name goes on beside them
		p.header(d[0], d[1])
	}
	if m.Sender == mail.Verified {
		p.header("Sender", "verified by the mail server")
	}
	p.header("To", Line(m.To))
	p.header("Cc", Line(m.CC))
	p.header("Date", p.when(m.Date))
	p.header("Subject", Line(m.Subject))
	if m.Flags != nil && !strings.HasPrefix(m.ID, "pop3:") { // such a mailbox has none
		p.header("Flags", flags(m.Flags))
	}
	for _, h := range m.Headers {
		p.hanging("", styleDim, Line(h.Name)+": "+Line(h.Value))
	}
	p.line("")
	for _, note := range m.Notes {
		p.wrapped("", styleDim, "["+Line(note)+"]")
	}
	if m.BodyText != "" || m.BodyHTML == "" && len(m.Notes) == 0 {
		p.body(linked(m.BodyText), styleDim, min(p.Width, 100))
	}
	p.line("")
	if m.Truncated {
		p.line(p.in(styleDim, "[the text goes on: --chars or --from-char shows more]"))
	}
	if m.HiddenChars > 0 {
		p.wrapped("", styleDim, fmt.Sprintf("%d hidden characters are left out: '%s' shows all of the source.", m.HiddenChars, p.typed("mail raw ")+p.Quote(id)))
	}
	if m.BodyHTML != "" {
		p.line(p.in(styleBold, "HTML"))
		p.quoted(m.BodyHTML, "| ", "", p.Width)
	}
	if m.Returned != "" {
		p.line(p.in(styleDim, "[what came back: "+p.id(m.Returned)+"]"))
	}
	p.files(m.Attachments, id)
	p.line(p.in(styleDim, "Id: "+id))
}

// bodyMark begins each line of a mail's text, so that no line can pass for a part of
// the answer, or for the prompt.
const bodyMark = "│ "

// body writes the text of a mail, or that it has none.
func (p *painter) body(s, style string, width int) {
	if s == "" {
		p.line(p.in(styleDim, "The message has no text."))
		return
	}
	p.quoted(s, bodyMark, style, width)
}

func (p *painter) files(list []commands.AttachmentEntry, id string) {
	if len(list) == 0 {
		return
	}
	p.line(p.in(styleBold, "Attachments"))
	var told []commands.EventEntry // the same invitation comes as a form of the text and as a file
	for _, a := range list {
		p.hanging("  ", "", fmt.Sprintf("[%s] %s, %s, %s", Line(a.PartID), cmp.Or(Line(a.Filename), "(no name)"), Line(a.ContentType), size(a.Size)))
		if a.Text != "" {
			p.quoted(linked(a.Text), "    | ", "", p.Width)
		}
		for _, e := range a.Events {
			if event, ok := valueOf(e).(object); ok && !slices.Contains(told, e) {
				told = append(told, e)
				p.object(event, "    ")
			}
		}
	}
	p.line(p.in(styleDim, "Save one: "+p.typed("save ")+p.Quote(id)+" "+Line(list[0].PartID)))
}

// size returns a number of bytes in the usual words.
func size(bytes int64) string {
	switch {
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1e6:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// stateOf is the state of an entry of the outbox, in the words of the sentences about it.
func stateOf(state mail.OutboxState) string {
	if state == mail.OutboxAccepted { // by the server
		return "sent"
	}
	return text(state)
}

// outgoing draws a message of the outbox with everything that is or would be sent:
// the agent's text is behind the mark of a body, and none of it is dim.
func (p *painter) outgoing(r *commands.OutboxShowResult) {
	p.header("Outbox", Line(r.ID)+" ("+stateOf(r.State)+")")
	p.header("Account", Line(r.Account))
	p.header("From", Line(r.From))
	for _, f := range []struct {
		name string
		list []string
	}{{"To", r.To}, {"Cc", r.CC}, {"Bcc", r.BCC}} {
		for _, a := range f.list {
			p.header(f.name, Line(a))
		}
	}
	// Names in the header can say anything: these addresses are the recipients.
	var whom []string
	for _, a := range r.Recipients {
		if slices.Contains(r.New, a) {
			a += " (not written to before)"
		}
		whom = append(whom, a)
	}
	p.header("Goes to", text(whom))
	for _, a := range r.NotPlain {
		p.header("Beware", Line(a))
	}
	p.header("Subject", Line(r.Subject))
	by := Line(r.Principal) + ", " + p.when(r.Created)
	if r.Answers != "" {
		by += ", in answer to " + p.id(r.Answers)
	}
	p.header("By", by)
	p.header("Why", Line(r.Why))
	p.header("Decided", Line(r.DecidedBy))
	p.header("Reason", Line(r.Reason))
	p.header("Code", Line(r.Code))
	for _, a := range r.Attachments {
		p.header("File", fmt.Sprintf("%s, %s, %s", Line(a.Name), Line(a.Type), size(a.Size)))
	}
	p.header("HTML", Line(r.HTML))
	p.header("Folder", Line(r.Folder))
	p.line("")
	switch {
	case r.Plan != nil:
		p.plan(r.Plan)
		p.undoes(r.Undo)
	case r.Lists != nil:
		p.line("To unsubscribe from:")
		p.lists(r.Lists)
	case r.Deletes != nil:
		p.line("To be deleted for good, which is final:")
		for _, m := range r.Deletes {
			parts := []string{runewidth.FillRight(p.id(m.ID), 6), fill(p.when(m.Date), 16), text(m.From), Line(m.Subject)}
			p.hanging("> ", "", strings.Join(parts, "  "))
			if m.Outcome != "" {
				p.broken("  ", styleDim, strings.TrimSpace(text(m.Outcome)+" "+Line(m.Reason)))
			}
		}
	case r.TextMissing:
		p.line(p.in(styleDim, "The text is not kept any more."))
	default:
		p.body(r.Text, "", p.Width)
	}
	p.line("")
}

// lists are lists to leave, and what became of them.
func (p *painter) lists(all []commands.ListToLeave) {
	for _, l := range all {
		p.hanging("> ", "", strings.Join([]string{runewidth.FillRight(p.id(l.ID), 6), fill(p.when(l.Date), 16), text(l.From), Line(l.Subject)}, "  "))
		p.broken("  ", styleDim, strings.TrimSpace("asks "+Line(l.Host)+"  "+Line(l.List)+"  "+text(l.Outcome)+" "+Line(l.Reason)))
	}
}
