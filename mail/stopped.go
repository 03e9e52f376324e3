package mail

import (
	"context"
	"fmt"
	"time"
)

// Stopped says that everything is stopped: nothing may begin until the administrator
// resumes. As an error it says that something did not begin, or was ended, for that.
type Stopped struct {
	By    string // the principal that stopped it
	Since time.Time
}

// Error says so in one sentence, without its full stop.
func (s *Stopped) Error() string {
	return fmt.Sprintf("everything has been stopped by %s since %s", s.By, s.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// Stopper may be implemented by a Directory that knows of stops. Before anything begins on a
// connection it is asked.
type Stopper interface {
	// MayBegin returns nil, or an error that matches *Stopped, or why it cannot be known.
	MayBegin(ctx context.Context) error
}
