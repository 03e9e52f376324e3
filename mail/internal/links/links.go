// Package links finds what a mail program may turn into a link, and tells whether a
// conversation has it already. What it looks for is spelled in any way that some program reads
// as a link; what it lets pass is spelled exactly as the conversation spells it. So it takes
// some words for links that are none, such as report.pdf, and that costs a question.
//
// ForeignNumber does the same for telephone and account numbers.
package links

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/internal/plain"
)

// Known are the links and addresses of a conversation.
type Known map[string]bool

// In returns the links and addresses of texts, and the hosts that they have.
func In(texts ...string) Known {
	k := Known{}
	for _, text := range texts {
		for chunk := range chunks(text) {
			for _, piece := range append(strings.FieldsFunc(chunk, parts), chunk) {
				if !linked(piece) {
					continue
				}
				key := keyOf(piece)
				host := key[:end(key)]
				k[key], k[host[strings.LastIndexByte(host, '@')+1:]] = true, true
			}
		}
	}
	return k
}

// maxPieces bounds the work on words without a space between them.
const maxPieces = 100

// Foreign returns the first words in a text that may become a link and are not known, or "".
func (k Known) Foreign(text string) string {
	for chunk := range chunks(text) {
		if !linked(chunk) || k[keyOf(chunk)] {
			continue
		}
		pieces, rest := strings.FieldsFunc(chunk, parts), chunk
		if len(pieces) > maxPieces {
			return chunk
		}
		for i, piece := range pieces {
			if !linked(piece) {
				continue
			}
			// The path of a link can hold what parts pieces, so that it may go on.
			if key := keyOf(piece); !k[key] || i < len(pieces)-1 && end(key) < len(key) {
				return chunk
			}
			rest = strings.Replace(rest, piece, " ", 1)
		}
		if linked(rest) {
			return chunk
		}
	}
	return ""
}

// chunks are the parts of a text that no link goes beyond.
func chunks(text string) func(yield func(string) bool) {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<>"`, r) })
}

// parts is what may part several links, and can also stand in the path of one.
func parts(r rune) bool { return strings.ContainsRune("()[],;", r) }

// keyOf is the form in which links are compared: without what stands around them in a sentence
// or in Markdown, without the schemes of the web and of mail, and, up to the path, in lower
// case.
func keyOf(piece string) string {
	s := strings.TrimFunc(piece, func(r rune) bool { return strings.ContainsRune("()[]*'`.,;:!?“”‘’«»„‚…", r) })
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			s = s[len(scheme):]
			break
		}
	}
	at := end(s)
	return strings.TrimSuffix(strings.ToLower(s[:at])+s[at:], "/")
}

// end is where the host or the address of a key ends.
func end(key string) int {
	if i := strings.IndexAny(key, "/?#"); i >= 0 {
		return i
	}
	return len(key)
}

// sign is what makes a link of a folded text in some program: a host or the name of a file,
// www, an address, a path behind //, a share, a scheme, and four numbers. It takes
// long to make for what needs none.
var sign = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^\s.]\.\pL[\pL\pM]|(?i:www)[0-9]*\.\S|[^\s@]@[^\s@]|//|\\\\|(?:^|[^\pL\pN+.-])\pL[\pL\pN+.-]+:[\pL\pN/+]|(?:^|[^0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:$|[^0-9.])`)
})

// linked reports whether some program may make a link in a chunk.
func linked(chunk string) bool { return sign().MatchString(chunk) || sign().MatchString(fold(chunk)) }

// fold undoes the spellings that programs or people read as plain: wide letters, other dots,
// references and percent signs, what is not seen, marks on letters, emphasis, and brackets
// around a dot or an at sign.
func fold(s string) string {
	s = norm.NFKC.String(html.UnescapeString(norm.NFKC.String(s)))
	s = norm.NFKC.String(percent.ReplaceAllStringFunc(s, func(p string) string { c, _ := url.PathUnescape(p); return c }))
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '。':
			return '.'
		case plain.Unseen(r), unicode.Is(unicode.Mn, r), strings.ContainsRune("\\*_`~", r):
			return -1
		}
		return r
	}, s)
	return around.ReplaceAllString(s, "$1")
}

var (
	percent = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)
	around  = regexp.MustCompile(`[\[({](\.|@)[\])}]`)
)
