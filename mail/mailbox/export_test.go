package mailbox

import (
	"time"
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
