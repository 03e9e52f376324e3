package mailbox

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// look fetches the messages that folders want, and notes which of them match.
func (a *accountSearch) look(s *imap.Session, folders []*folderSearch) error {
	structured := a.q.Attachments || a.q.Invitations
	if !a.Policy.ShowsAll() {
		// The server gives the structure of visible messages alone: a hidden one's may be
		// unreadable, and must not be noticed.
		err := a.fetchEach(s, folders, fetch.Wanted{Header: true, Dates: true}, func(f *folderSearch, got map[uint32]*fetch.Message) {
			f.keep(func(uid uint32) bool {
				g := got[uid]
				return g != nil && a.Policy.Sees(g) && g.InTime(a.q.Since, a.q.Until)
			})
		})
		if err != nil {
			return err
		}
		for _, f := range folders {
			newest := f.newest()
			f.wants = slices.DeleteFunc(f.wants, func(uid uint32) bool {
				return !f.found.Contains(uid) || !structured && !f.recent.Contains(uid) && !slices.Contains(newest, uid)
			})
		}
		folders = slices.DeleteFunc(folders, func(f *folderSearch) bool { return len(f.wants) == 0 || !f.answered() })
	}
	want, n := a.want, 0
	for _, f := range folders {
		n += len(f.wants)
	}
	want.Text = a.q.Snippet > 0 && n <= a.q.Limit
	checked := structured || a.q.Dated()
	var recent []*fetch.Message
	err := a.fetchEach(s, folders, want, func(f *folderSearch, got map[uint32]*fetch.Message) {
		var judged []uint32
		f.keep(func(uid uint32) bool {
			g, new := got[uid], f.recent.Contains(uid)
			matches := g == nil && !checked && !new || g != nil && f.matches(g)
			if matches {
				f.looked[uid] = g
			}
			judged = append(judged, uid)
			if matches && new && g.Readable && (a.loose || a.MayMask(g)) {
				recent = append(recent, g)
			}
			return matches
		})
		f.judged = f.judged.With(imap.UIDs(judged...))
	})
	hidden, unread, maskErr := a.unmask(s, recent, want.Structure)
	err = cmp.Or(err, maskErr)
	for _, f := range folders {
		if f.wants = hidden[f.name]; err == nil {
			f.wants = append(f.wants, unread[f.name]...)
		} else if len(unread[f.name]) > 0 {
			f.judged = f.judged.Without(imap.UIDs(unread[f.name]...))
		}
		f.keep(func(uint32) bool { return false })
		set := f.left().Newest(a.q.Limit)
		maps.DeleteFunc(f.looked, func(uid uint32, _ *fetch.Message) bool { return !set.Contains(uid) })
	}
	return err
}

// unmasks reports whether matches have to be checked for codes and links that are masked:
// the server matches them too, and would tell them digit by digit.
func (a *accountSearch) unmasks() bool { return a.q.OfText() && a.Policy.MasksCodes() }

// unmask returns the UIDs, by folder, of messages that match by what is masked in them alone,
// or by less than the query has, and of those of which that could not be read.
func (a *accountSearch) unmask(s *imap.Session, all []*fetch.Message, structure bool) (hidden, unread map[string][]uint32, err error) {
	hidden, unread = map[string][]uint32{}, map[string][]uint32{}
	if len(all) == 0 {
		return hidden, unread, nil
	}
	if !a.q.OfBody() && !a.loose { // the text decides where a list, which does not know it, would hide what matches
		all = slices.DeleteFunc(all, func(g *fetch.Message) bool {
			s := a.Summary(g, true)
			return !a.Suspected(g).Any() || a.q.Stands(&s, "")
		})
	}
	texts, err := a.ReadTexts(s, all, structure)
	for _, r := range texts {
		s := a.Summary(&r.Got, true)
		s.Mask(r.Masked)
		switch {
		case r.Message == nil:
			unread[r.Ref.Folder] = append(unread[r.Ref.Folder], r.Ref.UID)
		case (a.loose || r.Masked.Any()) && !a.q.Stands(&s, r.Text.All()):
			hidden[r.Ref.Folder] = append(hidden[r.Ref.Folder], r.Ref.UID)
		}
	}
	return hidden, unread, err
}

