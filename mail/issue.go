package mail

import "time"

// Status says how much of an operation against a server succeeded (001, shared
// output envelope).
type Status string

// The statuses: everything, something, nothing.
const (
	StatusOK      Status = "ok"
	StatusPartial Status = "partial"
	StatusFailed  Status = "failed"
)

// Issue is one thing that went wrong while the rest of an operation went on.
type Issue struct {
	Kind      Kind
	Stage     string // the step that failed: connect, auth, examine, search, fetch, parse
	Message   string
	Retryable bool
	UID       uint32 // of the message, or 0
	MessageID string // of the message in its long form, or empty
	Advice    Advice // of a login that failed; empty for none
	Reason    string // for the audit only, never shown: as that of an Error
}

// Verification is the outcome of connecting and logging in once (001 section 2).
type Verification struct {
	Account      string
	Server       Endpoint
	Latency      time.Duration // dial to logged in
	Capabilities []string      // at most 256, sorted
	Issues       []Issue       // empty when everything worked
	Untried      bool          // there is a token, and the service is reached, but only a message tries the two together
}
