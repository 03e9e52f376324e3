package compose

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// maxLine is the longest line of a header, in octets without its end, unless one
// word is longer. RFC 2047 section 2 asks this of lines with encoded words; RFC
// 5322 section 2.1.1 allows two more on any line.
const maxLine = 76

// header writes fields. A field is start, words, end; lines are folded only
// between words, so that every line has a word.
type header struct {
	b     []byte
	name  string // of the field being written
	begun int    // where it begins in b
	col   int    // octets on the line so far
	words int    // of the field so far

	longest string // the longest field
	length  int    // its bytes
}

func (h *header) start(name string) {
	h.name, h.begun, h.words = name, len(h.b), 0
	h.b = append(append(h.b, name...), ':')
	h.col = len(name) + 1
}

func (h *header) end() {
	h.b = append(h.b, "\r\n"...)
	if n := len(h.b) - h.begun; n > h.length {
		h.longest, h.length = h.name, n
	}
}

// field writes a whole field.
func (h *header) field(name string, words ...string) {
	h.start(name)
	for _, w := range words {
		h.word(w)
	}
	h.end()
}

// word writes a space and a word, on a new line if it does not fit this one.
func (h *header) word(s string) {
	if h.words > 0 && h.col+1+len(s) > maxLine {
		h.fold()
	}
	h.b = append(append(h.b, ' '), s...)
	h.col += 1 + len(s)
	h.words++
}

// fold ends a line; the next word begins another.
func (h *header) fold() {
	h.b = append(h.b, "\r\n"...)
	h.col = 0
}

// encoded writes text as encoded words. Text that fits one word is not split over
// two lines; longer text is split behind a space where possible, for readers that
// wrongly show the space between the encoded words of a name.
func (h *header) encoded(s string) {
	const enough = 32 // columns below which a word is not worth beginning on a line
	e := chooseEncoding(s)
	for s != "" {
		room := maxLine - h.col - 1
		n, fresh := e.take(s, min(room, maxEncodedWord)), e.take(s, maxEncodedWord)
		if n == 0 || h.words > 0 && n < len(s) && (room < enough || fresh == len(s)) {
			h.fold()
			n = fresh
		}
		if space := strings.LastIndexByte(s[:n], ' '); n < len(s) && space > n/3 {
			n = space + 1
		}
		h.word(e.word(s[:n]))
		s = s[n:]
	}
}

// text writes unstructured text (RFC 5322 section 2.2.1): words of ASCII
// unchanged, others as encoded words. Readers do not show white space between
// two encoded words, so neighbours are encoded as one, with the spaces between
// them; and a word before several spaces is encoded together with all but the
// last of them, since folding might lose them.
func (h *header) text(s string) {
	for s != "" {
		run := 0 // bytes to encode
		for {
			word, gap, rest := cutWord(s[run:])
			if word != "" && gap < 2 && isASCII(word) && !strings.Contains(word, "=?") && h.fits(word) {
				if run == 0 {
					h.word(word)
					s = rest
				}
				break
			}
			run += len(word) + gap
			if rest == "" {
				break
			}
		}
		if run > 0 {
			text := strings.TrimSuffix(s[:run], " ")
			if run == len(s) {
				text = s
			}
			h.encoded(text)
			s = s[run:]
		}
	}
}

// fits reports whether a word leaves its line within bounds.
func (h *header) fits(word string) bool {
	if h.words == 0 {
		return h.col+1+len(word) <= maxLine
	}
	return 1+len(word) <= maxLine
}

// cutWord takes a word and the spaces behind it off s.
func cutWord(s string) (word string, gap int, rest string) {
	end := strings.IndexByte(s, ' ')
	if end < 0 {
		return s, 0, ""
	}
	rest = strings.TrimLeft(s[end:], " ")
	return s[:end], len(s) - end - len(rest), rest
}

func (h *header) subject(s string) error {
	if err := checkText("Subject", s, maxSubject); err != nil {
		return err
	}
	if s = strings.Trim(s, " "); s == "" {
		return nil
	}
	h.start("Subject")
	h.text(s)
	h.end()
	return nil
}

