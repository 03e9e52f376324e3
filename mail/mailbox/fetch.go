package mailbox

import (
	"cmp"
	"context"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// maxAlone is how many messages of a window are asked for one by one.
const maxAlone = 100

// fetchAll fetches messages when the server may refuse some of them. A refused FETCH fails
// as a whole: fetchAll then asks which messages exist, and fetches the missing ones one by
// one. A message that is refused again is not readable. Where the connection breaks or the
// time ends, it returns what came with the error; with newest the newest messages come first.
func (x *imapBox) fetchAll(s *imap.Session, set imap.NumSet, items imap.Items, newest bool) ([]fetch.Message, error) {
	box, _ := s.Selected()
	begin := s.Fetch
	if newest {
		begin = func(set imap.NumSet, items imap.Items) *imap.Fetching {
			return s.FetchNewest(set, items, false)
		}
	}
	data, err := begin(set, items).Wait()
	if !imap.Refused(err) {
		return x.readWindow(box, data), err
	}
	s.Renew()
	all, allErr := s.Fetch(set, imap.Items{}).Wait()
	out := x.readWindow(box, data)
	if allErr != nil || len(all)-len(data) > maxAlone {
		return out, err
	}
	for _, d := range all {
		if fetch.DataOf(data, d.UID) != nil {
			continue
		}
		s.Renew()
		one, err := s.Fetch(imap.UIDs(d.UID), items).Wait()
		switch {
		case imap.Refused(err):
			out = append(out, fetch.Message{Ref: x.refTo(box.Name, box.UIDValidity, d.UID)})
		case err != nil:
			return out, err
		default:
			out = append(out, x.readWindow(box, one)...)
		}
	}
	slices.SortFunc(out, func(a, b fetch.Message) int { return cmp.Compare(a.Ref.UID, b.Ref.UID) })
	return out, nil
}

// readWindow returns messages of a folder by ascending UID.
func (x *imapBox) readWindow(box imap.Folder, data []*imap.Fetched) []fetch.Message {
	out := make([]fetch.Message, len(data))
	for i, d := range data {
		out[i] = fetch.Read(x.refTo(box.Name, box.UIDValidity, d.UID), d)
	}
	return out
}

// maxEmpty is how many windows in a row may come back empty: a server that keeps naming
// messages and returns no data would keep this busy for ever.
const maxEmpty = 5

// walk fetches messages of the folder that is open, window by window, and gives each
// window to fn in the order asked for, until fn returns false. size says how many
// messages the next window has; nil means maxWindow.
func (x *imapBox) walk(s *imap.Session, from fetch.Source, oldest bool, w fetch.Wanted, size func() int, fn func(got []fetch.Message) (more bool)) error {
	box, _ := s.Selected()
	if size == nil {
		size = func() int { return maxWindow }
	}
	empty, looked := 0, 0
	for set := from.Next(uint32(size()), oldest); set != nil; set = from.Next(uint32(size()), oldest) {
		s.Renew()
		x.looking(looked, box.Name)
		got, err := x.fetchAll(s, set, w.Items(), !oldest)
		if err != nil {
			fn(unbroken(set, got, oldest))
			return err
		}
		looked += len(got)
		if empty++; len(got) > 0 {
			empty = 0
		} else if empty == maxEmpty {
			return x.givesNothing()
		}
		if uids, ok := set.(imap.UIDSet); ok {
			got = slices.DeleteFunc(got, func(g fetch.Message) bool { return !uids.Contains(g.Ref.UID) })
		}
		if !oldest {
			slices.Reverse(got)
		}
		if !fn(got) {
			return nil
		}
	}
	return nil
}

// unbroken is what came of a set of messages before an error, in the order of a list and up
// to the first of which nothing came. got is by ascending UID.
func unbroken(set imap.NumSet, got []fetch.Message, oldest bool) []fetch.Message {
	var numbers []uint32
	byNumber := make(map[uint32]fetch.Message, len(got))
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
	var whole []fetch.Message
	for _, n := range numbers {
		g, ok := byNumber[n]
		if !ok {
			break
		}
		whole = append(whole, g)
	}
	return whole
}

// fetchFrom makes visits, and gives what was fetched of each folder to take. Of what a
// server refuses it fetches each message alone, where it has to. A folder that was replaced
// has an error with this advice. When the connection breaks or the time ends, take gets what
// came of the folder that was being read, and fetchFrom returns the error.
func (x *imapBox) fetchFrom(s *imap.Session, all fetch.Visits, advice mail.Advice, take func(i int, v *fetch.Visit, got []fetch.Message)) error {
	err := all.Start(s, func(i int, v *fetch.Visit) {
		switch {
		case v.Err == fetch.ErrReplaced:
			v.Err = x.MadeAnew(advice)
		case v.Err == nil && v.Refused == nil:
			take(i, v, x.readWindow(v.Box, v.Data))
			v.Data = nil
		}
	})
	if err != nil {
		for i, v := range all {
			if v.Err == nil && len(v.Data) > 0 {
				take(i, v, x.readWindow(v.Box, v.Data))
			}
		}
	}
	for i, v := range all {
		if err != nil || v.Err != nil || v.Refused == nil {
			continue
		}
		if v.Box, err = s.Examine(v.Folder).Wait(); err == nil && v.UIDValidity != 0 && v.Box.UIDValidity != v.UIDValidity {
			v.Err = x.MadeAnew(advice)
			continue
		}
		var got []fetch.Message
		for _, r := range v.Requests {
			if err == nil {
				var some []fetch.Message
				some, err = x.fetchAll(s, r.UIDs, r.Items, false)
				got = append(got, some...)
			}
		}
		if err == nil {
			take(i, v, got)
		}
	}
	return err
}

// fetchAgain fetches other data of messages, which may be in several folders, and puts it in
// place of what is there. It returns the messages of which it came: one whose header does not
// come stays as it is.
func (x *imapBox) fetchAgain(s *imap.Session, messages []*fetch.Message, w fetch.Wanted) (replaced []*fetch.Message, err error) {
	var all fetch.Visits
	for _, g := range messages {
		all.To(g.Ref.Folder, g.Ref.UIDValidity).Fetch(g.Ref.UID, w.Items())
	}
	err = x.fetchFrom(s, all, mail.AdviceListAgain, func(_ int, v *fetch.Visit, got []fetch.Message) {
		replaced = append(replaced, fetch.Replace(messages, got)...)
	})
	for _, v := range all {
		err = cmp.Or(err, v.Err)
	}
	return replaced, err
}

// withStructure runs ask, which also fetches the messages' structures, and again without
// them if the answer cannot be read: one message's BODYSTRUCTURE can make the answer for
// all of them unreadable. Then their headers say roughly whether they have attachments.
func withStructure(ctx context.Context, ask func(structure bool) error) error {
	err := ask(true)
	if ctx.Err() == nil && imap.Unreadable(err) {
		err = ask(false)
	}
	return err
}

// complete fetches of messages in the open folder what their list did not: with structure the
// structures of those of which it is in doubt what they have, and when those came that do not say
// when they were sent. If the server refuses, that stays unknown.
func complete(s *imap.Session, messages []*fetch.Message, doubtful func(*fetch.Message) bool, structure bool) error {
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
		d := fetch.DataOf(data, g.Ref.UID)
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
