package commands

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/width"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// The question that a person is asked before a message leaves. What is not from the
// agent comes first, a field a line; everything that the agent wrote stands in
// quotes or on lines of its own that begin with >, broken before a window would
// break them, and without a character that hides or moves text. So nothing that it
// wrote can look like a part of the question, and nothing that it writes can push
// a part of the question out of sight.

// Bounds of what a question shows of the text.
const (
	maxQuestionChars = 8000
	maxQuestionLines = 200
	maxQuestionName  = 60 // characters of a name of a person or file
	questionWidth    = 66 // columns of a line that the agent wrote
)

// questionText is the question about a message that waits. It is not ok when the
// text is longer than a question shows, holds what a client that renders Markdown would not
// show, or has other HTML beside it: nobody says yes to what they did not see.
func questionText(s *outbox.Decision) (question string, ok bool) {
	switch s.Kind {
	case mail.OutboxDelete:
		return deletionQuestion(s)
	case mail.OutboxUnsubscribe:
		return unsubscriptionQuestion(s)
	case mail.OutboxPlan:
		return planQuestion(s)
	}
	var b strings.Builder
	b.WriteString("Send this message? Nothing leaves unless you approve it.\n\n")
	row := func(name, value string) { questionRow(&b, name, value) }
	from := mail.Address{Addr: s.From}
	if s.HeaderFrom.Addr == s.From {
		from.Name = s.HeaderFrom.Name
	}
	row("From:", personShown(from)+", account "+s.Account)
	left := map[string]bool{}
	for _, r := range s.Recipients {
		left[r] = true
	}
	for _, kind := range []struct {
		name string
		list []mail.Address
	}{{"To:", s.To}, {"Cc:", s.CC}, {"Bcc:", s.BCC}} {
		for _, a := range kind.list {
			delete(left, a.Addr)
			row(kind.name, personShown(a))
		}
	}
	for _, r := range s.Recipients { // an address that is written in another way above
		if left[r] {
			row("Goes to:", addressShown(r))
		}
	}
	if ref, err := mail.ParseRef(s.ReplyTo); err == nil {
		row("Answers:", "message "+harmless(ref.Short(false)))
	}
	if len(s.New) > 0 {
		var people []string
		for _, r := range s.New {
			people = append(people, addressShown(r))
		}
		row("New:", "nothing is known to have been sent to "+strings.Join(people, ", ")+" before")
	}
	row("Subject:", quoted(s.Subject))
	for _, f := range s.Files {
		row("File:", fmt.Sprintf("%s, %s, %s", quoted(plain.Clip(f.Name, maxQuestionName)), harmless(f.Type), answer.Count(int(f.Size), "byte", "bytes")))
	}
	if s.Markdown {
		row("HTML:", htmlMade)
	}
	row("Outbox:", s.ID)
	row("Why:", s.Why())
	text := strings.TrimRight(plain.LineEnds(s.Body), "\n")
	if !fits(text) || hides.MatchString(text) || s.HTML != "" {
		return "", false
	}
	if text == "" {
		b.WriteString("\nThe message has no text.\n")
		return b.String(), true
	}
	b.WriteString("\nThe agent wrote or quotes this text, on the lines that begin with >:\n\n")
	for line := range strings.SplitSeq(text, "\n") {
		for _, l := range wrapped(harmless(line), questionWidth) {
			b.WriteString(strings.TrimRight("> "+l, " ") + "\n")
		}
	}
	return b.String(), true
}

// questionRow writes one field of a question.
func questionRow(b *strings.Builder, name, value string) {
	lines := wrapped(value, questionWidth)
	fmt.Fprintf(b, "%-9s%s\n", name, lines[0])
	for _, l := range lines[1:] {
		fmt.Fprintf(b, "        > %s\n", l)
	}
}

// personShown is an address before the name that the agent gave it: a name can look
// like another address.
func personShown(a mail.Address) string {
	shown := addressShown(a.Addr)
	if a.Addr == "" {
		shown = "no address"
	}
	if a.Name != "" {
		shown += ", called " + quoted(plain.Clip(a.Name, maxQuestionName))
	}
	return shown
}

// addressShown is an address with what it is in ASCII, where letters that look like
// others could stand in it.
func addressShown(address string) string {
	if !strings.ContainsFunc(address, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return harmless(address)
	}
	local, domain := address, ""
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		local, domain = address[:i], address[i:]
		if ascii, err := idna.ToASCII(domain[1:]); err == nil {
			domain = "@" + ascii
		}
	}
	ascii := strconv.QuoteToASCII(local)
	return harmless(address) + " (not plain letters: " + ascii[1:len(ascii)-1] + harmless(domain) + ")"
}

// hides finds what Markdown does not show, or shows as something else: tags and
// comments of HTML, and what a link refers to (CommonMark sections 4.6, 4.7 and 6.6).
var hides = regexp.MustCompile(`<(?:[!?]|/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>]|$))|(?m:^[ >]*\[[^\]\n]*\]:)`)

// fits reports whether a question shows all of a text.
func fits(text string) bool {
	return utf8.RuneCountInString(text) <= maxQuestionChars && strings.Count(text, "\n") < maxQuestionLines
}

func quoted(s string) string { return `"` + harmless(inQuotes.Replace(s)) + `"` }

// inQuotes also breaks what a client that renders Markdown would act on.
var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "<", `\<`, "`", "\\`", "[", `\[`)

// harmless writes out every character that a person would not see as one: controls,
// those that turn the direction of text or have no width, and what is piled on
// another character more than writing needs.
func harmless(s string) string {
	var b strings.Builder
	marks := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
			marks++
		default:
			marks = 0
		}
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r == utf8.RuneError, r == ' ':
			b.WriteRune(r)
		case marks > 3, plain.Unclear(r):
			fmt.Fprintf(&b, "\\u{%X}", r)
		case unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wrapped breaks a line so that no part is wider than that many columns, at a space
// where there is one. There is always one part.
func wrapped(line string, columns int) []string {
	var parts []string
	start, space, used := 0, -1, 0
	for i, r := range line {
		w := columnsOf(r)
		for used+w > columns { // twice where a wide character follows what a space left
			cut := i
			if space > start {
				cut = space
			}
			parts = append(parts, line[start:cut])
			start, space, used = cut, -1, 0
			for _, c := range line[start:i] {
				used += columnsOf(c)
			}
		}
		if used += w; r == ' ' {
			space = i + 1
		}
	}
	return append(parts, line[start:])
}

func columnsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	return 1
}
