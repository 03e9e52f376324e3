package mailbox

import (
	"time"
)

// SetBounds changes how many messages an operation reads at most: of a folder under a policy,
// for a conversation, of a POP3 mailbox.
func (m *Client) SetBounds(judged, candidates, heads int) {
	m.bounds = bounds{judged: judged, candidates: candidates, heads: heads}
}

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
