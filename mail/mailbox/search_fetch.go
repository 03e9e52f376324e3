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

// folderFetch is what is fetched from one folder.
type folderFetch struct {
	*folderSearch
	uids []uint32
}

// look fetches messages, and notes which of them match.
func (a *accountSearch) look(s *imap.Session, visits []folderFetch) error {
	structured := a.q.Attachments || a.q.Invitations
	if !a.policy.ShowsAll() {
		// The server gives the structure of visible messages alone: a hidden one's may be
		// unreadable, and must not be noticed.
		err := a.fetchEach(s, visits, wanted{header: true, dates: true}, func(v folderFetch, got map[uint32]*fetched) {
			v.keep(func(uid uint32) bool {
				g := got[uid]
				return g != nil && g.visible(a.policy) && g.inTime(a.q.Since, a.q.Until)
			})
		})
		if err != nil {
			return err
		}
		for i, v := range visits {
			if visits[i].uids = v.newest(); structured {
				visits[i].uids = slices.DeleteFunc(v.uids, func(uid uint32) bool { return !v.found.Contains(goimap.UID(uid)) })
			}
		}
		visits = slices.DeleteFunc(visits, func(v folderFetch) bool { return len(v.uids) == 0 || !v.answered() })
	}
	want, n := a.want, 0
	for _, v := range visits {
		n += len(v.uids)
	}
	want.text = a.q.Snippet > 0 && n <= a.q.Limit
	checked := structured || a.dated()
	return a.fetchEach(s, visits, want, func(v folderFetch, got map[uint32]*fetched) {
		v.keep(func(uid uint32) bool {
			g := got[uid]
			matches := g == nil && !checked || g != nil && v.matches(g)
			if matches {
				v.looked[uid] = g
			}
			return matches
		})
		set, _ := imap.SplitUIDs(v.left(), uint32(a.q.Limit), false)
		maps.DeleteFunc(v.looked, func(uid uint32, _ *fetched) bool { return !set.Contains(goimap.UID(uid)) })
	})
}

// keep judges the messages that were fetched, the newest first, and drops the others from
// those found.
func (v folderFetch) keep(matches func(uid uint32) bool) {
	var others goimap.UIDSet
	slices.Sort(v.uids)
	for _, uid := range slices.Backward(v.uids) {
		if !matches(uid) {
			others.AddNum(goimap.UID(uid))
		}
	}
	v.found = imap.UIDsWithout(v.found, others)
}

// matches applies the criteria that no server knows. A message whose header cannot be read
// is shown as one that failed, where no more is asked of it.
func (f *folderSearch) matches(g *fetched) bool {
	if !g.readable {
		return f.policy.ShowsAll() && !f.q.Attachments && !f.q.Invitations
	}
	return g.visible(f.policy) && g.inTime(f.q.Since, f.q.Until) && (!f.q.Attachments || g.hasAttachments()) && (!f.q.Invitations || message.HasCalendar(g.root))
}

// fetchEach fetches from several folders in one write. A folder that fails, or is another
// one by now, takes no part any more.
func (a *accountSearch) fetchEach(s *imap.Session, visits []folderFetch, want wanted, take func(v folderFetch, got map[uint32]*fetched)) error {
	examines, fetches := make([]*imap.Examining, len(visits)), make([]*imap.Fetching, len(visits))
	box, _ := s.Selected()
	s.Renew()
	s.Together(func() {
		for i, v := range visits {
			if len(visits) > 1 || box.Name != v.name || box.UIDValidity != v.valid {
				examines[i] = s.Examine(v.name)
			}
			fetches[i] = startWindow(s, imap.UIDs(v.uids...), want)
		}
	})
	var broken error
	var again []folderFetch
	nothing := true
	taken := func(v folderFetch, got []fetched) {
		byUID := make(map[uint32]*fetched, len(got))
		for i := range got {
			byUID[got[i].ref.UID] = &got[i]
		}
		nothing = nothing && len(got) == 0
		take(v, byUID)
	}
	for i, v := range visits {
		var err error
		opened := box
		if examines[i] != nil {
			opened, err = examines[i].Wait()
		}
		data, fetchErr := fetches[i].Wait()
		switch {
		case refusedByServer(err):
			v.err = err
		case err != nil:
			broken = cmp.Or(broken, err)
		case opened.UIDValidity != v.valid:
			v.err = a.madeAnew(mail.AdviceSearchAnew)
		case refusedByServer(fetchErr):
			again = append(again, v)
		case fetchErr != nil:
			broken = cmp.Or(broken, fetchErr)
		default:
			taken(v, a.readWindow(opened, data))
		}
	}
	for _, v := range again {
		if broken == nil {
			_, broken = s.Examine(v.name).Wait()
		}
		if broken == nil {
			var got []fetched
			if got, broken = a.fetchAll(s, imap.UIDs(v.uids...), want); broken == nil {
				taken(v, got)
			}
		}
	}
	if a.empty++; !nothing {
		a.empty = 0
	}
	if broken == nil && a.empty == maxEmpty {
		broken = a.givesNothing()
	}
	return broken
}

// snippets adds the opening of the text of each message on the page that is of this
// account, from what was fetched or from its folder.
func (a *accountSearch) snippets(ctx context.Context, shown []candidate, out map[mail.Ref]string) error {
	var visits []folderFetch
	for _, f := range a.folders {
		v := folderFetch{folderSearch: f}
		for _, c := range shown {
			if c.folder == f && c.fetched != nil && c.readable {
				v.uids = append(v.uids, c.uid)
			}
		}
		if len(v.uids) > 0 {
			visits = append(visits, v)
		}
	}
	if len(visits) == 0 {
		return nil
	}
	return a.lend(ctx, visits[0].name, func(s *imap.Session) error {
		want := a.want
		want.text = true
		missing := slices.DeleteFunc(slices.Clone(visits), func(v folderFetch) bool {
			_, has := section(v.looked[v.uids[0]].data, goimap.PartSpecifierText, nil, false)
			return has
		})
		if len(missing) > 0 {
			if err := a.fetchEach(s, missing, want, func(v folderFetch, got map[uint32]*fetched) {
				for uid, g := range got {
					v.looked[uid] = g
				}
			}); err != nil {
				return err
			}
		}
		for _, v := range visits {
			if err := v.excerpt(s, out); err != nil {
				return err
			}
		}
		return nil
	})
}

// excerpt reads the openings out of messages that were fetched, and opens the folder only
// where something is missing.
func (v folderFetch) excerpt(s *imap.Session, out map[mail.Ref]string) error {
	var got []*fetched
	for _, uid := range v.uids {
		if g := v.looked[uid]; g != nil {
			got = append(got, g)
		}
	}
	e := excerpt{chars: v.q.Snippet, words: cmp.Or(v.q.Words, v.q.Text)}
	if box, _ := s.Selected(); box.Name != v.name && slices.ContainsFunc(got, func(g *fetched) bool {
		r := e.reading(v.access, g, v.want.structure)
		r.start(*g)
		return len(r.missing()) > 0
	}) {
		if _, err := s.Examine(v.name).Wait(); err != nil {
			return err
		}
	}
	texts, err := v.excerpts(s, e, got, v.want.structure)
	for ref, m := range texts {
		out[ref] = m.Snippet
	}
	return err
}