// keep judges the messages that were fetched, and drops the others from those found.
func (f *folderSearch) keep(matches func(uid uint32) bool) {
	others := slices.DeleteFunc(slices.Clone(f.wants), matches)
	f.found = f.found.Without(imap.UIDs(others...))
}

// matches applies the criteria that no server knows. A message whose header cannot be read
// is shown as one that failed, where no more is asked of it.
func (f *folderSearch) matches(g *fetch.Message) bool {
	if !g.Readable {
		return f.Policy.ShowsAll() && !f.q.Attachments && !f.q.Invitations
	}
	return f.Policy.Sees(g) && g.InTime(f.q.Since, f.q.Until) && (!f.q.Attachments || g.HasAttachments()) && (!f.q.Invitations || message.HasCalendar(g.Root))
}

// fetchEach fetches from several folders in one write. A folder that fails, or is another
// one by now, takes no part any more. Of one in which the connection breaks, or the time
// ends, take gets what came, and the others are no longer among those it wants.
func (a *accountSearch) fetchEach(s *imap.Session, folders []*folderSearch, want fetch.Wanted, take func(f *folderSearch, got map[uint32]*fetch.Message)) error {
	var all fetch.Visits
	for _, f := range folders {
		all.To(f.name, f.valid).Requests = f.requests(want)
	}
	a.empty++
	err := a.FetchFrom(s, all, mail.AdviceSearchAnew, func(i int, v *fetch.Visit, got []fetch.Message) {
		byUID := make(map[uint32]*fetch.Message, len(got))
		for i := range got {
			byUID[got[i].Ref.UID], a.empty = &got[i], 0
		}
		if v.Refused != nil && !imap.Refused(v.Refused) { // the others may yet come
			folders[i].wants = slices.DeleteFunc(folders[i].wants, func(uid uint32) bool { return byUID[uid] == nil })
		}
		take(folders[i], byUID)
	})
	for i, v := range all {
		folders[i].err = cmp.Or(folders[i].err, v.Err)
	}
	if err == nil && a.empty == reading.MaxEmpty {
		err = a.GivesNothing()
	}
	return err
}

// requests ask for the messages that the folder wants, with the text of those in which a code
// may be masked.
func (f *folderSearch) requests(want fetch.Wanted) (all []imap.FetchRequest) {
	var with, without []uint32
	for _, uid := range f.wants {
		if f.recent.Contains(uid) && want.Structure && f.q.OfBody() {
			with = append(with, uid)
		} else {
			without = append(without, uid)
		}
	}
	for i, uids := range [][]uint32{without, with} {
		want.Text = want.Text || i == 1
		for _, piece := range imap.UIDs(uids...).NewestFirst() {
			all = append(all, imap.FetchRequest{UIDs: piece, Items: want.Items()})
		}
	}
	return all
}

// snippets reads the openings of the texts of messages, from what was fetched or from their
// folders.
func (a *accountSearch) snippets(ctx context.Context, all []*fetch.Message) (texts map[mail.Ref]*Message, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	missing := slices.DeleteFunc(slices.Clone(all), func(g *fetch.Message) bool { return g.Text != nil })
	err = a.lend(ctx, all[0].Ref.Folder, func(s *imap.Session) (err error) {
		want := a.want
		want.Text = true
		if len(missing) > 0 {
			if _, err := a.FetchAgain(s, missing, want); err != nil {
				return err
			}
		}
		texts, err = a.Excerpts(s, reading.Excerpt{Chars: a.q.Snippet, Words: cmp.Or(a.q.Words, a.q.Text)}, all, want.Structure)
		return err
	})
	return texts, err
}
