package imap

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	goimap "github.com/emersion/go-imap/v2"
)

// Criteria selects messages: all that is set must hold, and the zero value selects every
// message. A server takes text as a phrase, anywhere in the field and without regard to case,
// and of times the day alone.
type Criteria struct {
	UIDs       []UIDSet // in each of them
	Header     []HeaderField
	Body       []string
	Unseen     bool
	Since      time.Time // received on this day or later; zero means no bound, as for the others
	Before     time.Time
	SentSince  time.Time // dated by its header
	SentBefore time.Time
	AnyOf      [][]Criteria // of each, where it is not empty, at least one
}

// HeaderField is a header field that holds some text, or that is there at all where Text is
// empty.
type HeaderField struct{ Name, Text string }

// HeaderHolds selects messages that have some text in a header field.
func HeaderHolds(name, text string) Criteria { return Criteria{Header: []HeaderField{{name, text}}} }

// wire is the criteria as the library has them.
func (c *Criteria) wire() *goimap.SearchCriteria {
	out := &goimap.SearchCriteria{Body: c.Body, Since: c.Since, Before: c.Before, SentSince: c.SentSince, SentBefore: c.SentBefore}
	for _, set := range c.UIDs {
		out.UID = append(out.UID, set.uids())
	}
	for _, h := range c.Header {
		out.Header = append(out.Header, goimap.SearchCriteriaHeaderField{Key: h.Name, Value: h.Text})
	}
	if c.Unseen {
		out.NotFlag = []goimap.Flag{goimap.FlagSeen}
	}
	for _, any := range c.AnyOf {
		if len(any) > 0 {
			out.And(anyOf(any))
		}
	}
	return out
}

// anyOf nests as little as possible, since servers bound the depth.
func anyOf(all []Criteria) *goimap.SearchCriteria {
	n := len(all)
	if n == 1 {
		return all[0].wire()
	}
	return &goimap.SearchCriteria{Or: [][2]goimap.SearchCriteria{{*anyOf(all[:n/2]), *anyOf(all[n/2:])}}}
}

// inASCII returns criteria without text beyond ASCII, which select at least as many messages.
func (c Criteria) inASCII() Criteria {
	header, body, any := c.Header, c.Body, c.AnyOf
	c.Header, c.Body, c.AnyOf = nil, nil, nil
	for _, h := range header {
		if part := asciiPart(h.Text); part != "" || h.Text == "" {
			c.Header = append(c.Header, HeaderField{h.Name, part})
		}
	}
	for _, text := range body {
		if part := asciiPart(text); part != "" {
			c.Body = append(c.Body, part)
		}
	}
	for _, all := range any {
		var plain []Criteria
		for _, one := range all {
			plain = append(plain, one.inASCII())
		}
		c.AnyOf = append(c.AnyOf, plain)
	}
	return c
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

// Searching is a UID SEARCH that was started.
// Wait returns the matching UIDs. The set can name more numbers than fit in
// memory: count it before expanding it.
type Searching = Pending[UIDSet]

// Search starts a UID SEARCH. Where the server has no ESEARCH only one for each folder that
// is opened may be in progress, because plain answers carry no tag; an EXAMINE between two
// of them keeps their answers in order (RFC 3501 section 5.5). A charset is declared only for text beyond ASCII. RFC
// 3501 section 6.4.4 lets a server refuse any charset: then the pool begins the lend again,
// and of such text a search has the longest part in ASCII. It finds more, which the caller
// has to check where InASCII says so.
func (s *Session) Search(criteria Criteria) *Searching {
	var opts *goimap.SearchOptions
	if s.HasAlready("ESEARCH") {
		opts = &goimap.SearchOptions{ReturnAll: true}
	}
	if s.noCharset {
		criteria = criteria.inASCII()
	}
	s.guard.declared = false
	cmd := s.client.UIDSearch(criteria.wire(), opts)
	declared := s.guard.declared
	return &Searching{func() (UIDSet, error) {
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
		all, _ := data.All.(goimap.UIDSet)
		set, ok := uidsOf(all)
		if !ok {
			err := fmt.Errorf("%w: search result with * in it", errNotIMAP)
			s.guard.end(err)
			return nil, s.fail(StageSearch, err)
		}
		return set, nil
	}}
}

// InASCII reports whether the server refused a charset, so that searches have no text beyond
// ASCII.
func (s *Session) InASCII() bool { return s.noCharset }

// Counting is a SEARCH that was started for the number of its matches.
// Wait returns how many messages match.
type Counting = Pending[uint32]

// Count starts a SEARCH by sequence number for the number of matches. No message
// disappears while it runs (RFC 9051 section 7.5.1), so that for a range of UIDs
// from 1 on the number is a sequence number. For its progress, see Search.
func (s *Session) Count(criteria Criteria) *Counting {
	extended := s.HasAlready("ESEARCH")
	var opts *goimap.SearchOptions
	if extended {
		opts = &goimap.SearchOptions{ReturnCount: true}
	}
	cmd := s.client.Search(criteria.wire(), opts)
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
