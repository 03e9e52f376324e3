package imap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// CheckFolder reports why a name cannot be a folder's: the library would send
// some of these as they are. The length is in bytes.
func CheckFolder(name string) error {
	switch {
	case name == "":
		return errors.New("folder name is empty")
	case len(name) > 1024:
		return errors.New("folder name is too long")
	case hasControl(name):
		return errors.New("folder name holds a control character")
	}
	return nil
}

// FolderName gives INBOX, whose case does not matter, its one spelling.
func FolderName(name string) string {
	if strings.EqualFold(name, "INBOX") {
		return "INBOX"
	}
	return name
}

// Waiter is a command that was started.
type Waiter struct{ wait func() error }

// Wait blocks until the server has answered.
func (w *Waiter) Wait() error { return w.wait() }

// Noop starts a NOOP, which lets the server report what changed.
func (s *Session) Noop() *Waiter {
	cmd := s.client.Noop()
	return &Waiter{func() error { return s.fail(StageNoop, cmd.Wait()) }}
}

// Examining is an EXAMINE that was started.
type Examining struct {
	wait func() (Folder, error)
}

// Wait returns the folder as the server describes it.
func (e *Examining) Wait() (Folder, error) { return e.wait() }

// Examine starts an EXAMINE. From here until Wait no folder counts as EXAMINEd.
func (s *Session) Examine(name string) *Examining { return s.opening(name, true) }

// opening starts an EXAMINE or a SELECT.
func (s *Session) opening(name string, readOnly bool) *Examining {
	s.folder, s.noted = Folder{}, false
	stage := StageSelect
	if readOnly {
		stage = StageExamine
	}
	name = FolderName(name)
	if err := CheckFolder(name); err != nil {
		err = &Error{Op: "lend", Stage: stage, Kind: KindRefused, Permanent: true, Err: err}
		return &Examining{func() (Folder, error) { return Folder{}, err }}
	}
	cmd := s.client.Select(name, &goimap.SelectOptions{ReadOnly: readOnly})
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
		s.folder = Folder{Name: name, UIDValidity: data.UIDValidity, UIDNext: uint32(data.UIDNext), Exists: data.NumMessages, Writable: !readOnly}
		return s.folder, nil
	}}
}

// Searching is a UID SEARCH that was started.
type Searching struct {
	wait func() (goimap.UIDSet, error)
}

// Wait returns the matching UIDs. The set can name more numbers than fit in
// memory: count it before expanding it.
func (x *Searching) Wait() (goimap.UIDSet, error) { return x.wait() }

