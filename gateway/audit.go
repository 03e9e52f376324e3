package gateway

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
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
	Changes   string        `json:"changes,omitempty"` // what it changed in mailboxes: ids that undo takes, see NoteChange
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

// Bounded is what an Auditor can be besides: one in which each principal has a share. It is
// asked before a command, since one that was executed has its entry.
type Bounded interface {
	// LogFull returns how long the principal has to wait until it may cause more entries, 0
	// for not at all, and how many bytes of entries it may cause in an hour. It is quick.
	LogFull(principal string) (wait time.Duration, share int)
}

// runTime is how long refused calls are counted before an entry is written for them.
const runTime = time.Minute

// runWhole is how many refused calls of a run have entries of their own, which say what each
// was; of those beyond a rate, which say nothing, it is one.
const runWhole = 3

// refusedRuns keeps refused calls from filling the log. Of those of one principal that are
// refused for one reason at one command, account and target, the first few have an entry at
// once, and those that follow have one together, once a minute, which is that of the first
// of them with a count. It is safe for concurrent use.
type refusedRuns struct {
	mu     sync.Mutex
	record func(AuditEntry)
	runs   map[runKey]*refusedRun
}

type runKey struct {
	principal, code, reason, path, account string
	target                                 [sha256.Size]byte
}

type refusedRun struct {
	whole   int
	counted *AuditEntry // for the calls since the last entry; nil for no call
}

// maxRuns bounds the runs at one time: a caller may name accounts that do not exist. A call
// beyond them has its own entry.
const maxRuns = 1000

// counted reports whether e is counted, and needs no entry of its own.
func (r *refusedRuns) counted(e AuditEntry) bool {
	if e.Allowed || e.Changes != "" {
		return false
	}
	key, whole := runKey{e.Principal, e.Code, e.Reason, e.Parsed, e.Account, sha256.Sum256([]byte(e.Target))}, runWhole
	if e.Reason == reasonRate || e.Reason == reasonLog { // whatever the commands are
		key, whole = runKey{principal: e.Principal, code: e.Code, reason: e.Reason}, 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.runs[key]
	if run == nil {
		if len(r.runs) >= maxRuns {
			return false
		}
		if r.runs == nil {
			r.runs = map[runKey]*refusedRun{}
		}
		run = &refusedRun{}
		r.runs[key] = run
		time.AfterFunc(runTime, func() { r.write(key) })
	}
	switch {
	case run.whole < whole:
		run.whole++
		return false
	case run.counted == nil:
		e.Count = 1
		run.counted = &e
	default:
		run.counted.Count++
		run.counted.Duration = e.Time.Add(e.Duration).Sub(run.counted.Time)
	}
	return true
}

// write writes the entry of a run, which is over where nothing was counted for a minute.
func (r *refusedRuns) write(key runKey) {
	r.mu.Lock()
	var e *AuditEntry
	if run := r.runs[key]; run != nil {
		if e, run.counted = run.counted, nil; e == nil {
			delete(r.runs, key)
		} else {
			time.AfterFunc(runTime, func() { r.write(key) })
		}
	}
	r.mu.Unlock()
	if e != nil {
		r.record(*e)
	}
}

// Close writes the entries for calls that were counted and have none yet. They are lost where
// the process ends without it.
func (g *Gateway) Close() {
	g.runs.mu.Lock()
	keys := slices.Collect(maps.Keys(g.runs.runs))
	g.runs.mu.Unlock()
	for _, key := range keys {
		g.runs.write(key)
	}
}
