package message

import (
	"bytes"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/quoted"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/internal/visible"
)

// PartText returns the text of an attachment, at most maxRunes runes of it, and
// whether there was more. raw is its transferred octets or a prefix of them, which
// counts as truncated when it is shorter than p.Size. ok is false for other types
// than text, HTML, calendars, messages, and data written as text such as JSON, XML
// or YAML.
//
// hidden counts the characters of HTML that a person would not see.
//
// HTML is rendered as by visible.Lines, a calendar as a few lines for each event, and
// a message as its From, To, Date and Subject and its Text. The text is cleaned.
// Quoted history is marked only in messages and HTML, for elsewhere a ">" at the
// beginning of a line may mean something else.
func PartText(w *visible.Work, p *Part, raw []byte, maxRunes int) (text string, hidden int, truncated, ok bool) {
	if p == nil || len(p.Children) > 0 {
		return "", 0, false, false
	}
	truncated = int64(len(raw)) < p.Size
	var cut bool
	switch kind := textKind(p); kind {
	case notText:
		return "", 0, false, false
	case messageText:
		text, hidden, cut = innerMessage(w, DecodeBody(raw, p.Encoding), maxRunes)
	case htmlText:
		q := *p
		q.Type, q.Subtype = "text", "html"
		one := partPassage(w, &q, raw, max(maxRunes, 0))
		text, hidden, cut = quoted.Join(one.lines), one.hidden, one.cut
	case eventsText:
		b := DecodeBody(raw, p.Encoding)
		cut = len(b) > maxCalendar
		if text = calendarLines(calendarEvents(b)); text != "" {
			break
		}
		fallthrough
	default:
		b := raw
		if limit := min(max(maxRunes, 0)*8+minPlain, maxHTML); len(b) > 3*limit {
			b, cut = b[:3*limit], true
		}
		b = DecodeBody(b, p.Encoding)
		charset := p.Param("charset")
		if isBinary(b, charset) {
			return "", 0, false, false
		}
		s := plain.Text(rfc5322.DecodeText(b, charset))
		text = strings.TrimRight(strings.Trim(s, "\n"), " \t\u00A0\n")
	}
	text, more := plain.Head(text, maxRunes)
	return text, hidden, truncated || cut || more, true
}

type kindOfText int

const (
	notText kindOfText = iota
	plainText
	htmlText
	eventsText
	messageText
)

// IsCalendar reports whether a part is an iCalendar object, by its type or its name.
func IsCalendar(p *Part) bool { return textKind(p) == eventsText }

// textKind chooses by media type, or by file name where the type is generic.
func textKind(p *Part) kindOfText {
	switch p.Type {
	case "text":
		switch p.Subtype {
		case "html", "xhtml":
			return htmlText
		case "calendar", "x-vcalendar":
			return eventsText
		case "rtf", "enriched", "richtext":
			return notText
		}
		return plainText
	case "message":
		switch p.Subtype {
		case "rfc822", "global", "news":
			return messageText
		case "delivery-status", "disposition-notification", "feedback-report", "global-delivery-status", "global-disposition-notification", "global-headers":
			return plainText
		}
	case "application":
		switch p.Subtype {
		case "xhtml+xml":
			return htmlText
		case "ics", "calendar":
			return eventsText
		case "json", "xml", "yaml", "x-yaml", "toml", "csv", "x-csv", "x-ndjson", "jsonl", "javascript", "x-javascript", "markdown", "x-sh", "sql", "x-sql", "x-tex", "x-latex", "x-patch", "x-subrip", "xml-dtd":
			return plainText
		case "octet-stream", "binary", "x-unknown", "":
			return kindOfName(p.Filename)
		}
		if strings.HasSuffix(p.Subtype, "+json") || strings.HasSuffix(p.Subtype, "+xml") || strings.HasSuffix(p.Subtype, "+yaml") {
			return plainText
		}
	}
	return notText
}

