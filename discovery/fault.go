package discovery

import "errors"

// Code is a public error code. The first eight are those of 002 section 5.2.
type Code string

// The codes an envelope can carry.
const (
	ParseError       Code = "PARSE_ERROR"
	CommandNotFound  Code = "COMMAND_NOT_FOUND"
	PermissionDenied Code = "PERMISSION_DENIED"
	ValidationError  Code = "VALIDATION_ERROR"
	ExecutionError   Code = "EXECUTION_ERROR"
	Timeout          Code = "TIMEOUT"
	RateLimited      Code = "RATE_LIMITED"
	PathTraversal    Code = "PATH_TRAVERSAL_BLOCKED"

	NotFound         Code = "NOT_FOUND"
	Conflict         Code = "CONFLICT"
	AuthFailed       Code = "AUTH_FAILED"
	ConnectionFailed Code = "CONNECTION_FAILED"
	ConfigError      Code = "CONFIG_ERROR"
	StoreError       Code = "STORE_ERROR"
	ApprovalRequired Code = "APPROVAL_REQUIRED"
)

var exitStatus = map[Code]int{
	ParseError:       2,
	CommandNotFound:  2,
	ValidationError:  2,
	PathTraversal:    2,
	ConfigError:      3,
	AuthFailed:       4,
	NotFound:         5,
	PermissionDenied: 6,
	ApprovalRequired: 6,
	RateLimited:      7,
	ConnectionFailed: 8,
	Timeout:          8,
	Conflict:         9,
}

// ExitStatus is what a process ends with after this code; 0 for the empty code,
// which means success, and 1 for one that has no status of its own.
func (c Code) ExitStatus() int {
	if c == "" {
		return 0
	}
	return max(exitStatus[c], 1)
}

// Fault is a failure in its public form: what the envelope shows of it. Message
// says what happened and Hint what to do; neither ever holds a secret or a
// sensitive argument's value.
type Fault struct {
	Code     Code
	Message  string
	Hint     string   // never empty once it reaches an envelope
	Examples []string // commands that bind; at least one on every usage error

	// Reason is for the audit log alone: why a rule refused the command, such
	// as "filtered". It is not shown, since a caller must not learn from it
	// what the rule hides.
	Reason string

	// Foreign says that Message and Hint are somebody else's words, such as those
	// of a program that was run. The envelope then names them as untrusted.
	Foreign bool

	Err error // cause, for logs; nil when there is none

	option string // an option that the command lacks and nothing is near to
}

// Error returns the message. The cause is left out on purpose.
func (f *Fault) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Usage reports whether the fault is the caller's way of writing the command,
// which an example can mend.
func (f *Fault) Usage() bool { return exitStatus[f.Code] == 2 }

// Undecided is an error that can say that the operation may have happened all the same. Its
// message is then kept: a mere time-out or cancellation would make the caller try again.
type Undecided interface {
	error
	Undecided() bool
}

// AsFault returns the Fault in err's chain, or nil.
func AsFault(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return nil
}
