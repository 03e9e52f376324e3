package quoted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marker raises the depth of the lines that are history although no quotation
// mark stands before them. What follows a line never decides about lines above
// it, save for the few lines of an introduction: so the beginning of a text is
// marked the same whether the rest is there or not.
type Marker struct {
	lines   []Line
	Forward bool // an older message below is what the sender passes on
	Above   bool // something new stands above
	Cut     bool // the text goes on, but not here
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
	case isDigestLine(l.Text):
		m.Forward = true
		return i + 1
	}
	if !m.Forward {
		if end := m.oldHeader(i); end > i {
			if m.deeper(end) {
				m.raise(i, end)
				return end
			}
			if m.Above {
				m.raise(i, len(m.lines))
				return len(m.lines)
			}
			m.Forward = true // nothing is said about it: it is passed on
			return end
		}
	}
	if end, strict := m.attribution(i); end > i {
		switch {
		case m.deeper(end):
			m.raise(i, end)
			return end
		case m.Above && strict && !m.Forward && (end < len(m.lines) || m.Cut):
			// Some programs put no marks before what they quote.
			m.raise(i, len(m.lines))
			return len(m.lines)
		}
	}
	m.Above = true
	return i + 1
}

// raise makes the lines from i to before end history, and with them the empty
// line behind them if history follows.
func (m *Marker) raise(i, end int) {
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

// unwrap takes the outermost quotation mark off a forwarded message, which some
// programs quote, and returns the index of its first line.
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
// the manner of Outlook: a line that says so, or its header fields, with a rule
// above them or without. It returns i when there are none.
func (m *Marker) oldHeader(i int) int {
	if isOriginalLine(m.lines[i].Text) {
		return i + 1
	}
	at, rule := i, false
	if isRule(m.lines[i].Text) {
		rule = true
		for at++; at < len(m.lines) && m.lines[at].blank(); at++ {
		}
		if at == len(m.lines) || m.lines[at].Depth > 0 {
			return i
		}
	}
	if isOriginalLine(m.lines[at].Text) {
		return at + 1
	}
	fields := m.headerFields(at)
	header := m.lines[i].Header || m.lines[at].Header
	need := 4
	if rule || header {
		need = 3
	}
	if fields.end > at && fields.count >= need {
		return fields.end
	}
	if header && m.anyFields(at) >= 3 {
		return at + 1
	}
	return i
}

// headerBlock is what headerFields found.
type headerBlock struct {
	count int // of sender, date, recipient and subject
	end   int // index behind the last field
}

// headerFields reads the fields of a message header as mail programs write them
// above what they quote. The sender and the subject must be among them.
func (m *Marker) headerFields(i int) headerBlock {
	const (
		most    = 14 // lines of a header
		wrapped = 4  // lines between two fields, of a long list of recipients
	)
	var b headerBlock
	var seen [classes]bool
	stray := 0
	for n := i; n < len(m.lines) && n < i+most; n++ {
		l := m.lines[n]
		if l.Depth > 0 {
			break
		}
		if l.blank() {
			if stray > 0 || b.end < n {
				break
			}
			continue
		}
		class := fieldClass(l.Text)
		if class == noField {
			if stray++; n == i || stray > wrapped {
				break
			}
			continue
		}
		if class <= ofSubject && seen[class] {
			break
		}
		stray = 0
		seen[class] = true
		b.end = n + 1
	}
	for _, c := range []field{ofSender, ofDate, ofRecipient, ofSubject} {
		if seen[c] {
			b.count++
		}
	}
	if !seen[ofSender] || !seen[ofSubject] {
		return headerBlock{}
	}
	return b
}

// anyFields counts the lines at i that look like header fields in any language.
func (m *Marker) anyFields(i int) int {
	n := 0
	for end := min(i+8, len(m.lines)); i < end; i++ {
		name, _, ok := cutColon(m.lines[i].Text)
		if ok && name != "" && utf8.RuneCountInString(name) <= 30 {
			n++
		}
	}
	return n
}

// attribution returns the index behind the lines at i that name who wrote what
// follows and when, and whether they could be nothing else. It returns i when
// they are something else. It prefers an end that a quotation follows.
func (m *Marker) attribution(i int) (end int, strict bool) {
	const most = 4 // lines that it is wrapped over
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
// "mai." ends none.
func (m *Marker) sentenceBefore(i, n int) bool {
	joined := ""
	for k := n; k > i; k-- {
		joined = strings.TrimSpace(m.lines[k].Text + " " + joined)
		before := m.lines[k-1].Text
		if !strings.ContainsAny(before[len(before)-1:], ".!?;") {
			continue
		}
		if lenient, _ := attributionShape(joined); lenient && (!namesTime(m.lines[i].Text) || namesTime(joined) && hasYear(joined)) {
			return true
		}
	}
	return false
}

// namesTime reports whether a text begins as an attribution that begins with the
// time.
func namesTime(s string) bool {
	s = strings.TrimLeft(s, " ")
	return opensAttribution(s) || startsWithDigit(s) || isWeekday(strings.ToLower(s))
}

// maxAttribution is how long an attribution is at most, in bytes.
const maxAttribution = 500

func endsWithColon(s string) bool {
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：")
}

// mayOpenAttribution reports whether a line that is not the last of an
// attribution may be its first: it says when, or who by an address, or begins
// with a word for quoting.
func mayOpenAttribution(s string) bool {
	if strings.Contains(s, "<") || hasDigit(s) && (namesTime(s) || strings.Contains(s, "@") || hasYear(s)) {
		return true
	}
	low := strings.ToLower(s)
	return isWeekday(low) || beginsQuoting(low)
}

// attributionShape reports whether a text that ends with a colon may be an
// attribution, if a quotation follows, and whether it must be one.
func attributionShape(s string) (lenient, strict bool) {
	low := strings.ToLower(s)
	digit, year, clock, address := hasDigit(s), hasYear(s), hasClock(s), strings.Contains(s, "@")
	at := verbOfWriting(low)
	switch {
	case at < 0:
		// Several languages name time and sender only.
		return year && clock && (address || namesTime(s)), false
	case digit && namesTime(s), clock, address:
		lenient = true
	default:
		// "Ann Lee wrote:" or "Quoting Ann Lee:", and no more than that.
		lenient = utf8.RuneCountInString(s) <= 60 && (strings.Trim(low[at:], " :：\u00A0") == "" || beginsQuoting(low))
	}
	// Notices name who wrote something new, but not by address.
	return lenient, lenient && year && address && strings.Contains(s, "<")
}

func startsWithDigit(s string) bool {
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// hasYear reports whether a year stands in s, or a date in digits.
func hasYear(s string) bool {
	run, marks, number := 0, 0, ""
	for i := 0; i <= len(s); i++ {
		c := byte(' ')
		if i < len(s) {
			c = s[i]
		}
		switch {
		case c >= '0' && c <= '9':
			run++
			continue
		case run > 0:
			number = s[i-run : i]
			if run == 4 && (strings.HasPrefix(number, "19") || strings.HasPrefix(number, "20")) {
				return true
			}
			if run > 2 {
				marks = 0
			} else if marks == 2 {
				return true
			}
		}
		if run > 0 && run <= 2 && (c == '.' || c == '/' || c == '-') {
			marks++
		} else {
			marks = 0
		}
		run = 0
	}
	return false
}

// hasClock reports whether a time such as 9:05 or 21.05 stands in s.
func hasClock(s string) bool {
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	for i := 1; i < len(s); i++ {
		if (s[i] == ':' || s[i] == '.' || s[i] == 'h' || s[i] == 'H') && digit(i-1) && digit(i+1) && digit(i+2) && !digit(i+3) && !digit(i-3) {
			return true
		}
	}
	return strings.Contains(s, "時") || strings.Contains(s, "点") || strings.Contains(s, "시 ")
}

// isRule reports whether a line is a rule that separates.
func isRule(s string) bool {
	n := 0
	for _, r := range s {
		switch r {
		case '_', '-', '=', '*', '–', '—', '─', '━':
			n++
		case ' ':
		default:
			return false
		}
	}
	return n >= 3
}

// undecorated returns the words of a line such as "----- Original Message -----"
// in lower case, and whether there is anything around them.
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

// isForwardLine reports whether a line says that what follows is passed on.
func isForwardLine(s string) bool {
	words, decorated := undecorated(s)
	if !decorated || words == "" {
		return false
	}
	if forwardWords[words] {
		return true
	}
	for _, prefix := range []string{"forwarded by ", "weitergeleitet von ", "réacheminé par ", "transféré par ", "reenviado por ", "inoltrato da "} {
		if strings.HasPrefix(words, prefix) && strings.HasPrefix(s, "--") {
			return true
		}
	}
	return false
}

// isOriginalLine reports whether a line says that what follows is the message
// that is answered.
func isOriginalLine(s string) bool {
	words, decorated := undecorated(s)
	if !decorated || !originalWords[words] {
		return false
	}
	for _, mark := range []string{"--", "__", "==", "—", "–", "─"} {
		if strings.HasPrefix(s, mark) {
			return true
		}
	}
	return false
}

// isDigestLine reports whether a line begins a message of a mailing list's
// digest, which has a header like a quoted one.
func isDigestLine(s string) bool {
	n, ok := strings.CutPrefix(s, "Message: ")
	return ok && n != "" && len(n) <= 4 && strings.Trim(n, "0123456789") == ""
}

// cutColon splits a field into its name in lower case, without the marks that
// stand for bold letters, and its value.
func cutColon(s string) (name, value string, ok bool) {
	s = strings.TrimLeft(s, "*_ \t")
	i := strings.IndexAny(s, ":：")
	if i < 0 || i > 60 {
		return "", "", false
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return strings.ToLower(strings.TrimRight(s[:i], "*_ \t\u00A0")), s[i+size:], true
}

// fieldClass returns what a header field in any of many languages says.
func fieldClass(s string) field {
	name, _, ok := cutColon(s)
	if !ok {
		return noField
	}
	return fieldNames[name]
}
