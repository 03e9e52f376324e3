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
	mine, moved := s.opens, s.fresh.moved.Load()
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
			s.fresh.open(moved)
		}
		return f, nil
	}}
}

// Listing is a LIST that was started.
type Listing struct {
	done    chan struct{}
	data    []Listed
	skipped int
	err     error
}

// Listed is a folder as a server lists it.
type Listed struct {
	Name       string   // decoded
	Delimiter  string   // empty for a flat name
	Attributes []string // such as \Noselect, and its special use
	Status     *Status  // nil where the server did not send it with the list
}

// Skipped returns how many folders have names that cannot be decoded. Wait leaves them out.
// Call Skipped after Wait.
func (l *Listing) Skipped() int { return l.skipped }

// Wait returns the folders.
func (l *Listing) Wait() ([]Listed, error) {
	<-l.done
	return l.data, l.err
}

// List starts a LIST, with counts for one that has the Status of each folder where the server
// sends that along. Only one may be in progress. Unless Capabilities was called, it costs what
// that does, and cannot be part of Together.
func (s *Session) List(pattern string, counts bool) *Listing {
	l := &Listing{done: make(chan struct{})}
	if pattern == "" || len(pattern) > 1024 || strings.ContainsFunc(pattern, unicode.IsControl) {
		l.err = impossible(StageList, errors.New("folder pattern is empty, too long or holds a control character"))
		close(l.done)
		return l
	}
	var opts *goimap.ListOptions
	if s.Has("LIST-EXTENDED") {
		opts = &goimap.ListOptions{ReturnSpecialUse: s.Has("SPECIAL-USE")}
		if counts && s.Has("LIST-STATUS") {
			opts.ReturnStatus = statusItems()
		}
	}
	before := s.guard.mend.skipped.Load()
	cmd := s.client.List("", pattern, opts)
	go func() {
		defer close(l.done)
		for d := cmd.Next(); d != nil; d = cmd.Next() {
			f := Listed{Name: d.Mailbox}
			if d.Delim != 0 {
				f.Delimiter = string(d.Delim)
			}
			for _, a := range d.Attrs {
				f.Attributes = append(f.Attributes, string(a))
			}
			if d.Status != nil {
				f.Status = statusOf(d.Status)
			}
			l.data = append(l.data, f)
		}
		l.err = s.fail(StageList, cmd.Close())
		l.skipped = int(s.guard.mend.skipped.Load() - before)
	}()
	return l
}

// Status is the numbers of a folder.
type Status struct {
	Counted              bool // the server gave Messages and Unseen
	Messages, Unseen     uint32
	UIDNext, UIDValidity uint32 // 0 where it did not say
}

func statusItems() *goimap.StatusOptions {
	return &goimap.StatusOptions{NumMessages: true, NumUnseen: true, UIDNext: true, UIDValidity: true}
}

func statusOf(d *goimap.StatusData) *Status {
	st := &Status{UIDNext: uint32(d.UIDNext), UIDValidity: d.UIDValidity}
	if st.Counted = d.NumMessages != nil && d.NumUnseen != nil; st.Counted {
		st.Messages, st.Unseen = *d.NumMessages, *d.NumUnseen
	}
	return st
}

// Stating is a STATUS that was started.
// Wait returns the counts.
type Stating = Pending[*Status]

// Status starts a STATUS, of any folder at any time.
func (s *Session) Status(name string) *Stating {
	if err := wire.CheckFolder(name); err != nil {
		return unsent[*Status](StageStatus, err)
	}
	cmd := s.client.Status(s.named(name), statusItems())
	return &Stating{func() (*Status, error) {
		data, err := cmd.Wait()
		if err != nil {
			return nil, s.fail(StageStatus, err)
		}
		return statusOf(data), nil
	}}
}
