package imap

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// FolderName gives INBOX, whose case does not matter, its one spelling.
func FolderName(name string) string {
	if strings.EqualFold(name, "INBOX") {
		return "INBOX"
	}
	return name
}

// Pending is a command that was started and whose answer is a T.
type Pending[T any] struct{ wait func() (T, error) }

// Wait blocks until the server has answered.
func (p *Pending[T]) Wait() (T, error) { return p.wait() }

// unsent is a command that cannot be sent.
func unsent[T any](stage string, err error) *Pending[T] {
	return &Pending[T]{func() (none T, _ error) { return none, impossible(stage, err) }}
}

// Waiter is a command that was started and whose answer has no data.
type Waiter struct{ wait func() error }

// Wait blocks until the server has answered.
func (w *Waiter) Wait() error { return w.wait() }

// Noop starts a NOOP, which lets the server report what changed.
func (s *Session) Noop() *Waiter {
	cmd := s.client.Noop()
	return &Waiter{func() error { return s.fail(StageNoop, cmd.Wait()) }}
}

// Examining is an EXAMINE that was started.
// Wait returns the folder as the server describes it.
type Examining = Pending[Folder]

// Examine starts an EXAMINE. From here until Wait no folder counts as EXAMINEd. Several can
// be in progress, each with one Search or Fetch behind it: they are answered in order, and
// the last one's folder stays open.
func (s *Session) Examine(name string) *Examining { return s.opening(name, true) }

// opening starts an EXAMINE or a SELECT.
func (s *Session) opening(name string, readOnly bool) *Examining {
	s.folder, s.noted = Folder{}, false
	stage := StageSelect
	if readOnly {
		stage = StageExamine
	}
	name = FolderName(name)
	if err := wire.CheckFolder(name); err != nil {
		return unsent[Folder](stage, err)
	}
	s.opens++
	mine := s.opens
	cmd := s.client.Select(s.named(name), &goimap.SelectOptions{ReadOnly: readOnly})
	return &Examining{func() (Folder, error) {
		data, err := cmd.Wait()
		if err != nil {
			return Folder{}, s.fail(stage, err)
		}
		if data.UIDValidity == 0 {
			err := fmt.Errorf("%w: no UIDVALIDITY", errNotIMAP)
			s.guard.end(err)
			return Folder{}, s.fail(stage, err)
		}
		f := Folder{Name: name, UIDValidity: data.UIDValidity, UIDNext: uint32(data.UIDNext), Exists: data.NumMessages, Writable: !readOnly}
		if mine == s.opens {
			s.folder = f
			s.fresh.open()
		}
		return f, nil
	}}
}

// Searching is a UID SEARCH that was started.
// Wait returns the matching UIDs. The set can name more numbers than fit in
// memory: count it before expanding it.
type Searching = Pending[goimap.UIDSet]

// Search starts a UID SEARCH. Where the server has no ESEARCH only one for each folder that
// is opened may be in progress, because plain answers carry no tag; an EXAMINE between two
// of them keeps their answers in order (RFC 3501 section 5.5). A charset is declared only for text beyond ASCII. RFC
// 3501 section 6.4.4 lets a server refuse any charset: then the pool begins the lend again,
// and its searches declare no charset.
func (s *Session) Search(criteria *goimap.SearchCriteria) *Searching {
	var opts *goimap.SearchOptions
	if s.HasAlready("ESEARCH") {
		opts = &goimap.SearchOptions{ReturnAll: true}
	}
	s.guard.undeclared, s.guard.declared = s.noCharset, false
	cmd := s.client.UIDSearch(criteria, opts)
	declared := s.guard.declared
	s.guard.undeclared = false
	return &Searching{func() (goimap.UIDSet, error) {
		data, err := cmd.Wait()
		var refused *goimap.Error
		if errors.As(err, &refused) && declared {
			e := refusal(StageSearch, refused)
			e.OutOfStep, e.Err = !s.alive(), errCharset // the library ends a connection where a literal was refused
			return nil, e
		}
		if err = s.whole(StageSearch, err); err != nil {
			return nil, err
		}
		set, _ := data.All.(goimap.UIDSet)
		for _, r := range set {
			if r.Start == 0 || r.Stop < r.Start {
				err := fmt.Errorf("%w: search result with * in it", errNotIMAP)
				s.guard.end(err)
				return nil, s.fail(StageSearch, err)
			}
		}
		return set, nil
	}}
}

// Counting is a SEARCH that was started for the number of its matches.
// Wait returns how many messages match.
type Counting = Pending[uint32]

// Count starts a SEARCH by sequence number for the number of matches. No message
// disappears while it runs (RFC 9051 section 7.5.1), so that for a range of UIDs
// from 1 on the number is a sequence number. For its progress, see Search.
func (s *Session) Count(criteria *goimap.SearchCriteria) *Counting {
	extended := s.HasAlready("ESEARCH")
	var opts *goimap.SearchOptions
	if extended {
		opts = &goimap.SearchOptions{ReturnCount: true}
	}
	cmd := s.client.Search(criteria, opts)
	return &Counting{func() (uint32, error) {
		data, err := cmd.Wait()
		if err = s.whole(StageSearch, err); err != nil {
			return 0, err
		}
		if extended {
			return data.Count, nil
		}
		set, _ := data.All.(goimap.SeqSet)
		var n uint32
		for _, r := range set {
			n += r.Stop - r.Start + 1
		}
		return n, nil
	}}
}

// Listing is a LIST that was started.
type Listing struct {
	done    chan struct{}
	data    []*goimap.ListData
	skipped int
	err     error
}

// Skipped returns how many folders have names that cannot be decoded. Wait leaves them out.
// Call Skipped after Wait.
func (l *Listing) Skipped() int { return l.skipped }

// Wait returns the folders.
func (l *Listing) Wait() ([]*goimap.ListData, error) {
	<-l.done
	return l.data, l.err
}

// List starts a LIST. Only one may be in progress.
func (s *Session) List(pattern string, opts *goimap.ListOptions) *Listing {
	l := &Listing{done: make(chan struct{})}
	if pattern == "" || len(pattern) > 1024 || strings.ContainsFunc(pattern, unicode.IsControl) {
		l.err = impossible(StageList, errors.New("folder pattern is empty, too long or holds a control character"))
		close(l.done)
		return l
	}
	before := s.guard.mend.skipped.Load()
	cmd := s.client.List("", pattern, opts)
	go func() {
		defer close(l.done)
		for d := cmd.Next(); d != nil; d = cmd.Next() {
			l.data = append(l.data, d)
		}
		l.err = s.fail(StageList, cmd.Close())
		l.skipped = int(s.guard.mend.skipped.Load() - before)
	}()
	return l
}

// Stating is a STATUS that was started.
// Wait returns the counts.
type Stating = Pending[*goimap.StatusData]

// Status starts a STATUS, of any folder at any time.
func (s *Session) Status(name string, opts *goimap.StatusOptions) *Stating {
	if err := wire.CheckFolder(name); err != nil {
		return unsent[*goimap.StatusData](StageStatus, err)
	}
	cmd := s.client.Status(s.named(name), opts)
	return &Stating{func() (*goimap.StatusData, error) {
		data, err := cmd.Wait()
		return data, s.fail(StageStatus, err)
	}}
}
