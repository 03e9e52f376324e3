package reading

import (
	"cmp"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// RefTo names a message of a folder of the account, by IMAP.
func (x *Viewer) RefTo(folder string, uidValidity, uid uint32) mail.Ref {
	return mail.Ref{Protocol: mail.IMAP, Account: x.Account, Folder: folder, UIDValidity: uidValidity, UID: uid}
}

// Looking tells how many messages of a folder have been looked at. With rules that hide
// messages it gives no numbers, since those would count hidden messages.
func (x *Viewer) Looking(done int, folder string) {
	if !x.Policy.ShowsAll() {
		done = 0
	}
	x.Tell(float64(done), 0, "reading "+folder)
}

// GivesNothing is the error of a server that lists messages and gives no data of them.
func (x *Viewer) GivesNothing() error {
	e := x.Failure(mail.KindRefused, imap.StageFetch, "The server lists messages that it does not return.", mail.AdviceAskOperator)
	e.Retryable = true
	return e
}

// Window returns messages of a folder by ascending UID.
func (x *Viewer) Window(box imap.Folder, data []*imap.Fetched) []fetch.Message {
	out := make([]fetch.Message, len(data))
	for i, d := range data {
		out[i] = fetch.Read(x.RefTo(box.Name, box.UIDValidity, d.UID), d)
	}
	return out
}

// maxAlone is how many messages of a window are asked for one by one.
const maxAlone = 100

// FetchAll fetches messages when the server may refuse some of them. A refused FETCH fails
// as a whole: FetchAll then asks which messages exist, and fetches the missing ones one by
// one. A message that is refused again is not readable. Where the connection breaks or the
// time ends, it returns what came with the error; with newest the newest messages come first.
func (x *Viewer) FetchAll(s *imap.Session, set imap.NumSet, items imap.Items, newest bool) ([]fetch.Message, error) {
	box, _ := s.Selected()
	begin := s.Fetch
	if newest {
		begin = func(set imap.NumSet, items imap.Items) *imap.Fetching {
			return s.FetchNewest(set, items, false)
		}
	}
	data, err := begin(set, items).Wait()
	if !imap.Refused(err) {
		return x.Window(box, data), err
	}
	s.Renew()
	all, allErr := s.Fetch(set, imap.Items{}).Wait()
	out := x.Window(box, data)
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
			out = append(out, fetch.Message{Ref: x.RefTo(box.Name, box.UIDValidity, d.UID)})
		case err != nil:
			return out, err
		default:
			out = append(out, x.Window(box, one)...)
		}
	}
	slices.SortFunc(out, func(a, b fetch.Message) int { return cmp.Compare(a.Ref.UID, b.Ref.UID) })
	return out, nil
}

// MaxEmpty is how many windows in a row may come back empty: a server that keeps naming
// messages and returns no data would keep this busy for ever.
const MaxEmpty = 5

// Walk fetches messages of the folder that is open, window by window, and gives each
// window to fn in the order asked for, until fn returns false. size says how many
// messages the next window has.
func (x *Viewer) Walk(s *imap.Session, from fetch.Source, oldest bool, w fetch.Wanted, size func() int, fn func(got []fetch.Message) (more bool)) error {
	box, _ := s.Selected()
	empty, looked := 0, 0
	for set := from.Next(uint32(size()), oldest); set != nil; set = from.Next(uint32(size()), oldest) {
		s.Renew()
		x.Looking(looked, box.Name)
		got, err := x.FetchAll(s, set, w.Items(), !oldest)
		if err != nil {
			fn(fetch.Unbroken(set, got, oldest))
			return err
		}
		looked += len(got)
		if empty++; len(got) > 0 {
			empty = 0
		} else if empty == MaxEmpty {
			return x.GivesNothing()
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

// FetchFrom makes visits, and gives what was fetched of each folder to take. Of what a
// server refuses it fetches each message alone, where it has to. A folder that was replaced
// has an error with this advice. When the connection breaks or the time ends, take gets what
// came of the folder that was being read, and FetchFrom returns the error.
func (x *Viewer) FetchFrom(s *imap.Session, all fetch.Visits, advice mail.Advice, take func(i int, v *fetch.Visit, got []fetch.Message)) error {
	err := all.Start(s, func(i int, v *fetch.Visit) {
		switch {
		case v.Err == fetch.ErrReplaced:
			v.Err = x.MadeAnew(advice)
		case v.Err == nil && v.Refused == nil:
			take(i, v, x.Window(v.Box, v.Data))
			v.Data = nil
		}
	})
	if err != nil {
		for i, v := range all {
			if v.Err == nil && len(v.Data) > 0 {
				take(i, v, x.Window(v.Box, v.Data))
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
				some, err = x.FetchAll(s, r.UIDs, r.Items, false)
				got = append(got, some...)
			}
		}
		if err == nil {
			take(i, v, got)
		}
	}
	return err
}

// FetchAgain fetches other data of messages, which may be in several folders, and puts it in
// place of what is there. It returns the messages of which it came: one whose header does not
// come stays as it is.
func (x *Viewer) FetchAgain(s *imap.Session, messages []*fetch.Message, w fetch.Wanted) (replaced []*fetch.Message, err error) {
	var all fetch.Visits
	for _, g := range messages {
		all.To(g.Ref.Folder, g.Ref.UIDValidity).Fetch(g.Ref.UID, w.Items())
	}
	err = x.FetchFrom(s, all, mail.AdviceListAgain, func(_ int, v *fetch.Visit, got []fetch.Message) {
		replaced = append(replaced, fetch.Replace(messages, got)...)
	})
	for _, v := range all {
		err = cmp.Or(err, v.Err)
	}
	return replaced, err
}
