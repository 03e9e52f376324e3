package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/postern-mail/postern/discovery"
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
	Count     int           `json:"count,omitempty"` // of refused calls that this entry stands for; 0 where it is one command's
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

// runTime is how long a run of refused calls is counted before its entry is written while
// it goes on.
const runTime = time.Minute

// limitedRuns keeps calls beyond a principal's rate from filling the log: the first of a run
// has an entry at once, and those that follow have one together, when the run is over or
// has gone on for runTime; only its count is lost where the process ends before. Its zero value is ready; it is safe for concurrent use.
type limitedRuns struct {
	mu   sync.Mutex
	runs map[string]*AuditEntry // by principal: what stands for the calls since the last entry, nil for none
}

// entries returns what is to be written now that e has happened.
func (r *limitedRuns) entries(e AuditEntry) []AuditEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, goes := r.runs[e.Principal]
	switch {
	case e.Code != string(discovery.RateLimited) || e.Reason != reasonRate:
		delete(r.runs, e.Principal)
		if run != nil {
			return []AuditEntry{*run, e}
		}
	case !goes:
		if r.runs == nil {
			r.runs = map[string]*AuditEntry{}
		}
		r.runs[e.Principal] = nil
	case run == nil:
		e.Count = 1
		r.runs[e.Principal] = &e
		return nil
	default:
		run.Count++
		run.Duration = e.Time.Add(e.Duration).Sub(run.Time)
		if run.Duration < runTime {
			return nil
		}
		r.runs[e.Principal] = nil
		return []AuditEntry{*run}
	}
	return []AuditEntry{e}
}
