package screen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
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

// id returns a message's id as it is typed here, of the one that an answer has.
func (p *painter) id(long any) string {
	s, _ := long.(string)
	if p.ID != nil {
		s = p.ID(s)
	}
	return Line(s)
}

// isPOP3 reports whether a message is in a mailbox that has no flags.
func isPOP3(m object) bool { return strings.HasPrefix(m.Str("message_id"), "pop3:") }

// flags says what a person understands of the flags of a message; empty for one that was read
// and has no other.
func flags(list []any) string {
	var words []string
	if !slices.Contains(list, any(`\Seen`)) {
		words = append(words, "unread")
	}
	for _, f := range list {
		if f := text(f); f != `\Seen` && f != `\Recent` {
			words = append(words, strings.ToLower(strings.TrimLeft(f, `\$`)))
		}
	}
	return strings.Join(words, ", ")
}

// marks returns the flags of a message for a list, in one character each.
func marks(m object) string {
	mark := []byte("N  ")
	if isPOP3(m) {
		mark[0] = ' '
	}
	for _, f := range m.Strings("flags") {
		switch f {
		case `\Seen`:
			mark[0] = ' '
		case `\Flagged`:
			mark[1] = '*'
		}
	}
	if m.Get("has_attachments") == true {
		mark[2] = '@'
	}
	return string(mark)
}

// correspondent is who wrote a message, in a column; to whom, where the account itself did.
func correspondent(m object, columns int) string {
	if to := text(m.Get("to")); m.Get("own") == true && to != "" {
		return "to " + to
	}
	return sender(text(m.Get("from")), columns)
}

// messages draws a list, one message a line, or two lines for each in a narrow
// window.
func (p *painter) messages(data object) bool {
	list, ok := data.Objects("messages")
	if !ok {
		return false
	}
	idWidth, longest := 3, 0
	for _, m := range list {
		if m.Str("message_id") == "" {
			return false
		}
		longest = max(longest, runewidth.StringWidth(correspondent(m, p.Width)))
		idWidth = max(idWidth, runewidth.StringWidth(p.id(m.Get("message_id"))))
	}
	if len(list) == 0 {
		return true
	}
	p.line(p.in(styleBold, p.folder(data)))
	apart := idWidth > p.Width/2 // on a line of its own
	if apart {
		idWidth = 0
	}
	rest := p.Width - 4 - idWidth - 2 - 16 - 2
	wide := rest >= 30
	from := max(12, min(longest, rest*2/5))
	for _, m := range list {
		date := p.when(cmp.Or(m.Str("date"), m.Str("received")))
		head := marks(m) + " " + fill(p.id(m.Get("message_id")), idWidth) + "  " + fill(date, 16) + "  "
		style := ""
		if strings.HasPrefix(head, "N") {
			style = styleBold
		}
		subject := cmp.Or(strings.TrimSpace(text(m.Get("subject"))), "(no subject)")
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
			p.line("     ", p.id(m.Get("message_id")))
		}
		p.doubts("     ", m)
		if s := m.Str("snippet"); s != "" {
			p.broken("     ", styleDim, text(linked(s)))
		}
	}
	p.legend(list)
	p.line(p.in(styleDim, "Read one: "+p.typed("read ")+p.quote(p.id(list[0].Get("message_id")))))
	return true
}

// legend explains the marks of a list, as far as it has any.
func (p *painter) legend(list []object) {
	var used []string
	for i, meaning := range []string{"N unread", "* flagged", "@ attachments"} {
		if slices.ContainsFunc(list, func(m object) bool { return marks(m)[i] != ' ' }) {
			used = append(used, meaning)
		}
	}
	if len(used) > 0 {
		p.wrapped("", styleDim, "Marks: "+strings.Join(used, ", ")+".")
	}
}

// doubtsOf says where the sender of a message is not who it seems, or does not get an answer,
// each a field and its value.
func doubtsOf(m object) (all [][2]string) {
	if m.Str("sender") == "failed" {
		all = append(all, [2]string{"Sender", "forged, as the mail server says"})
	}
	if other := text(m.Get("posing_as")); other != "" {
		all = append(all, [2]string{"Name", "it shows another address: " + other})
	}
	if to := text(m.Get("answers_to")); to != "" {
		all = append(all, [2]string{"Answers", "they go to " + to})
	}
	if m.Get("by_agent") == true {
		all = append(all, [2]string{"Draft", "written by an agent"})
	}
	return all
}

