package imap

import (
	"sync/atomic"
	"time"

	"github.com/emersion/go-imap/v2/imapclient"
)

// freshness tracks the server's reports on the open folder. Opening a folder again, to be
// sure of its state, costs a server time that grows with the folder. A NOOP after the
// commands is cheap: the server then says whether their answers were current. It is not
// relied on for long: not every server notices that a folder was replaced by another of the
// same name.
type freshness struct {
	moved  atomic.Int64 // EXISTS and EXPUNGE that answered no EXAMINE or SELECT
	opened int64        // moved when the folder was asked for: what comes behind the answer may be read before it is waited for
	at     time.Time    // when that was, by the wall clock
}

// trusted is how long an open folder is taken for the one of that name.
const trusted = 10 * time.Second

func (v *freshness) open(moved int64) { v.opened, v.at = moved, time.Now().Round(0) }

func (v *freshness) expunged(uint32) { v.moved.Add(1) }

// Moved is a number that changes when a server reports, unasked, that messages were added
// to a folder or removed.
func (s *Session) Moved() int64 { return s.fresh.moved.Load() }

func (s *Session) mailbox(d *imapclient.UnilateralDataMailbox) {
	if d.NumMessages != nil {
		s.fresh.moved.Add(1)
		s.guard.report(true)
	}
}

// Unchanged returns the folder that is open, and whether it is the one named, open
// for reading alone, was opened a short while ago, and no message is known to have come or
// gone since.
func (s *Session) Unchanged(folder string) (Folder, bool) {
	return s.unchanged(folder, trusted)
}

// unchanged is Unchanged for a folder opened less than while ago.
func (s *Session) unchanged(folder string, while time.Duration) (Folder, bool) {
	f, ok := s.Selected()
	return f, ok && f.Name == FolderName(folder) && !f.Writable && s.fresh.moved.Load() == s.fresh.opened && time.Since(s.fresh.at) < while
}

// Still fetches from the folder that is open, with a NOOP behind it in one write, and
// returns what Wait would. current reports whether the data is up to date: since the folder
// was opened, the server has reported no message added, removed or flagged, and no trouble
// with the folder.
func (s *Session) Still(start func() *Fetching) (data []*Fetched, current bool, err error) {
	before := s.guard.mend.fetches.Load()
	warnings := s.guard.warnings.Load()
	var f *Fetching
	var noop *Waiter
	s.Together(func() {
		f = start()
		noop = s.Noop()
	})
	data, err = f.Wait()
	if noopErr := noop.Wait(); err == nil {
		err = noopErr
	}
	told := s.guard.mend.fetches.Load() - before
	return data, err == nil && s.fresh.moved.Load() == s.fresh.opened && s.guard.warnings.Load() == warnings && told == int64(len(data)), err
}
