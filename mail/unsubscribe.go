package mail

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Leaving is how a message lets its reader leave the list that it came through.
type Leaving struct {
	// List is what the message calls its list, in List-Id (RFC 2919); empty where it does not. Key
	// is the same for messages of one sender and list; empty where it cannot be told.
	List string `json:"list,omitempty"`
	Key  string `json:"key,omitempty"`
	// URI takes the one request of RFC 8058; it names the reader. Empty where that may not be
	// made, as Why says.
	URI string `json:"uri,omitempty"`
	Why NoPost `json:"why,omitempty"`
	// Letter is what to send to leave by mail (RFC 6068), nil for none. Nothing of it is trusted.
	Letter *LeavingLetter `json:"letter,omitempty"`
}

// LeavingLetter is a message that asks to be taken off a list.
type LeavingLetter struct{ To, Subject, Body string }

// Host is the server that takes the request, empty where there is none.
func (l *Leaving) Host() string {
	u, err := url.Parse(l.URI)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// NoPost is why a message's list cannot be left by the request of RFC 8058: a sentence.
type NoPost string

// The reasons.
const (
	NoPostUnnamed    NoPost = "The message names no way to unsubscribe."
	NoPostUnclear    NoPost = "The message names its way to unsubscribe more than once, or in a way that cannot be read for certain."
	NoPostPlain      NoPost = "The message names an address without https to unsubscribe at."
	NoPostPage       NoPost = "The message names a page to unsubscribe on, and not that one request does it (RFC 8058)."
	NoPostMail       NoPost = "The message names an address to write to, and no request that unsubscribes."
	NoPostAddress    NoPost = "The address to unsubscribe at is none that is asked: it has a user, a port, no name in plain letters, or more than 2,000 characters."
	NoPostUnverified NoPost = "It is not verified who sent the message, so nothing is told to the address that it names."
	NoPostFailed     NoPost = "The message does not come from the sender that it names, so nothing is told to the address that it names."
	NoPostUnsigned   NoPost = "The sender's signature that the account's own server saw is not about the address to unsubscribe at, which somebody else may have written."
)

const (
	leaveField, postField = "List-Unsubscribe", "List-Unsubscribe-Post"
	maxLeaveURI           = 2000 // characters
	maxLeaveText          = 1000 // characters of a subject or body
)

var (
	bracketed = regexp.MustCompile(`<[^<>]*>`)
	// A name of several labels in ASCII, the last of which is no number, so that it is no address.
	hostname = regexp.MustCompile(`\A(?i:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)\z`)
)

// Leaving reads from a whole header how to leave the list of a message (RFC 2369, RFC 8058). There is
// a URI only where the sender is Verified and the signature by which the border knows the
// sender is about both fields.
func (p *Policy) Leaving(h rfc5322.Header) (l Leaving) {
	if from, ok := authors(h); ok && len(from) == 1 && len(h.Values("From")) == 1 {
		id := h.Get("List-Id")
		l.List = shortened(h.Text("List-Id"), 200)
		l.Key = from[0] + " " + strings.ToLower(strings.Trim(id[max(strings.LastIndexByte(id, '<'), 0):], "<> \t"))
	}
	named := h.Values(leaveField)
	if len(named) != 1 || !h.Certain(leaveField) {
		if l.Why = NoPostUnclear; len(named) == 0 && h.Certain(leaveField) {
			l.Why = NoPostUnnamed
		}
		return l
	}
	web, plainWeb := "", false // the first one counts
	for _, text := range bracketed.FindAllString(named[0], -1) {
		text = strings.Join(strings.Fields(strings.Trim(text, "<>")), "") // RFC 2369 section 2
		switch scheme, _, _ := strings.Cut(strings.ToLower(text), ":"); {
		case scheme == "https" && web == "":
			web = text
		case scheme == "http":
			plainWeb = true
		case scheme == "mailto" && l.Letter == nil:
			l.Letter = leavingLetter(text)
		}
	}
	switch v := p.Verdict(h); {
	case v == Failed:
		l.Letter, l.Why = nil, NoPostFailed
	case web != "":
		if l.Why = p.noPost(h, web, v); l.Why == "" {
			l.URI = web
		}
	case plainWeb:
		l.Why = NoPostPlain
	case l.Letter != nil:
		l.Why = NoPostMail
	default:
		l.Why = NoPostUnclear
	}
	return l
}

// noPost is why the request may not be made at an address, or empty.
func (p *Policy) noPost(h rfc5322.Header, web string, v Verdict) NoPost {
	post := h.Values(postField)
	switch {
	case len(post) > 1 || !h.Certain(postField):
		return NoPostUnclear
	case len(post) == 0 || post[0] != "List-Unsubscribe=One-Click":
		return NoPostPage
	case !plainAddress(web):
		return NoPostAddress
	case v != Verified:
		return NoPostUnverified
	}
	from, _ := authors(h) // one, of a message that is Verified
	if !p.border.Signed(h, from[0][strings.LastIndexByte(from[0], '@')+1:], leaveField, postField) {
		return NoPostUnsigned
	}
	return ""
}

// plainAddress reports whether a URI is one that real senders write. At other ports than that of
// https a message could have requests made to services that nobody meant; names in other letters
// stand in a URI in their ASCII form (RFC 3986 section 3.2.2), which shows what they are.
func plainAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxLeaveURI && u.Scheme == "https" && u.User == nil && u.Opaque == "" && hostname.MatchString(strings.TrimSuffix(u.Host, ":443")) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// leavingLetter reads a mailto URI (RFC 6068) to one address, nil for any other. Of its fields
// none but the subject and the body count: it comes from a stranger.
func leavingLetter(text string) *LeavingLetter {
	to, fields, _ := strings.Cut(text[len("mailto:"):], "?")
	to, err := url.PathUnescape(to)
	if _, ok := NormalAddress(to); err != nil || !ok {
		return nil
	}
	l := &LeavingLetter{To: to}
	for field := range strings.SplitSeq(fields, "&") {
		name, text, _ := strings.Cut(field, "=")
		text, err := url.PathUnescape(text)
		switch name = strings.ToLower(name); {
		case err != nil:
		case name == "subject":
			l.Subject = shortened(text, maxLeaveText)
		case name == "body":
			l.Body, _ = plain.Head(plain.Text(text), maxLeaveText)
		}
	}
	return l
}

func shortened(s string, n int) string {
	s, _ = plain.Head(plain.Line(s), n)
	return s
}