// doubts is doubtsOf in a list.
func (p *painter) doubts(indent string, m object) {
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

// folder returns the folder and the account of an answer.
func (p *painter) folder(data object) string {
	return strings.Trim(text(data.Get("account_id"))+", "+text(data.Get("folder")), ", ")
}

// thread draws a conversation: each message below the one it answers, or where texts are
// shown one below the other, with what is new in it.
func (p *painter) thread(data object) bool {
	list, ok := data.Objects("messages")
	if !ok {
		return false
	}
	depth, texts := map[string]int{}, false
	for _, m := range list {
		if m.Str("message_id") == "" {
			return false
		}
		texts = texts || m.Str("body_text") != ""
	}
	p.broken("", styleBold, text(data.Get("subject")))
	p.line(p.in(styleDim, p.folder(data)))
	subject := text(data.Get("subject"))
	for i, m := range list {
		d := 0
		parent, known := depth[m.Str("parent_message_id")]
		if known {
			d = min(parent+1, 10)
		}
		depth[m.Str("message_id")] = d
		indent, style := "", ""
		if d > 0 && !texts {
			indent = strings.Repeat("  ", d-1) + "└ "
		}
		if texts || strings.HasPrefix(marks(m), "N") {
			style = styleBold
		}
		if texts {
			p.line("")
		}
		id := p.id(m.Get("message_id"))
		head := indent + marks(m) + " " + runewidth.FillRight(id, 2) + "  "
		head += Cut(fill(p.when(cmp.Or(m.Str("date"), m.Str("received"))), 16)+"  "+text(m.Get("from")), p.Width-runewidth.StringWidth(head))
		p.line(p.in(style, strings.TrimRight(head, " ")))
		if known && texts && m.Str("parent_message_id") != list[i-1].Str("message_id") {
			p.line("    ", p.in(styleDim, "answers "+p.id(m.Get("parent_message_id"))))
		}
		if s := text(m.Get("subject")); s != "" && !strings.EqualFold(strings.TrimPrefix(s, "Re: "), subject) {
			p.line(strings.Repeat(" ", runewidth.StringWidth(indent)+4), Cut("Subject: "+s, p.Width-runewidth.StringWidth(indent)-4)) // it could be a sentence of ours
		}
		p.doubts("     ", m)
		if s := m.Str("body_text"); s != "" {
			p.quoted(linked(s), "    | ", "", p.Width)
		}
	}
	p.legend(list)
	return true
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

// message draws a mail, or several with a rule between them.
func (p *painter) message(data object) bool {
	list := []object{}
	if m, ok := data.Get("message").(object); ok {
		list = append(list, m)
	} else if list, ok = data.Objects("messages"); !ok || len(list) == 0 {
		return false
	}
	for _, m := range list {
		if m.Str("message_id") == "" || m.Get("body_text") == nil {
			return false
		}
	}
	for i, m := range list {
		if i > 0 {
			p.line("")
			p.line(p.in(styleDim, strings.Repeat("─", min(p.Width, 100))))
		}
		p.mail(m)
	}
	return true
}

func (p *painter) mail(m object) {
	p.header("From", text(m.Get("from")))
	for _, d := range doubtsOf(m) { // fields of their own: a long name goes on beside them
		p.header(d[0], d[1])
	}
	if m.Str("sender") == "verified" {
		p.header("Sender", "verified by the mail server")
	}
	p.header("To", text(m.Get("to")))
	p.header("Cc", text(m.Get("cc")))
	p.header("Date", p.when(m.Str("date")))
	p.header("Subject", text(m.Get("subject")))
	if list, ok := m.Get("flags").([]any); ok && !isPOP3(m) {
		p.header("Flags", flags(list))
	}
	if list, ok := m.Objects("headers"); ok {
		for _, h := range list {
			p.hanging("", styleDim, text(h.Get("name"))+": "+text(h.Get("value")))
		}
	}
	p.line("")
	for _, note := range m.Strings("notes") {
		p.wrapped("", styleDim, "["+text(note)+"]")
	}
	if m.Str("body_text") != "" || m.Str("body_html") == "" && len(m.Strings("notes")) == 0 {
		p.body(linked(m.Str("body_text")), styleDim, min(p.Width, 100))
	}
	p.line("")
	if m.Get("truncated") == true {
		p.line(p.in(styleDim, "[the text goes on: --chars or --from-char shows more]"))
	}
	if n := text(m.Get("hidden_chars")); n != "" {
		p.wrapped("", styleDim, n+" hidden characters are left out: '"+p.typed("mail raw ")+p.quote(p.id(m.Get("message_id")))+"' shows all of the source.")
	}
	if html := m.Str("body_html"); html != "" {
		p.line(p.in(styleBold, "HTML"))
		p.quoted(html, "| ", "", p.Width)
	}
	if id := p.id(m.Get("returned_message_id")); id != "" {
		p.line(p.in(styleDim, "[what came back: "+id+"]"))
	}
	p.files(m, p.id(m.Get("message_id")))
	p.line(p.in(styleDim, "Id: "+p.id(m.Get("message_id"))))
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

func (p *painter) files(m object, id string) {
	list, ok := m.Objects("attachments")
	if !ok || len(list) == 0 {
		return
	}
	p.line(p.in(styleBold, "Attachments"))
	var told []string // the same invitation comes as a form of the text and as a file
	for _, a := range list {
		name := text(a.Get("filename"))
		if name == "" {
			name = "(no name)"
		}
		part := ""
		if s := text(a.Get("part_id")); s != "" {
			part = "[" + s + "] "
		}
		p.hanging("  ", "", fmt.Sprintf("%s%s, %s, %s", part, name, text(a.Get("content_type")), size(a.Get("size_bytes"))))
		if t := a.Str("extracted_text"); t != "" {
			p.quoted(linked(t), "    | ", "", p.Width)
		}
		if events, ok := a.Objects("events"); ok {
			for _, e := range events {
				if form := fmt.Sprint(e); !slices.Contains(told, form) {
					told = append(told, form)
					p.object(e, "    ")
				}
			}
		}
	}
	if id != "" {
		p.line(p.in(styleDim, "Save one: "+p.typed("save ")+p.quote(id)+" "+text(list[0].Get("part_id"))))
	}
}

// size returns a number of bytes in the usual words.
func size(v any) string {
	n, ok := v.(json.Number)
	if !ok {
		return "size unknown"
	}
	b, err := n.Float64()
	switch {
	case err != nil:
		return "size unknown"
	case b < 1000:
		return fmt.Sprintf("%.0f bytes", b)
	case b < 1e6:
		return fmt.Sprintf("%.1f kB", b/1e3)
	}
	return fmt.Sprintf("%.1f MB", b/1e6)
}

// stateOf is the state of an entry of the outbox, in the words of the sentences about it.
func stateOf(entry object) string {
	if state := text(entry.Get("state")); state != "accepted" { // by the server
		return state
	}
	return "sent"
}

// outgoing draws a message of the outbox with everything that is or would be sent:
// the agent's text is behind the mark of a body, and none of it is dim.
func (p *painter) outgoing(data object) bool {
	text_, isText := data.Get("text").(string)
	if data.Str("outbox_id") == "" || !isText {
		return false
	}
	p.header("Outbox", text(data.Get("outbox_id"))+" ("+stateOf(data)+")")
	p.header("Account", text(data.Get("account_id")))
	p.header("From", text(data.Get("from")))
	for _, kind := range []struct{ name, field string }{{"To", "to"}, {"Cc", "cc"}, {"Bcc", "bcc"}} {
		for _, a := range data.Strings(kind.field) {
			p.header(kind.name, text(a))
		}
	}
	// Names in the header can say anything: these addresses are the recipients.
	p.header("Goes to", text(data.Get("recipients")))
	for _, a := range data.Strings("not_plain") {
		p.header("Beware", text(a))
	}
	p.header("Subject", text(data.Get("subject")))
	p.header("By", text(data.Get("principal"))+", "+p.when(data.Str("created")))
	p.header("Why", text(data.Get("why")))
	p.header("Decided", text(data.Get("decided_by")))
	p.header("Reason", text(data.Get("reason")))
	p.header("Code", text(data.Get("code")))
	if list, ok := data.Objects("attachments"); ok {
		for _, a := range list {
			p.header("File", fmt.Sprintf("%s, %s, %s", text(a.Get("name")), text(a.Get("content_type")), size(a.Get("size_bytes"))))
		}
	}
	p.header("HTML", text(data.Get("html")))
	p.header("Folder", text(data.Get("folder")))
	p.line("")
	if list, ok := data.Objects("deletes"); ok {
		p.line("To be deleted for good:")
		for _, m := range list {
			parts := []string{runewidth.FillRight(p.id(m.Get("message_id")), 6), fill(p.when(m.Str("date")), 16), text(m.Get("from")), text(m.Get("subject"))}
			p.hanging("> ", "", strings.Join(parts, "  "))
			if outcome := text(m.Get("outcome")); outcome != "" {
				p.broken("  ", styleDim, strings.TrimSpace(outcome+" "+text(m.Get("reason"))))
			}
		}
		p.line("")
		return true
	}
	if data.Get("text_missing") == true {
		p.line(p.in(styleDim, "The text is not kept any more."))
	} else {
		p.body(text_, "", p.Width)
	}
	p.line("")
	return true
}
