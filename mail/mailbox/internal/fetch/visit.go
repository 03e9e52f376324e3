package fetch

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail/internal/imap"
)

// Visit is what one folder is asked for, and its answers.
type Visit struct {
	Folder      string
	UIDValidity uint32 // the UIDVALIDITY to which the UIDs of requests belong; 0 means the present one
	Criteria    []imap.Criteria
	Requests    []imap.FetchRequest

	Box   imap.Folder
	Err   error         // the server did not open the folder, or it was replaced
	Found []imap.UIDSet // for each of criteria
	Errs  []error       // for each of criteria, the server's refusal
	Data  []*imap.Fetched
	// Refused is the server's refusal of requests; data is incomplete then.
	Refused error
}

// Fetch adds a message to the requests. Messages of which the same is asked share a FETCH; one
// that is in the requests already stays there.
func (v *Visit) Fetch(uid uint32, items imap.Items) {
	if slices.ContainsFunc(v.Requests, func(r imap.FetchRequest) bool { return r.UIDs.Contains(uid) }) {
		return
	}
	i := slices.IndexFunc(v.Requests, func(r imap.FetchRequest) bool { return reflect.DeepEqual(r.Items, items) })
	if i < 0 {
		i = len(v.Requests)
		v.Requests = append(v.Requests, imap.FetchRequest{Items: items})
	}
	v.Requests[i].UIDs = v.Requests[i].UIDs.With(imap.UIDs(uid))
}

// Visits are visits to several folders, one to each.
type Visits []*Visit

// To is the visit to a folder, a new one at the end where there is none yet.
func (all *Visits) To(folder string, valid uint32) *Visit {
	for _, v := range *all {
		if v.Folder == folder {
			return v
		}
	}
	v := &Visit{Folder: folder, UIDValidity: valid}
	*all = append(*all, v)
	return v
}

// ErrReplaced says that a folder has another UIDVALIDITY than the one visited.
var ErrReplaced = errors.New("the folder was replaced")

// Start makes the visits in one write, each behind the opening of its folder, and waits for
// them; the last folder stays open. A single folder that is open is not opened again.
// answered, which may be nil, is called when a folder has answered and no error has ended
// the visits. The error is one that ends them all.
func (all Visits) Start(s *imap.Session, answered func(i int, v *Visit)) (broken error) {
	type commands struct {
		opening  []*imap.Examining // all of the same folder
		searches []*imap.Searching
		fetch    *imap.Fetching
	}
	s.Renew()
	box, open := s.Selected()
	open = open && len(all) == 1 && box.Name == all[0].Folder && box.UIDValidity == all[0].UIDValidity
	// Answers without tags need an EXAMINE between them.
	tagged := slices.ContainsFunc(all, func(v *Visit) bool { return len(v.Criteria) > 1 }) && s.HasAlready("ESEARCH")
	sent := make([]commands, len(all))
	s.Together(func() {
		for i, v := range all {
			c := &sent[i]
			if !open {
				c.opening = append(c.opening, s.Examine(v.Folder))
			}
			for n, criteria := range v.Criteria {
				if n > 0 && !tagged {
					c.opening = append(c.opening, s.Examine(v.Folder))
				}
				c.searches = append(c.searches, s.Search(criteria))
			}
			if len(v.Requests) > 0 {
				c.fetch = s.FetchEach(v.Requests)
			}
		}
	})
	for i, v := range all {
		v.Box, v.Err, v.Refused = box, nil, nil
		v.Found, v.Errs = make([]imap.UIDSet, len(v.Criteria)), make([]error, len(v.Criteria))
		for n, o := range slices.Backward(sent[i].opening) {
			b, err := o.Wait()
			if n == 0 {
				v.Box = b
			}
			v.Err = cmp.Or(err, v.Err)
		}
		for n, c := range sent[i].searches {
			v.Found[n], v.Errs[n] = c.Wait()
		}
		if c := sent[i].fetch; c != nil {
			v.Data, v.Refused = c.Wait()
		}
		for _, err := range append([]error{v.Err, v.Refused}, v.Errs...) {
			if !imap.Refused(err) {
				broken = cmp.Or(broken, err)
			}
		}
		if v.Err == nil && v.UIDValidity != 0 && v.UIDValidity != v.Box.UIDValidity {
			v.Err = ErrReplaced
		}
		if broken == nil && answered != nil {
			answered(i, v)
		}
	}
	return broken
}

