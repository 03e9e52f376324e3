package message

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/internal/plain"
)

// maxSubject bounds the part of a subject that is read, in bytes.
const maxSubject = 8 << 10

// prefixKind is the meaning of a word before a colon.
type prefixKind int

const (
	replyPrefix prefixKind = iota + 1
	forwardPrefix
)

// subjectPrefixes are the words that mail programs put before the subject of an
// answer and of a forwarded message, by language, in lower case.
var subjectPrefixes = prefixTable(map[prefixKind]string{
	replyPrefix: "re|aw|antw|antwort|sv|svar|vs|rv|res|resp|odp|ynt|yan|atb|bls|r|rif|réf|rép|ha|на|отв|ответ|відп|відповідь|" +
		"回复|回覆|答复|答覆|返信|回信|회신|답장|σχετ|απ|vá|válasz|odpověď|odpoveď|odg|رد|תגובה|השב|ตอบกลับ|trả lời|rsp|răsp",
	forwardPrefix: "fw|fwd|wg|wtr|tr|enc|encam|doorst|vl|vb|i|inoltra|reenv|pd|videres|přep|preposl|továbbítás|ilt|i̇lt|" +
		"πρθ|προωθ|пер|пересл|转发|轉寄|轉發|転送|전달|إعادة توجيه|הועבר|ส่งต่อ|chuyển tiếp",
})

func prefixTable(words map[prefixKind]string) map[string]prefixKind {
	table := map[string]prefixKind{}
	for kind, list := range words {
		for word := range strings.SplitSeq(list, "|") {
			table[norm.NFKC.String(word)] = kind
		}
	}
	return table
}

// BaseSubject returns the subject without the additions of mail programs, and whether it
// had the prefix of a reply or of a forwarded message (RFC 5256 section 2.1). Beyond the
// RFC it knows the prefixes of many languages, "Re[2]:" and "Re^3:" too, and the colon of
// full width. Tags such as "[list]" are removed unless nothing else is left. The rest is
// unchanged, with white space collapsed. s is decoded; 8 KiB of it are read.
// with white space collapsed. s is decoded; 8 KiB of it are read.
func BaseSubject(s string) (base string, reply bool) {
	base, reply, _ = splitSubject(s)
	return base, reply
}

// foldSubject returns the form in which two base subjects are compared: case and
// width of characters folded.
func foldSubject(base string) string {
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(base)))
}

// IsForward reports whether a decoded subject says that the message forwards
// another: its first prefix is one of forwarding, or "(fwd)" ends it.
func IsForward(s string) bool {
	_, _, forward := splitSubject(s)
	return forward
}

func splitSubject(s string) (base string, prefixed, forward bool) {
	if len(s) > maxSubject {
		s = strings.ToValidUTF8(s[:maxSubject], "")
	}
	s = strings.Join(strings.Fields(plain.Text(s)), " ")
	var outermost prefixKind
	trailer := false
	for { // each iteration removes one prefix or tag
		rest, kind := cutSubjectPrefix(s)
		if t := strings.TrimSuffix(s, " "); len(t) >= len("(fwd)") && strings.EqualFold(t[len(t)-len("(fwd)"):], "(fwd)") {
			rest, kind, trailer = strings.TrimRight(t[:len(t)-len("(fwd)")], " "), 0, true
		} else if tagless := cutTag(s); kind == 0 && tagless != "" {
			rest = tagless
		}
		if inner, ok := strings.CutPrefix(s, "["); ok && rest == s && strings.HasSuffix(inner, "]") { // "[fwd: subject]"
			if unwrapped, wrapper := cutSubjectPrefix(strings.TrimSuffix(inner, "]")); wrapper == forwardPrefix {
				rest, kind = strings.TrimRight(unwrapped, " "), wrapper
			}
		}
		outermost = cmp.Or(outermost, kind)
		if rest == s {
			return s, trailer || outermost != 0, outermost == forwardPrefix || outermost == 0 && trailer
		}
		s = rest
	}
}

// cutSubjectPrefix takes one prefix off, with tags before it and between the word
// and its colon; kind is 0 without a prefix.
func cutSubjectPrefix(s string) (rest string, kind prefixKind) {
	const longest = 64 // bytes of a word and its count
	t := s
	for {
		next := cutTag(t)
		if next == t {
			break
		}
		t = next
	}
	colon := strings.IndexAny(t[:min(len(t), longest)], ":：")
	if colon <= 0 {
		return s, 0
	}
	_, size := utf8.DecodeRuneInString(t[colon:])
	rest = strings.TrimLeft(t[colon+size:], " ")
	word := count.ReplaceAllString(strings.TrimRight(t[:colon], " "), "")
	kind = subjectPrefixes[strings.ToLower(norm.NFKC.String(word))]
	if kind == 0 {
		return s, 0
	}
	return rest, kind
}

// count is how often a subject was answered, behind the word: "[2]", "(2)", "^2" or "*2";
// or a tag in that place, as RFC 5256 allows.
var count = regexp.MustCompile(` *(\[[^\[]*\]|\(\d+\)|[*^]\d+)\z`)

// cutTag takes "[tag]" off the beginning.
func cutTag(s string) string {
	t, ok := strings.CutPrefix(s, "[")
	if !ok {
		return s
	}
	end := strings.IndexAny(t, "[]")
	if end < 0 || t[end] != ']' {
		return s
	}
	return strings.TrimLeft(t[end+1:], " ")
}
