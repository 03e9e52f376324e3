package quoted

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marker raises the depth of history lines that have no quotation mark. Later
// lines never decide about earlier ones, except within the few lines of an
// introduction: so the beginning of a text is marked the same with or without
// the rest.
type Marker struct {
	lines   []Line
	Forward bool // the older message below is forwarded by the sender
	Above   bool // there is new text above
	Cut     bool // the text goes on, but not here
	Written bool // the lines are plain text: what introduces marked history keeps its form
}

// Mark marks the tidy lines of one part and leaves them tidy.
func Mark(lines []Line, m Marker) []Line {
	m.lines = lines
	for i := 0; i < len(m.lines); {
		i = m.step(i)
	}
	return m.lines
}

// step looks at the line at i and returns the index of the next one to look at.
func (m *Marker) step(i int) int {
	l := m.lines[i]
	switch {
	case l.blank() || l.Depth > 0:
		return i + 1
	case isForwardLine(l.Text):
		m.Forward = true
		return m.unwrap(i + 1)
	case digest.MatchString(l.Text):
		m.Forward = true
		return i + 1
	}
	if !m.Forward {
		if end := m.oldHeader(i); end > i {
			if m.deeper(end) {
				m.introduce(i, end)
				return end
			}
			if m.Above {
				m.raise(i, len(m.lines))
				return len(m.lines)
			}
			m.Forward = true // no new text above: the sender forwards it
			return end
		}
	}
	if end, strict := m.attribution(i); end > i {
		switch {
		case m.deeper(end):
			m.introduce(i, end)
			return end
		case m.Above && strict && !m.Forward && (end < len(m.lines) || m.Cut):
			// Some programs put no marks before quoted text.
			m.raise(i, len(m.lines))
			return len(m.lines)
		}
	}
	m.Above = true
	return i + 1
}

// introduce raises the lines from i up to end, which introduce marked history.
func (m *Marker) introduce(i, end int) {
	behind := m.raise(i, end)
	for ; i < behind && m.Written; i++ {
		m.lines[i].Bare = true
	}
}

// raise makes the lines from i up to end history, and the empty line behind
// them too if history follows. It returns the index behind them.
func (m *Marker) raise(i, end int) (behind int) {
	for end < len(m.lines) && m.lines[end].blank() {
		end++
	}
	if end < len(m.lines) && m.lines[end].Depth == 0 {
		for m.lines[end-1].blank() {
			end--
		}
	}
	deepen := end == len(m.lines)
	for ; i < end; i++ {
		if deepen || m.lines[i].Depth == 0 {
			m.lines[i].Depth = min(m.lines[i].Depth+1, maxQuotes)
		}
	}
	return end
}

// deeper reports whether the first text at i or below is quoted.
func (m *Marker) deeper(i int) bool {
	for ; i < len(m.lines); i++ {
		if !m.lines[i].blank() {
			return m.lines[i].Depth > 0
		}
	}
	return false
}

// unwrap takes the outermost quotation mark off a forwarded message, as some
// programs quote it, and returns the index of its first line.
func (m *Marker) unwrap(i int) int {
	if !m.deeper(i) {
		return i
	}
	for j := i; j < len(m.lines) && (m.lines[j].Depth > 0 || m.lines[j].blank()); j++ {
		m.lines[j].Depth = max(m.lines[j].Depth-1, 0)
	}
	return i
}

// oldHeader returns the index behind the lines that introduce an older message in
// the manner of Outlook: a line such as "Original Message", or its header fields,
// with or without a rule above them. It returns i without such lines.
func (m *Marker) oldHeader(i int) int {
	if isOriginalLine(m.lines[i].Text) {
		return i + 1
	}
	at, ruled := i, false
	if rule.MatchString(m.lines[i].Text) {
		ruled = true
		for at++; at < len(m.lines) && m.lines[at].blank(); at++ {
		}
		if at == len(m.lines) || m.lines[at].Depth > 0 {
			return i
		}
	}
	if isOriginalLine(m.lines[at].Text) {
		return at + 1
	}
	header := m.lines[i].Header || m.lines[at].Header
	need := 4
	if ruled || header {
		need = 3
	}
	if count, end := m.headerFields(at); count >= need {
		return end
	}
	if header && m.anyFields(at) >= 3 {
		return at + 1
	}
	return i
}