// Now opens a folder and fetches from it, in one round trip. The folder is current, and
// a UID names the message it named when box was told: if the folder is already open, it
// asks the server in the same write whether that still holds, and opens the folder again
// only if not. Opening it each time would work too, but costs servers more the larger the
// folder is; sending a NOOP first would not, since Dovecot answers the commands sent with
// it from the session's earlier state.
func Now(s *imap.Session, folder string, start func() *imap.Fetching) (box imap.Folder, data []*imap.Fetched, openErr, fetchErr error) {
	if box, ok := s.Unchanged(folder); ok {
		data, current, err := s.Still(start)
		if current || err != nil && !imap.Refused(err) {
			return box, data, nil, err
		}
		s.Renew()
	}
	var opening *imap.Examining
	var fetching *imap.Fetching
	s.Together(func() {
		opening = s.Examine(folder)
		fetching = start()
	})
	box, openErr = opening.Wait()
	data, fetchErr = fetching.Wait()
	return box, data, openErr, fetchErr
}

// Source is the messages to walk: a set of UIDs, or a range of sequence numbers.
type Source struct {
	UIDs      imap.UIDSet // none: by number
	Low, High uint32      // from 1; high 0 means none
}

// Next takes n messages from one end; nil means that no messages are left.
func (c *Source) Next(n uint32, oldest bool) imap.NumSet {
	if len(c.UIDs) > 0 {
		var window imap.UIDSet
		window, c.UIDs = c.UIDs.Split(n, oldest)
		return window
	}
	if c.High == 0 || c.Low > c.High {
		return nil
	}
	n = min(n, c.High-c.Low+1)
	if oldest {
		c.Low += n
		return imap.SeqRange{First: c.Low - n, Last: c.Low - 1}
	}
	c.High -= n
	return imap.SeqRange{First: c.High + 1, Last: c.High + n}
}

// MayBeDated adds bounds to a search that every message within the times has. The server
// knows only days, without their zone, so the bounds are a day wider on either side; a
// message without a readable Date counts by its INTERNALDATE.
func MayBeDated(c *imap.Criteria, since, until time.Time) {
	if !since.IsZero() {
		day := since.UTC().AddDate(0, 0, -1)
		c.AnyOf = append(c.AnyOf, []imap.Criteria{{SentSince: day}, {Since: day}})
	}
	if !until.IsZero() {
		day := until.UTC().AddDate(0, 0, 2)
		c.AnyOf = append(c.AnyOf, []imap.Criteria{{SentBefore: day}, {Before: day}})
	}
}

// Unbroken is what came of a set of messages before an error, in the order of a list and up
// to the first of which nothing came. got is by ascending UID.
func Unbroken(set imap.NumSet, got []Message, oldest bool) []Message {
	var numbers []uint32
	byNumber := make(map[uint32]Message, len(got))
	switch set := set.(type) {
	case imap.UIDSet:
		numbers = set.Numbers()
		for _, g := range got {
			byNumber[g.Ref.UID] = g
		}
	case imap.SeqRange:
		for i := range set.Last - set.First + 1 {
			numbers = append(numbers, set.First+i)
		}
		for _, g := range got {
			byNumber[g.Number] = g
		}
	}
	if !oldest {
		slices.Reverse(numbers)
	}
	var whole []Message
	for _, n := range numbers {
		g, ok := byNumber[n]
		if !ok {
			break
		}
		whole = append(whole, g)
	}
	return whole
}

// WithStructure runs ask, which also fetches the messages' structures, and again without
// them if the answer cannot be read: one message's BODYSTRUCTURE can make the answer for
// all of them unreadable. Then their headers say roughly whether they have attachments.
func WithStructure(ctx context.Context, ask func(structure bool) error) error {
	err := ask(true)
	if ctx.Err() == nil && imap.Unreadable(err) {
		err = ask(false)
	}
	return err
}

// Complete fetches of messages in the open folder what their list did not: with structure the
// structures of those of which it is in doubt what they have, and when those came that do not say
// when they were sent. If the server refuses, that stays unknown.
func Complete(s *imap.Session, messages []*Message, doubtful func(*Message) bool, structure bool) error {
	var uids []uint32
	for _, g := range messages {
		if structure && doubtful(g) || g.DateOrArrival().IsZero() {
			uids = append(uids, g.Ref.UID)
		}
	}
	if len(uids) == 0 {
		return nil
	}
	s.Renew()
	data, err := s.Fetch(imap.UIDs(uids...), imap.Items{Date: true, Structure: structure}).Wait()
	for _, g := range messages {
		d := DataOf(data, g.Ref.UID)
		if d == nil {
			continue
		}
		if g.Internal.IsZero() {
			g.Internal = d.Date
		}
		g.Root = cmp.Or(g.Root, d.Structure)
	}
	if imap.Refused(err) {
		return nil
	}
	return err
}
