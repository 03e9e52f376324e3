package mailbox

import (
	"time"

	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// SetPace changes how fast a Watch goes; zero leaves a value as it is.
func (m *Client) SetPace(poll, trust, look time.Duration) {
	for _, v := range []struct {
		at *time.Duration
		to time.Duration
	}{{&m.pace.poll, poll}, {&m.pace.trust, trust}, {&m.pace.look, look}} {
		if v.to != 0 {
			*v.at = v.to
		}
	}
	m.pace.pause, m.pace.retry = time.Millisecond, time.Millisecond
}

// Excerpt is the excerpt of a message that is here.
func Excerpt(raw string, chars int, lines bool) *Message {
	return (&access{m: &Client{o: Options{Now: time.Now}}}).excerptOf(excerpt{chars: chars, lines: lines}, &fetch.Message{}, []byte(raw)).message
}