func kindOfName(name string) kindOfText {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".text", ".log", ".md", ".markdown", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".diff", ".patch", ".sql", ".tex", ".srt", ".vcf":
		return plainText
	case ".html", ".htm", ".xhtml":
		return htmlText
	case ".ics", ".ical":
		return eventsText
	case ".eml":
		return messageText
	}
	return notText
}

// isBinary reports whether octets labelled as text are binary data.
func isBinary(b []byte, charset string) bool {
	const window = 8 << 10
	head := b[:min(len(b), window)]
	if bytes.HasPrefix(head, []byte("%PDF-")) || bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("{\\rtf")) {
		return true
	}
	charset = strings.ToLower(charset)
	if strings.HasPrefix(charset, "utf-16") || strings.HasPrefix(charset, "utf-32") || strings.HasPrefix(charset, "ucs-") || bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return false
	}
	return bytes.Count(head, []byte{0}) > len(head)/50
}

// innerMessage renders a message within a message.
func innerMessage(w *visible.Work, raw []byte, maxRunes int) (text string, hidden int, truncated bool) {
	const maxField = 1000 // runes of a header field
	e := Parse(raw)
	var out strings.Builder
	put := func(name, value string) {
		if value == "" {
			return
		}
		value, cut := plain.Head(plain.Line(value), maxField)
		truncated = truncated || cut
		out.WriteString(name + ": " + value + "\n")
	}
	for _, name := range []string{"From", "To", "Cc"} {
		var list []string
		for _, a := range e.Header.Addresses(name) {
			list = append(list, a.String())
		}
		put(name, strings.Join(list, ", "))
	}
	if date, ok := e.Header.Date(); ok {
		put("Date", date.Format(time.RFC3339))
	}
	put("Subject", e.Header.Text("Subject"))
	head := strings.TrimRight(out.String(), "\n")
	left := maxRunes - utf8.RuneCountInString(head)
	if head != "" {
		left -= len("\n\n")
	}
	r := Read(w, e.Root, e.Raw, max(left, 0))
	body, next := r.Page(0, max(left, 0))
	truncated = truncated || r.Cut || next > 0
	switch {
	case body == "":
		return head, r.Hidden, truncated
	case head == "":
		return body, r.Hidden, truncated
	}
	return head + "\n\n" + body, r.Hidden, truncated
}

// calendarLines renders events for a reader.
func calendarLines(events []calendarEvent) string {
	var out strings.Builder
	for i, e := range events {
		if i > 0 {
			out.WriteString("\n")
		}
		put := func(name, value string) {
			if value != "" {
				out.WriteString(name + ": " + value + "\n")
			}
		}
		put("Event", e.Summary)
		put("Method", e.Method)
		put("When", when(e.Event))
		put("Where", e.Location)
		put("Organizer", e.Organizer)
		if e.Attendee != "" {
			put("Answer", e.Attendee+": "+e.State)
		}
		if description := strings.Trim(plain.Text(e.description), "\n \t"); description != "" {
			out.WriteString("\n" + description + "\n")
		}
	}
	return strings.TrimRight(out.String(), "\n")
}

// when says when an event is, in its own zone.
func when(e Event) string {
	const day, clock = "Mon 2 Jan 2006", "15:04"
	var s string
	switch {
	case e.Start.IsZero():
	case e.AllDay:
		s = e.Start.Format(day)
		if e.End.After(e.Start) {
			s += " to " + e.End.Format(day)
		}
		s += ", all day"
	default:
		s = e.Start.Format(day + " " + clock)
		if end := e.End.In(e.Start.Location()); e.End.After(e.Start) {
			if e.Start.Format(day) == end.Format(day) {
				s += " to " + end.Format(clock)
			} else {
				s += " to " + end.Format(day+" "+clock)
			}
		}
		switch {
		case !e.Local:
			s += " (UTC" + e.Start.Format("-07:00") + ")"
		case e.Zone != "":
			s += " (" + e.Zone + ")"
		}
	}
	if e.Recurring {
		s = strings.TrimPrefix(s+", repeated", ", ")
	}
	return s
}
