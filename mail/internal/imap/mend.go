package imap

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// mender stands between the scanner and the protocol library, which closes the connection
// over the first thing it cannot parse. The mender passes on responses that the library
// understands and that a command may have requested: it leaves out a broken item of a
// message and keeps the rest, leaves out and counts a folder whose name cannot be decoded,
// and drops a response of an unknown kind. Where dropping would turn a wrong answer into an
// empty one, such as a broken SEARCH, the library gets it and refuses.
//
// It holds one response at a time, without the content of sections, which streams through.
// Only the reader touches it, except the counts and the reports.
type mender struct {
	limit     int64                   // bytes held of one response
	continues func() bool             // whether the server was asked to say +; each call that returns true uses one up
	asked     func() bool             // whether the server was asked for its capabilities; nil means yes
	login     func(line []byte) error // takes the lines up to the answer to a login; nil when none is in progress
	opened    func() uint32           // EXAMINE and SELECT that were answered; nil means none
	idle      func(line string) bool  // whether a line is of an IDLE, which the library does not know of; nil means no

	told    atomic.Pointer[[]string]   // the last requested list of capabilities
	spaces  atomic.Pointer[Namespaces] // the last that could be read
	skipped atomic.Int64               // folders of a list that were left out
	fetches atomic.Int64               // FETCH responses passed on whole

	line  []byte
	out   []byte // bytes that the library has not read yet
	spare []byte // where out began, for use again
	fetch fetchMend
	begun uint32 // FETCH responses passed on, at least in part
}

// text takes a byte outside literals. The scanner calls it, and open, literal and end,
// after its bounds; an error ends the connection.
func (m *mender) text(b byte) error {
	if int64(len(m.line)) >= m.limit {
		return tooMuch("line")
	}
	m.line = append(m.line, b)
	return nil
}

// open begins a literal, whose announcement was text.
func (m *mender) open(content bool, size int64) {
	if content && m.login == nil && m.fetch.isFetch(m.line) {
		m.fetch.streaming = true
		m.fetch.items(m, size)
		m.line = m.line[:0]
	}
}

// literal takes bytes of the literal.
func (m *mender) literal(p []byte, content bool) error {
	if m.fetch.streaming && content {
		if m.fetch.passing {
			m.out = append(m.out, p...)
		}
		return nil
	}
	if int64(len(m.line)+len(p)) > m.limit {
		return tooMuch("line")
	}
	m.line = append(m.line, p...)
	return nil
}

// end completes the response.
func (m *mender) end() (err error) {
	switch {
	case m.login != nil:
		err = m.login(m.line)
	case m.fetch.isFetch(m.line):
		m.fetch.last(m)
	default:
		if line := string(bytes.TrimRight(m.line, "\r\n")); m.idle == nil || !m.idle(line) {
			m.out = append(m.out, m.mended(line)...)
		}
	}
	if cap(m.line) > 64<<10 {
		m.line = nil
	}
	m.line = m.line[:0]
	return err
}

// mended returns a whole response, other than FETCH, as the library gets it; empty when it
// is dropped.
func (m *mender) mended(line string) string {
	if strings.HasPrefix(line, "+") {
		if m.continues != nil && m.continues() {
			return "+ go on\r\n"
		}
		return ""
	}
	tag, rest, _ := strings.Cut(line, " ")
	kind, args, _ := strings.Cut(rest, " ")
	kind = strings.ToUpper(kind)
	if tag != "*" {
		switch kind {
		case "OK", "NO", "BAD":
			code, text := splitCode(args)
			return tag + " " + kind + " " + mendCode(code, true) + text + "\r\n"
		}
		return line + "\r\n" // the library ends the connection
	}
	if n, ok := number(kind, 32); ok {
		switch event, _, _ := strings.Cut(args, " "); strings.ToUpper(event) {
		case "EXISTS":
			return "* " + strconv.FormatUint(n, 10) + " EXISTS\r\n"
		case "EXPUNGE":
			if n == 0 {
				return "" // no message has that number; to the library it means that no more follow
			}
			return "* " + strconv.FormatUint(n, 10) + " EXPUNGE\r\n"
		}
		return ""
	}
	switch kind {
	case "OK", "NO", "BAD":
		code, _ := splitCode(args)
		if code = mendCode(code, false); code == "" {
			return ""
		}
		return "* " + kind + " " + code + "-\r\n"
	case "ESEARCH":
		return "* ESEARCH " + sortedSets(args) + "\r\n"
	case "SEARCH":
		return line + "\r\n"
	case "CAPABILITY":
		if m.asked != nil && !m.asked() {
			return "" // the library's capabilities must not change meanwhile
		}
		caps := capabilities(args)
		m.told.Store(&caps)
		return "* CAPABILITY " + libraryCaps(caps) + "\r\n"
	case "NAMESPACE":
		if n, ok := readNamespaces(args); ok {
			m.spaces.Store(&n)
		}
	case "FLAGS":
		c := cursor{b: args}
		if flags, ok := c.flags(); ok {
			return "* FLAGS (" + flags + ")\r\n"
		}
	case "LIST":
		if l, ok := mendList(args); ok {
			return "* LIST " + l + "\r\n"
		}
		m.skipped.Add(1)
	case "STATUS":
		if st, ok := mendStatus(args); ok {
			return "* STATUS " + st + "\r\n"
		}
	}
	return ""
}

