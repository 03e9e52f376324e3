package message

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// ReturnedBytes is how much of a part tells which message came back.
const ReturnedBytes = 16 << 10

// returnedID finds the Message-ID in a message that was quoted as text.
var returnedID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^[> \t]{0,8}message-id:[ \t]{0,8}\r?\n?[ \t]{0,8}<([^<>\s]{1,250})>`)
})

// Returned is the Message-ID of the message that a bounce is about, "" for another message
// or where it does not say. A bounce is a report of a delivery (RFC 3464), or a message from
// a mailer-daemon or postmaster. The id is that of the message or header that it returns as
// a part, else of one quoted in its text, else the one that it answers. body returns the
// octets of a part as transferred, or their beginning.
func Returned(h rfc5322.Header, root *Part, body func(*Part) []byte) string {
	if !IsBounce(h, root) {
		return ""
	}
	var parts, texts []*Part
	walk(root, 0, func(p *Part) {
		switch p.MediaType() {
		case "message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers", "message/global-headers":
			parts = append(parts, p)
		case "text/plain":
			texts = append(texts, p)
		}
	})
	for _, p := range parts {
		if ids := rfc5322.ParseHeader(HeaderOf(DecodeBody(body(p), p.Encoding))).MsgIDs("Message-ID"); len(ids) > 0 {
			return ids[0]
		}
	}
	for _, p := range texts {
		b := DecodeBody(body(p), p.Encoding)
		if m := returnedID().FindSubmatch(b[:min(len(b), 2*ReturnedBytes)]); m != nil {
			return string(m[1])
		}
	}
	if ids := h.MsgIDs("In-Reply-To"); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// IsBounce reports whether a message is a bounce, as Returned says.
func IsBounce(h rfc5322.Header, root *Part) bool {
	report := false
	walk(root, 0, func(p *Part) {
		report = report || p.MediaType() == "message/delivery-status" || p.MediaType() == "message/global-delivery-status"
	})
	return report || slices.ContainsFunc(h.Addresses("From"), isDaemon)
}

func isDaemon(a rfc5322.Address) bool {
	local, _, _ := strings.Cut(strings.ToLower(a.Addr), "@")
	return local == "mailer-daemon" || local == "postmaster"
}
