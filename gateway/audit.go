package gateway

import (
	"context"
	"time"
)

// AuditEntry is the record of one command, executed or refused (002 section
// 8.3, 000 section 6). It never holds a message body or a secret: Command is the
// command string with sensitive values replaced.
type AuditEntry struct {
	Time      time.Time     `json:"time"`
	Principal string        `json:"principal"`
	Account   string        `json:"account,omitempty"` // resolved account, when the command has one
	Command   string        `json:"command"`           // as it came, at most 256 characters, sensitive values replaced
	Parsed    string        `json:"parsed,omitempty"`  // path of the resolved command, such as "mail list"
	Target    string        `json:"target,omitempty"`  // folder and UIDs, or recipients
	Allowed   bool          `json:"allowed"`           // false when a rule refused it or hid its object
	Reason    string        `json:"reason,omitempty"`  // why it was refused, such as "ro_mode" or "filtered"; also "asked", and "accepted" where a person was
	Code      string        `json:"code,omitempty"`    // error code of a failure; empty on success
	Duration  time.Duration `json:"duration"`
}

// Auditor keeps audit entries. Implementations are safe for concurrent use, and
// an entry for which Record returned nil is durable.
type Auditor interface {
	Record(ctx context.Context, e AuditEntry) error
}

// Limiter counts what a principal does, across processes where its
// implementation is shared. Implementations are safe for concurrent use.
type Limiter interface {
	// Take charges one event against limit events per window for the key. It
	// returns 0 when the event may happen, else how long until it could.
	// A refused event is not charged.
	Take(ctx context.Context, key string, limit int, window time.Duration) (retryAfter time.Duration, err error)
}