// headerFields reads the fields of a message header as mail programs write them above
// a quoted message. It returns how many of sender, date, recipient and subject it
// found, 0 without the sender or the subject, and the index behind the last field.
func (m *Marker) headerFields(i int) (count, end int) {
	const (
		most    = 14 // lines of a header
		wrapped = 4  // lines between two fields, of a long list of recipients
	)
	var seen [classes]bool
	stray := 0
lines:
	for n := i; n < min(i+most, len(m.lines)) && m.lines[n].Depth == 0; n++ {
		class := fieldNames[fieldName(m.lines[n].Text)]
		switch blank := m.lines[n].blank(); {
		case blank && (stray > 0 || end < n), class == noField && (n == i || stray == wrapped), class <= ofSubject && seen[class]:
			break lines
		case blank:
		case class == noField:
			stray++
		default:
			stray, seen[class], end = 0, true, n+1
		}
	}
	for _, c := range []field{ofSender, ofDate, ofRecipient, ofSubject} {
		if seen[c] {
			count++
		}
	}
	if !seen[ofSender] || !seen[ofSubject] {
		return 0, i
	}
	return count, end
}

// anyFields counts the lines at i that look like header fields in any language.
func (m *Marker) anyFields(i int) int {
	n := 0
	for end := min(i+8, len(m.lines)); i < end; i++ {
		if name := fieldName(m.lines[i].Text); name != "" && utf8.RuneCountInString(name) <= 30 {
			n++
		}
	}
	return n
}

// attribution returns the index behind the attribution at i, the lines that give the author
// and the time of the quoted text, and whether they are one for certain. It returns i for
// other lines. It prefers an end that a quotation follows.
func (m *Marker) attribution(i int) (end int, strict bool) {
	const most = 4 // lines of a wrapped attribution
	ends := func(l Line) bool { return endsWithColon(l.Text) }
	if !slices.ContainsFunc(m.lines[i:min(i+most, len(m.lines))], ends) {
		return i, false // before any pattern is tried on what is no attribution
	}
	var joined string
	end = i
	for n := i; n < len(m.lines) && n < i+most; n++ {
		l := m.lines[n]
		if l.blank() || l.Depth > 0 || len(joined)+len(l.Text) > maxAttribution {
			break
		}
		joined = strings.TrimSpace(joined + " " + l.Text)
		if n == i && !endsWithColon(l.Text) && !mayOpenAttribution(joined) {
			break
		}
		if !endsWithColon(l.Text) {
			continue
		}
		lenient, sure := attributionShape(joined)
		if !lenient || m.sentenceBefore(i, n) {
			continue
		}
		if m.deeper(n + 1) {
			return n + 1, sure
		}
		if sure && !strict {
			end, strict = n+1, true
		}
	}
	return end, strict
}

// sentenceBefore reports whether the lines from i to n are a sentence and then an
// attribution that needs only the lines behind it. The full stop of "kl." or
// "mai." does not end a sentence.
func (m *Marker) sentenceBefore(i, n int) bool {
	joined := ""
	for k := n; k > i; k-- {
		joined = strings.TrimSpace(m.lines[k].Text + " " + joined)
		before := m.lines[k-1].Text
		if !strings.ContainsAny(before[len(before)-1:], ".!?;") {
			continue
		}
		if lenient, _ := attributionShape(joined); lenient && (!namesTime(m.lines[i].Text) || namesTime(joined) && year.MatchString(joined)) {
			return true
		}
	}
	return false
}

// namesTime reports whether a text begins as attributions that begin with the time.
func namesTime(s string) bool {
	s = strings.TrimLeft(s, " ")
	return opensAttribution(s) || startsWithDigit(s) || weekday().MatchString(strings.ToLower(s))
}

