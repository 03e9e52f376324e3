package compose

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// The bounds of a subject from a received message, in runes.
const (
	maxReplySubject = 1000 // fits a Subject with runes of any size
	maxReadSubject  = 4 * maxReplySubject
)

// Recipients are those of an answer.
type Recipients struct {
	To, CC    []Address // each once, with names as Build takes them
	Elsewhere bool      // the message asks that replies go elsewhere than to its authors
	Unusable  int       // addresses left out, since mail cannot be sent to them
}

// ReplyRecipients returns whom an answer to a message goes to (RFC 5322 section 3.6.2): where
// its Reply-To says, else to its authors, and with all to those whom it was sent to as well.
// An answer to a message of one's own goes to those whom it was sent to. own reports own
// addresses, which an answer goes to only where a message of one's own went nowhere else.
func ReplyRecipients(parent rfc5322.Header, own func(addr string) bool, all bool) Recipients {
	var r Recipients
	seen := make(map[string]bool)
	take := func(field string, self bool) (list []Address) {
		for _, a := range parent.Addresses(field) {
			addr, err := normalAddr(a.Addr)
			if err != nil {
				r.Unusable++
				continue
			}
			if key := strings.ToLower(addr); !seen[key] && own(addr) == self {
				seen[key] = true
				one := Address{Name: plain.Line(a.Name), Addr: addr}
				if checkName(one.Name) != nil {
					one.Name = ""
				}
				list = append(list, one)
			}
		}
		return list
	}
	authors := parent.Addresses("From")
	mine := len(authors) > 0 && !slices.ContainsFunc(authors, func(a Address) bool { return !own(a.Addr) })
	if mine {
		r.To = take("To", false)
	} else if r.To = take("Reply-To", false); len(r.To) == 0 {
		r.To = take("From", false)
	} else {
		r.Elsewhere = slices.ContainsFunc(r.To, func(a Address) bool {
			return !slices.ContainsFunc(authors, func(b Address) bool { return strings.EqualFold(a.Addr, b.Addr) })
		})
	}
	if all {
		if !mine {
			r.CC = take("To", false)
		}
		r.CC = append(r.CC, take("Cc", false)...)
	}
	if mine && len(r.To)+len(r.CC) == 0 {
		r.Unusable = 0 // they are looked at once more
		r.To = take("To", true)
	}
	return r
}

// ForwardSubject is ReplySubject for a message that is handed on.
func ForwardSubject(original string) string { return subjectOf("Fwd:", original) }

// ReplySubject returns the subject of an answer: "Re: " once, then the original
// without the prefixes of answers and forwarded messages, in any of the
// languages that message.BaseSubject knows. Tags such as "[Ticket 4711]" stay,
// each once, since the receiving side may need them. The result is on one line
// and never too long for Build; original is decoded.
func ReplySubject(original string) string { return subjectOf("Re:", original) }

func subjectOf(prefix, original string) string {
	s, _ := plain.Head(original, maxReadSubject)
	s = strings.Join(strings.Fields(plain.Text(s)), " ")
	words := []string{prefix}
	for s != "" {
		// A tag without text behind it is the subject itself.
		if end := strings.IndexAny(s[1:], "[]") + 1; s[0] == '[' && end > 0 && s[end] == ']' && end < len(s)-1 {
			if tag := s[:end+1]; !slices.Contains(words, tag) {
				words = append(words, tag)
			}
			s = strings.TrimLeft(s[end+1:], " ")
			continue
		}
		rest, ok := cutPrefix(s)
		if !ok {
			break
		}
		s = rest
	}
	if s != "" {
		words = append(words, s)
	}
	s, cut := plain.Head(strings.Join(words, " "), maxReplySubject)
	if cut {
		s = strings.TrimRight(plain.Text(s), " ")
	}
	return s
}

// cutPrefix takes one prefix such as "Re:" or "AW[2]:" off the front.
func cutPrefix(s string) (rest string, ok bool) {
	const longest = 64 // bytes up to the colon
	colon := strings.IndexAny(s[:min(len(s), longest)], ":：")
	if colon <= 0 {
		return s, false
	}
	_, size := utf8.DecodeRuneInString(s[colon:])
	// It is a prefix with any text behind it.
	if _, prefixed := message.BaseSubject(s[:colon+size] + " x"); !prefixed {
		return s, false
	}
	return strings.TrimLeft(s[colon+size:], " "), true
}

// The bounds of a References field. Servers and readers have bounds of their
// own, and cut the end, which is the parent.
const (
	maxReferences     = 50
	maxReferenceBytes = 4000 // with angle brackets and separators
)

// ReplyReferences returns the ids that link an answer to its parent (RFC 5322
// section 3.6.4), each once and without angle brackets. Ids that cannot be
// repeated safely are left out. When there are too many, or they are too long
// together, the first stays, which names the conversation, with as many of
// the last as fit. inReplyTo is empty when the parent has no id.
func ReplyReferences(parent rfc5322.Header) (inReplyTo string, references []string) {
	own := usable(parent.MsgIDs("Message-ID"))
	chain := usable(parent.MsgIDs("References"))
	if len(chain) == 0 {
		// In-Reply-To names the parent's own parent for certain only when it holds one id.
		if answered := usable(parent.MsgIDs("In-Reply-To")); len(answered) == 1 {
			chain = answered
		}
	}
	if len(own) > 0 {
		inReplyTo = own[0]
		chain = append(slices.DeleteFunc(chain, func(id string) bool { return id == inReplyTo }), inReplyTo)
	}
	return inReplyTo, trimReferences(chain)
}

// usable returns the ids that can be repeated, each once.
func usable(ids []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, id := range ids {
		if validReference(id) && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

func trimReferences(ids []string) []string {
	if len(ids) == 0 {
		return nil
	}
	const around = len("<> ")
	room := maxReferenceBytes - len(ids[0]) - around
	from := len(ids)
	for from > 1 && len(ids)-from < maxReferences-1 && room >= len(ids[from-1])+around {
		from--
		room -= len(ids[from]) + around
	}
	return append(ids[:1:1], ids[from:]...)
}
