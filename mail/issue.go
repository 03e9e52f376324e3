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
	Code      string `json:"code"`  // an error code of the protocol, such as CONNECTION_FAILED
	Stage     string `json:"stage"` // what was being done: connect, auth, examine, search, fetch, parse
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	UID       uint32 `json:"uid,omitempty"`
	MessageID string `json:"message_id,omitempty"`
}

// Verification is the outcome of connecting and logging in once (001 section 2).
type Verification struct {
	Account      string
	Server       Endpoint
	Latency      time.Duration // dial to logged in
	Capabilities []string      // at most 256, sorted
	Issues       []Issue       // empty when everything worked
}
