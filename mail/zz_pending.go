package mail

import (
	"github.com/postern-mail/postern/mail/internal/message"
	"time"
)

type pendingT struct{}

var pending pendingT

func (pendingT) HTMLParts(root *message.Part) []*message.Part { return nil }
func (pendingT) NewText(s string) string                      { return s }
func (pendingT) Events(b []byte) []CalendarEvent              { return nil }
func (pendingT) SanitizeHTML(b []byte, charset string, maxRunes int) (string, bool) {
	return "", false
}
func (pendingT) PartText(p *message.Part, raw []byte, maxRunes int) (string, bool, bool) {
	return "", false, false
}
func (pendingT) Snippet(s string, n int) string { t, _ := message.Truncate(s, n); return t }

type pendingNode struct {
	ID         string
	References []string
	Subject    string
	Date       time.Time
}

func (pendingT) Threads(nodes []pendingNode) ([][]int, []int)   { return nil, nil }
func (pendingT) BaseSubject(s string) (base string, reply bool) { return s, false }