// maxAttribution is the largest length of an attribution, in bytes.
const maxAttribution = 500

func endsWithColon(s string) bool {
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：")
}

// mayOpenAttribution reports whether a line that does not end an attribution
// may be its first line: it has a time, or a person's address, or begins with
// a word for quoting.
func mayOpenAttribution(s string) bool {
	if strings.Contains(s, "<") || hasDigit(s) && (namesTime(s) || strings.Contains(s, "@") || year.MatchString(s)) {
		return true
	}
	low := strings.ToLower(s)
	return weekday().MatchString(low) || quoting.MatchString(low)
}

// attributionShape reports whether a text that ends with a colon may be an
// attribution, if a quotation follows, and whether it must be one.
func attributionShape(s string) (lenient, strict bool) {
	low := strings.ToLower(s)
	digit, dated, timed, address := hasDigit(s), year.MatchString(s), clock.MatchString(s), strings.Contains(s, "@")
	at := verbOfWriting(low)
	switch {
	case at < 0:
		// Several languages name time and sender only.
		return dated && timed && (address || namesTime(s)), false
	case digit && namesTime(s), timed, address:
		lenient = true
	default:
		// "Ann Lee wrote:" or "Quoting Ann Lee:", and no more than that.
		lenient = utf8.RuneCountInString(s) <= 60 && (strings.Trim(low[at:], " :：\u00A0") == "" || quoting.MatchString(low))
	}
	// Notices name the author of new text too, but not by address.
	return lenient, lenient && dated && address && strings.Contains(s, "<")
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

var (
	// A year, or a date in digits.
	year = regexp.MustCompile(`(?:^|\D)(?:(?:19|20)\d\d|\d{1,2}[./-]\d{1,2}[./-]\d{1,2})(?:\D|$)`)
	// A time such as 9:05 or 21.05.
	clock = regexp.MustCompile(`(?:^|\D)\d{1,2}[:.hH]\d\d(?:\D|$)|[時点]|시 `)
	// A separator line.
	rule = regexp.MustCompile(`^(?: *[-_=*–—─━]){3} *(?:[-_=*–—─━] *)*$`)
	// The beginning of a message in a mailing list's digest, whose header looks like a
	// quoted one.
	digest       = regexp.MustCompile(`^Message: \d{1,4}$`)
	forwardedBy  = regexp.MustCompile(`^--[-\s]*(?i:forwarded by|weitergeleitet von|réacheminé par|transféré par|reenviado por|inoltrato da) `)
	aboveAnswers = regexp.MustCompile(`^(?:--|__|==|[—–─])`) // before originalWords
)

// undecorated returns the words of a line such as "----- Original Message -----"
// in lower case, and whether anything surrounds them.
func undecorated(s string) (words string, decorated bool) {
	const longest = 200
	if len(s) > longest {
		return "", false
	}
	words = strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("-_=*~–—─━<>[]【】|#+", r)
	})
	decorated = len(s)-len(words) >= 4
	if w := strings.TrimRight(words, ":： "); w != words {
		words, decorated = w, true
	}
	return strings.ToLower(words), decorated
}

// isForwardLine reports whether a line introduces a forwarded message.
func isForwardLine(s string) bool {
	words, decorated := undecorated(s)
	return decorated && (slices.Contains(forwardWords, words) || forwardedBy.MatchString(s))
}

// isOriginalLine reports whether a line introduces the answered message.
func isOriginalLine(s string) bool {
	words, decorated := undecorated(s)
	return decorated && slices.Contains(originalWords, words) && aboveAnswers.MatchString(s)
}

// fieldName returns the name of a header field in lower case, without the marks for
// bold letters, "" where the line is not a field.
func fieldName(s string) string {
	s = strings.TrimLeft(s, "*_ \t")
	i := strings.IndexAny(s, ":：")
	if i < 0 || i > 60 {
		return ""
	}
	return strings.ToLower(strings.TrimRight(s[:i], "*_ \t\u00A0"))
}
