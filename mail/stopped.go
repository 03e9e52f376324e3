package mail

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Stopped says that everything is stopped: nothing may begin until the administrator
// resumes. As an error it says that something did not begin, or was ended, for that.
type Stopped struct {
	By    string // the principal that stopped it
	Since time.Time
	Only  []string // the principals that it holds; nil for everybody
}

// Holds reports whether a principal is stopped.
func (s *Stopped) Holds(principal string) bool {
	return s != nil && (s.Only == nil || slices.Contains(s.Only, principal))
}

// Error says so in one sentence, without its full stop.
func (s *Stopped) Error() string {
	if s.Only != nil {
		return fmt.Sprintf("you have been stopped since %s", s.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return fmt.Sprintf("everything has been stopped by %s since %s", s.By, s.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// Stopper may be implemented by a Directory that knows of stops. Before anything begins on a
// connection it is asked.
type Stopper interface {
	// MayBegin returns nil, or an error that matches *Stopped, or why it cannot be known.
	MayBegin(ctx context.Context) error
}