// addresses writes an address list; an empty one is left out.
func (h *header) addresses(field string, list []Address) error {
	if len(list) == 0 {
		return nil
	}
	h.start(field)
	for i, a := range list {
		if err := checkAddress(field, a); err != nil {
			return err
		}
		comma := ""
		if i < len(list)-1 {
			comma = ","
		}
		name := plain.Line(a.Name)
		if name == "" {
			h.word(a.Addr + comma)
			continue
		}
		h.phrase(name)
		h.word("<" + a.Addr + ">" + comma)
	}
	h.end()
	return nil
}

// phrase writes a display name (RFC 5322 section 3.2.5) as atoms, quoted, or
// encoded as a whole.
func (h *header) phrase(name string) {
	const longest = 64 // octets of a word or quoted string, which is never folded
	words := []string{`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`}
	if strings.IndexFunc(name, func(r rune) bool { return r != ' ' && (r >= utf8.RuneSelf || !rfc5322.IsAtext(byte(r))) }) < 0 {
		words = strings.Split(name, " ")
	}
	if !isASCII(name) || strings.Contains(name, "=?") || slices.ContainsFunc(words, func(w string) bool { return len(w) > longest }) {
		h.encoded(name)
		return
	}
	for _, w := range words {
		h.word(w)
	}
}

// ids writes a field of message ids; an empty list is left out.
func (h *header) ids(field string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	h.start(field)
	for _, id := range ids {
		if !validReference(id) {
			return fault(field, "it holds something other than a message id")
		}
		h.word("<" + id + ">")
	}
	h.end()
	return nil
}

// formatDate writes a date (RFC 5322 section 3.3) whose year stays readable in
// any zone. A zone that no reader would believe, or that is not a whole number of
// minutes, becomes UTC.
func formatDate(t time.Time) (string, error) {
	const farthest = 14 * 60 * 60 // seconds; no zone in use is farther from UTC
	if _, offset := t.Zone(); offset%60 != 0 || offset > farthest || offset < -farthest {
		t = t.UTC()
	}
	if t.Year() < 1900 || t.Year() > 9998 {
		return "", fault("Date", "the year is not between 1900 and 9998")
	}
	return t.Format("Mon, 02 Jan 2006 15:04:05 -0700"), nil
}

// checkText refuses text that may not be in a header: more than limit bytes,
// invalid UTF-8, line ends and other controls, and invisible characters, which
// the recipient's program or a person who approves the message would miss.
func checkText(field, s string, limit int) error {
	switch {
	case len(s) > limit:
		return fault(field, "it is over %d bytes long", limit)
	case !utf8.ValidString(s):
		return fault(field, "it is not valid UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fault(field, "it holds the control character %U", r)
		}
	}
	if clean := plain.Text(s); clean != s {
		return fault(field, "it holds the invisible character %U", firstDifference(s, clean))
	}
	return nil
}

// firstDifference returns the first rune of s that is not in clean, which is s
// with some of its runes removed or replaced.
func firstDifference(s, clean string) rune {
	for i, r := range s {
		if !strings.HasPrefix(clean[min(i, len(clean)):], string(r)) {
			return r
		}
	}
	return utf8.RuneError
}

// maxID is the longest message id, in bytes, that is written.
const maxID = 500

// validMessageID reports whether s is an id in the form this package writes:
// dot-atoms of ASCII only, of RFC 5322 section 3.6.4.
func validMessageID(s string) bool {
	_, _, ok := rfc5322.SplitAddr(s)
	return ok && isASCII(s)
}

// validReference reports whether an id from a received message can be repeated.
// It need not follow the grammar, for the answer must name the message as its
// sender did. Encoded words are refused, since a reader might decode them.
func validReference(s string) bool {
	return s != "" && len(s) <= maxID && !strings.Contains(s, "=?") &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '<' || r == '>' }) < 0
}