// Search starts a UID SEARCH. Where the server has no ESEARCH only one may be in
// progress, because plain answers carry no tag.
func (s *Session) Search(criteria *goimap.SearchCriteria) *Searching {
	var opts *goimap.SearchOptions
	if s.Has("ESEARCH") {
		opts = &goimap.SearchOptions{ReturnAll: true}
	}
	cmd := s.client.UIDSearch(criteria, opts)
	return &Searching{func() (goimap.UIDSet, error) {
		data, err := cmd.Wait()
		if err != nil {
			return nil, s.fail(StageSearch, err)
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
type Counting struct {
	wait func() (uint32, error)
}

// Wait returns how many messages match.
func (x *Counting) Wait() (uint32, error) { return x.wait() }

// Count starts a SEARCH by sequence number for the number of matches. No message
// disappears while it runs (RFC 9051 section 7.5.1), so that for a range of UIDs
// from 1 on the number is a sequence number. For its progress, see Search.
func (s *Session) Count(criteria *goimap.SearchCriteria) *Counting {
	extended := s.Has("ESEARCH")
	var opts *goimap.SearchOptions
	if extended {
		opts = &goimap.SearchOptions{ReturnCount: true}
	}
	cmd := s.client.Search(criteria, opts)
	return &Counting{func() (uint32, error) {
		data, err := cmd.Wait()
		if err != nil {
			return 0, s.fail(StageSearch, err)
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
	done chan struct{}
	data []*goimap.ListData
	err  error
}

// Wait returns the folders.
func (l *Listing) Wait() ([]*goimap.ListData, error) {
	<-l.done
	return l.data, l.err
}

// List starts a LIST. Only one may be in progress.
func (s *Session) List(pattern string, opts *goimap.ListOptions) *Listing {
	l := &Listing{done: make(chan struct{})}
	if pattern == "" || len(pattern) > 1024 || hasControl(pattern) {
		l.err = &Error{Op: "lend", Stage: StageList, Kind: KindRefused, Permanent: true, Err: errors.New("folder pattern is empty, too long or holds a control character")}
		close(l.done)
		return l
	}
	cmd := s.client.List("", pattern, opts)
	go func() {
		defer close(l.done)
		for d := cmd.Next(); d != nil; d = cmd.Next() {
			l.data = append(l.data, d)
		}
		l.err = s.fail(StageList, cmd.Close())
	}()
	return l
}

// Stating is a STATUS that was started.
type Stating struct {
	wait func() (*goimap.StatusData, error)
}

// Wait returns the counts.
func (x *Stating) Wait() (*goimap.StatusData, error) { return x.wait() }

// Status starts a STATUS. It may be asked of any folder at any time.
func (s *Session) Status(name string, opts *goimap.StatusOptions) *Stating {
	if err := CheckFolder(name); err != nil {
		err = &Error{Op: "lend", Stage: StageStatus, Kind: KindRefused, Permanent: true, Err: err}
		return &Stating{func() (*goimap.StatusData, error) { return nil, err }}
	}
	cmd := s.client.Status(name, opts)
	return &Stating{func() (*goimap.StatusData, error) {
		data, err := cmd.Wait()
		return data, s.fail(StageStatus, err)
	}}
}

// Fetching is a FETCH that was started.
type Fetching struct {
	s    *Session
	done chan struct{}
	data []*imapclient.FetchMessageBuffer
	err  error
}

// Wait returns one buffer for each message the server answered with a UID, by
// ascending UID.
func (f *Fetching) Wait() ([]*imapclient.FetchMessageBuffer, error) {
	<-f.done
	if f.err != nil {
		return nil, f.err
	}
	best := make(map[goimap.UID]*imapclient.FetchMessageBuffer)
	for _, m := range slices.Concat(f.data, f.s.strays()) {
		// Data without a UID is a flag change nobody asked for. Of two answers
		// for one message the fuller is the one that was asked for.
		if m.UID == 0 {
			continue
		}
		if old := best[m.UID]; old == nil || weight(m) >= weight(old) {
			best[m.UID] = m
		}
	}
	out := make([]*imapclient.FetchMessageBuffer, 0, len(best))
	for _, m := range best {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *imapclient.FetchMessageBuffer) int { return cmp.Compare(a.UID, b.UID) })
	return out, nil
}

func weight(m *imapclient.FetchMessageBuffer) int {
	n := len(m.BodySection)
	if m.BodyStructure != nil {
		n++
	}
	if !m.InternalDate.IsZero() {
		n++
	}
	return n
}

// Fetch starts a FETCH, by UID or by sequence number as the set says. Sections
// are always fetched with PEEK. Only one may be in progress.
func (s *Session) Fetch(set goimap.NumSet, opts goimap.FetchOptions) *Fetching {
	s.mu.Lock()
	s.stray, s.keep = nil, true
	s.mu.Unlock()
	return s.collecting(StageFetch, s.client.Fetch(set, peeking(opts)))
}

// collect reads one message's data. The library takes a literal that the
// connection cut short for a whole one, and would go on reading it while its own
// reader does: after an error the message and its command may not be touched
// until the reader has ended, and need not be after that.
func (s *Session) collect(m *imapclient.FetchMessageData) (*imapclient.FetchMessageBuffer, error) {
	buf := &imapclient.FetchMessageBuffer{SeqNum: m.SeqNum}
	for item := m.Next(); item != nil; item = m.Next() {
		switch item := item.(type) {
		case imapclient.FetchItemDataBodySection:
			var b []byte
			if item.Literal != nil {
				var err error
				if b, err = io.ReadAll(item.Literal); err != nil || int64(len(b)) != item.Literal.Size() {
					s.guard.end(io.ErrUnexpectedEOF)
					<-s.client.Closed()
					return nil, cmp.Or(err, io.ErrUnexpectedEOF)
				}
			}
			buf.BodySection = append(buf.BodySection, imapclient.FetchBodySectionBuffer{Section: item.Section, Bytes: b})
		case imapclient.FetchItemDataBinarySection:
			// Never asked for, so never waited for.
			s.guard.end(fmt.Errorf("%w: a section nobody asked for", errNotIMAP))
			if item.Literal != nil {
				_, _ = io.Copy(io.Discard, item.Literal)
			}
			<-s.client.Closed()
			return nil, errNotIMAP
		case imapclient.FetchItemDataFlags:
			buf.Flags = item.Flags
		case imapclient.FetchItemDataUID:
			buf.UID = item.UID
		case imapclient.FetchItemDataInternalDate:
			buf.InternalDate = item.Time
		case imapclient.FetchItemDataRFC822Size:
			buf.RFC822Size = item.Size
		case imapclient.FetchItemDataModSeq:
			buf.ModSeq = item.ModSeq
		case imapclient.FetchItemDataBodyStructure:
			buf.BodyStructure = item.BodyStructure
		}
	}
	return buf, nil
}

// takeStray collects FETCH data that the library matched with no command: a flag
// change nobody asked for, or an answer whose UID comes after a literal, or one
// that such a flag change had displaced. The library calls it on a goroutine of
// its own, and waits for it to read each literal.
func (s *Session) takeStray(m *imapclient.FetchMessageData) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	buf, err := s.collect(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.keep && buf.UID != 0 {
		s.stray = append(s.stray, buf)
	}
	s.busy--
	s.cond.Broadcast()
}

// strays returns what takeStray collected since the last FETCH began.
func (s *Session) strays() []*imapclient.FetchMessageBuffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy > 0 {
		s.cond.Wait()
	}
	out := s.stray
	s.stray, s.keep = nil, false
	return out
}
