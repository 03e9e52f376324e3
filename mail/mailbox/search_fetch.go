package mailbox

import (
	"cmp"
	"context"
	"maps"
	"slices"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
)

// look fetches the messages that folders want, and notes which of them match.
func (a *accountSearch) look(s *imap.Session, folders []*folderSearch) error {
	structured := a.q.Attachments || a.q.Invitations
	if !a.policy.ShowsAll() {
		// The server gives the structure of visible messages alone: a hidden one's may be
		// unreadable, and must not be noticed.
		err := a.fetchEach(s, folders, wanted{header: true, dates: true}, func(f *folderSearch, got map[uint32]*fetched) {
			f.keep(func(uid uint32) bool {
				g := got[uid]
				return g != nil && a.policy.sees(g) && g.inTime(a.q.Since, a.q.Until)
			})
		})
		if err != nil {
			return err
		}
		for _, f := range folders {
			newest := f.newest()
			f.wants = slices.DeleteFunc(f.wants, func(uid uint32) bool {
				is := goimap.UID(uid)
				return !f.found.Contains(is) || !structured && !f.recent.Contains(is) && !slices.Contains(newest, uid)
			})
		}
		folders = slices.DeleteFunc(folders, func(f *folderSearch) bool { return len(f.wants) == 0 || !f.answered() })
	}
	want, n := a.want, 0
	for _, f := range folders {
		n += len(f.wants)
	}
	want.text = a.q.Snippet > 0 && n <= a.q.Limit
	checked := structured || a.dated()
	var recent []*fetched
	err := a.fetchEach(s, folders, want, func(f *folderSearch, got map[uint32]*fetched) {
		f.keep(func(uid uint32) bool {
			g, new := got[uid], f.recent.Contains(goimap.UID(uid))
			matches := g == nil && !checked && !new || g != nil && f.matches(g)
			if matches {
				f.looked[uid] = g
			}
			if matches && new && g.readable && a.mayMask(g) {
				recent = append(recent, g)
			}
			return matches
		})
	})
	hidden, err := a.unmask(s, recent, want.structure, err)
	for _, f := range folders {
		f.wants = hidden[f.name]
		f.keep(func(uint32) bool { return false })
		set, _ := imap.SplitUIDs(f.left(), uint32(a.q.Limit), false)
		maps.DeleteFunc(f.looked, func(uid uint32, _ *fetched) bool { return !set.Contains(goimap.UID(uid)) })
	}
	return err
}

// unmasks reports whether matches have to be checked for codes and links that are masked:
// the server matches them too, and would tell them digit by digit.
func (a *accountSearch) unmasks() bool { return a.q.ofText() && a.policy.MasksCodes() }

// unmask returns the UIDs, by folder, of messages that match by what is masked in them alone.
// err, if not nil, comes back.
func (a *accountSearch) unmask(s *imap.Session, all []*fetched, structure bool, err error) (map[string][]uint32, error) {
	hidden := map[string][]uint32{}
	if err != nil || len(all) == 0 {
		return hidden, err
	}
	hide := func(g *fetched) { hidden[g.ref.Folder] = append(hidden[g.ref.Folder], g.ref.UID) }
	if !a.q.ofBody() { // subject and names are masked as a list masks them, without a look at the text
		for _, g := range all {
			if s := a.summary(g, true); a.masked(g, "").Any() && !a.q.stands(&s, "") {
				hide(g)
			}
		}
		return hidden, nil
	}
	texts, err := a.readTexts(s, all, structure)
	for _, r := range texts {
		s := a.summary(&r.g, true)
		s.mask(r.masked)
		if r.message == nil || r.masked.Any() && !a.q.stands(&s, r.text.All()) {
			hide(&r.g)
		}
	}
	return hidden, err
}

// keep judges the messages that were fetched, and drops the others from those found.
func (f *folderSearch) keep(matches func(uid uint32) bool) {
	var others goimap.UIDSet
	for _, uid := range f.wants {
		if !matches(uid) {
			others.AddNum(goimap.UID(uid))
		}
	}
	f.found = imap.UIDsWithout(f.found, others)
}

// matches applies the criteria that no server knows. A message whose header cannot be read
// is shown as one that failed, where no more is asked of it.
func (f *folderSearch) matches(g *fetched) bool {
	if !g.readable {
		return f.policy.ShowsAll() && !f.q.Attachments && !f.q.Invitations
	}
	return f.policy.sees(g) && g.inTime(f.q.Since, f.q.Until) && (!f.q.Attachments || g.hasAttachments()) && (!f.q.Invitations || message.HasCalendar(g.root))
}

// fetchEach fetches from several folders in one write. A folder that fails, or is another
// one by now, takes no part any more.
func (a *accountSearch) fetchEach(s *imap.Session, folders []*folderSearch, want wanted, take func(f *folderSearch, got map[uint32]*fetched)) error {
	var all visits
	for _, f := range folders {
		all.to(f.name, f.valid).requests = f.requests(want)
	}
	a.empty++
	err := a.fetchFrom(s, all, mail.AdviceSearchAnew, func(i int, _ *visit, got []fetched) {
		byUID := make(map[uint32]*fetched, len(got))
		for i := range got {
			byUID[got[i].ref.UID], a.empty = &got[i], 0
		}
		take(folders[i], byUID)
	})
	for i, v := range all {
		folders[i].err = cmp.Or(folders[i].err, v.err)
	}
	if err == nil && a.empty == maxEmpty {
		err = a.givesNothing()
	}
	return err
}

// requests ask for the messages that the folder wants, with the text of those in which a code
// may be masked.
func (f *folderSearch) requests(want wanted) (all []imap.FetchRequest) {
	var with, without []uint32
	for _, uid := range f.wants {
		if f.recent.Contains(goimap.UID(uid)) && want.structure && f.q.ofBody() {
			with = append(with, uid)
		} else {
			without = append(without, uid)
		}
	}
	for i, uids := range [][]uint32{without, with} {
		if want.text = want.text || i == 1; len(uids) > 0 {
			all = append(all, imap.FetchRequest{UIDs: imap.UIDs(uids...), Options: want.options()})
		}
	}
	return all
}

// snippets adds the opening of the text of each message on the page that is of this
// account, from what was fetched or from its folder.
func (a *accountSearch) snippets(ctx context.Context, shown []candidate, out map[mail.Ref]*Message) error {
	var all, missing []*fetched
	for _, c := range shown {
		if c.folder.accountSearch != a || c.fetched == nil || !c.readable {
			continue
		}
		all = append(all, c.fetched)
		if _, has := section(c.data, goimap.PartSpecifierText, nil, false); !has {
			missing = append(missing, c.fetched)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return a.lend(ctx, all[0].ref.Folder, func(s *imap.Session) error {
		want := a.want
		want.text = true
		if len(missing) > 0 {
			if err := a.fetchAgain(s, missing, want); err != nil {
				return err
			}
		}
		texts, err := a.excerpts(s, excerpt{chars: a.q.Snippet, words: cmp.Or(a.q.Words, a.q.Text)}, all, want.structure)
		maps.Copy(out, texts)
		return err
	})
}
