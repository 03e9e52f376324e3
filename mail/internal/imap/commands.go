package imap

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

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

// Searching is a UID SEARCH that was started.
// Wait returns the matching UIDs. The set can name more numbers than fit in
// memory: count it before expanding it.
type Searching = Pending[goimap.UIDSet]

// Search starts a UID SEARCH. Where the server has no ESEARCH only one for each folder that
// is opened may be in progress, because plain answers carry no tag; an EXAMINE between two
// of them keeps their answers in order (RFC 3501 section 5.5). A charset is declared only for text beyond ASCII. RFC
// 3501 section 6.4.4 lets a server refuse any charset: then the pool begins the lend again,
// and of such text a search has the longest part in ASCII. It finds more, which the caller
// has to check where InASCII says so.
func (s *Session) Search(criteria *goimap.SearchCriteria) *Searching {
	var opts *goimap.SearchOptions
	if s.HasAlready("ESEARCH") {
		opts = &goimap.SearchOptions{ReturnAll: true}
	}
	if s.noCharset {
		criteria = inASCII(criteria)
	}
	s.guard.declared = false
	cmd := s.client.UIDSearch(criteria, opts)
	declared := s.guard.declared
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

// InASCII reports whether the server refused a charset, so that searches have no text beyond
// ASCII.
func (s *Session) InASCII() bool { return s.noCharset }

// inASCII returns criteria without text beyond ASCII, which match at least as many messages.
func inASCII(c *goimap.SearchCriteria) *goimap.SearchCriteria {
	out := *c
	out.Header, out.Body, out.Text, out.Not, out.Or = nil, nil, nil, nil, nil
	for _, h := range c.Header {
		if part := asciiPart(h.Value); part != "" || h.Value == "" {
			out.Header = append(out.Header, goimap.SearchCriteriaHeaderField{Key: h.Key, Value: part})
		}
	}
	for _, texts := range []struct {
		from []string
		to   *[]string
	}{{c.Body, &out.Body}, {c.Text, &out.Text}} {
		for _, text := range texts.from {
			if part := asciiPart(text); part != "" {
				*texts.to = append(*texts.to, part)
			}
		}
	}
	for i := range c.Not { // less text would match less
		if reflect.DeepEqual(inASCII(&c.Not[i]), &c.Not[i]) {
			out.Not = append(out.Not, c.Not[i])
		}
	}
	for _, or := range c.Or {
		out.Or = append(out.Or, [2]goimap.SearchCriteria{*inASCII(&or[0]), *inASCII(&or[1])})
	}
	return &out
}

// asciiPart is the longest run of ASCII in a text.
func asciiPart(s string) (longest string) {
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
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