// splitCode splits the text after OK, NO or BAD into response code and rest, which can be
// joined again.
func splitCode(args string) (code, text string) {
	if inner, ok := strings.CutPrefix(args, "["); ok {
		if code, text, ok = strings.Cut(inner, "]"); !ok {
			code, text = "", ""
		}
	} else {
		text = args
	}
	text = strings.TrimLeft(strings.Map(func(r rune) rune {
		if r == 0 || r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, text), " [")
	if text == "" {
		text = "-"
	}
	return code, text
}

// mendCode returns a response code that the library reads, with a space behind it; empty
// for other codes, of which a tagged answer keeps the name.
func mendCode(code string, tagged bool) string {
	name, args, _ := strings.Cut(code, " ")
	name = strings.ToUpper(name)
	fields := strings.Fields(args)
	numbers := func(n int) bool {
		if len(fields) != n {
			return false
		}
		for _, f := range fields {
			if _, ok := number(f, 32); !ok {
				return false
			}
		}
		return true
	}
	ok := false
	switch name {
	case "UIDVALIDITY", "UIDNEXT":
		ok = !tagged && numbers(1)
	case "APPENDUID":
		ok = tagged && numbers(2)
	case "COPYUID":
		// The library sorts both sets, which pairs ids wrongly where they are not in
		// order. Better no new ids than wrong ones.
		ok = len(fields) == 3 && rises(fields[1]) && rises(fields[2])
		if ok {
			_, ok = number(fields[0], 32)
		}
	case "CLOSED":
		ok, fields = !tagged, nil
	default:
		ok = tagged && name != "CAPABILITY" && len(name) <= 64 && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
		fields = nil
	}
	if !ok {
		return ""
	}
	return "[" + strings.Join(append([]string{name}, fields...), " ") + "] "
}

// number reads a number of the given number of bits, in digits alone.
func number(s string, bits int) (uint64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, bits)
	return n, err == nil
}

// sortedSets puts the set of an ESEARCH in order. The library builds the set in one go, in
// a time that grows with the square of the numbers out of order.
func sortedSets(args string) string {
	words := strings.Split(args, " ")
	for i, w := range words {
		if i == 0 || !strings.EqualFold(words[i-1], "ALL") || rises(w) {
			continue
		}
		ranges := strings.Split(w, ",")
		slices.SortStableFunc(ranges, func(a, b string) int { return cmp.Compare(lowest(a), lowest(b)) })
		words[i] = strings.Join(ranges, ",")
	}
	return strings.Join(words, " ")
}

// lowest is the smaller end of a range of numbers, 0 for an invalid one.
func lowest(s string) uint64 {
	from, to, ranged := strings.Cut(s, ":")
	low, _ := number(from, 32)
	if high, ok := number(to, 32); ranged && ok {
		low = min(low, high)
	}
	return low
}

// rises reports whether s is a set of numbers without * (RFC 9051 section 9,
// uid-set) in rising order.
func rises(s string) bool {
	last := uint64(0)
	for r := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(r, ":")
		if !ranged {
			to = from
		}
		low, okLow := number(from, 32)
		high, okHigh := number(to, 32)
		if !okLow || !okHigh || low <= last || high < low {
			return false
		}
		last = high
	}
	return true
}

// mendList is the arguments of a LIST without its extended data. It is not ok when the
// folder's name cannot be read.
func mendList(args string) (string, bool) {
	c := cursor{b: args}
	attrs, ok := c.flags()
	if !ok || !c.space() {
		return "", false
	}
	delimiter := "NIL"
	if d, ok := c.quoted(); ok {
		if r := []rune(d); len(r) == 1 && r[0] != '\uFFFD' {
			delimiter = quote(d)
		}
	} else if !c.skip() {
		return "", false
	}
	if !c.space() {
		return "", false
	}
	name, ok := c.mailbox()
	if !ok || !c.done() && !(c.space() && c.peek() == '(') {
		return "", false
	}
	return "(" + attrs + ") " + delimiter + " " + quote(name), true
}

// statusBits are the counts of a STATUS that the library reads, and the size of
// their numbers.
var statusBits = map[string]int{"MESSAGES": 32, "UNSEEN": 32, "UIDNEXT": 32, "UIDVALIDITY": 32, "DELETED": 32,
	"SIZE": 63, "DELETED-STORAGE": 63, "HIGHESTMODSEQ": 64}

// mendStatus is the arguments of a STATUS with the counts that are numbers.
func mendStatus(args string) (string, bool) {
	c := cursor{b: args}
	name, ok := c.mailbox()
	if !ok || !c.space() || !c.accept('(') {
		return "", false
	}
	var items []string
	for {
		c.spaces()
		item := strings.ToUpper(c.atom())
		c.spaces()
		from := c.i
		if item == "" || !c.skip() {
			break
		}
		if bits := statusBits[item]; bits > 0 {
			if _, ok := number(c.b[from:c.i], bits); ok {
				items = append(items, item+" "+c.b[from:c.i])
			}
		}
	}
	return quote(name) + " (" + strings.Join(items, " ") + ")", true
}

func quote(s string) string {
	if !strings.ContainsAny(s, `"\`) {
		return `"` + s + `"`
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
