package mailbox

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// looking is parts of one change of which the journal leaves the outcome open.
type looking struct {
	*imapBox
	u     *undoing
	c     *mail.Change
	parts []part
	got   map[part]looked
}

// look sees which of some parts happened: whether the message is in its folder still, and how many
// it may be of the folder that it went to. What cannot be seen has the zero looked.
func (u *undoing) look(ctx context.Context, all []mail.Change, unknown []part, seen map[part]looked) error {
	var each []*looking
	for _, p := range unknown {
		seen[p] = looked{}
		i := slices.IndexFunc(each, func(l *looking) bool { return l.c.ID == p.change })
		if i < 0 {
			at := slices.IndexFunc(all, func(c mail.Change) bool { return c.ID == p.change })
			i, each = len(each), append(each, &looking{u: u, c: &all[at], got: map[part]looked{}})
		}
		each[i].parts = append(each[i].parts, p)
	}
	for _, l := range each {
		x, err := u.box(ctx, l.c.Account)
		if err == nil && x.account.Mailbox() == l.c.Mailbox {
			l.imapBox = x
			err = l.both(ctx)
		}
		var e *mail.Error
		switch {
		case err == nil && l.imapBox != nil:
			for _, p := range l.parts {
				found := l.got[p]
				found.ok = found.there || l.c.Messages[p.n].MessageID != ""
				seen[p] = found
			}
		case errors.As(err, &e) && (e.Kind == mail.KindConnection || e.Kind == mail.KindTimeout):
			return err
		}
	}
	return nil
}

// both looks at the folders of the change.
func (l *looking) both(ctx context.Context) error {
	to := l.c.To
	switch l.c.Kind {
	case mail.ChangeAppend:
		to = l.c.Folder
	case mail.ChangeMove:
		if err := l.in(ctx, l.c.Folder, l.c.UIDValidity, l.stayed); err != nil {
			return err
		}
	}
	return l.in(ctx, to, l.c.ToValidity, l.arrived)
}

func (l *looking) in(ctx context.Context, folder string, validity uint32, fn func(*imap.Session, imap.Folder) error) error {
	return l.lend(ctx, folder, func(s *imap.Session) error {
		if l.u.q.Owner {
			s.Reveal()
		}
		box, err := s.Examine(folder).Wait()
		if err == nil && validity != 0 && box.UIDValidity != validity {
			err = l.MadeAnew("")
		}
		if err != nil {
			return err
		}
		return fn(s, box)
	})
}

// each calls note with what tells the messages apart that the caller may see.
func (l *looking) each(s *imap.Session, box imap.Folder, uids imap.UIDSet, note func(is *mail.ChangeMessage)) error {
	if len(uids) == 0 {
		return nil
	}
	w := identified
	w.Header = !l.Policy.ShowsAll()
	data, err := s.Fetch(uids, w.Items()).Wait()
	if err != nil {
		return err
	}
	for _, g := range l.Window(box, data) {
		if l.Policy.Sees(&g) {
			is := identity(&g)
			note(&is)
		}
	}
	return nil
}

func (l *looking) stayed(s *imap.Session, box imap.Folder) error {
	var uids []uint32
	for _, p := range l.parts {
		uids = append(uids, l.c.Messages[p.n].UID)
	}
	return l.each(s, box, imap.UIDs(uids...), func(is *mail.ChangeMessage) {
		for _, p := range l.parts {
			if m := &l.c.Messages[p.n]; m.UID == is.UID && identical(is, m) {
				l.got[p] = looked{there: true}
			}
		}
	})
}

// maxTogether is how many Message-IDs one SEARCH asks for.
const maxTogether = 50

func (l *looking) arrived(s *imap.Session, box imap.Folder) error {
	for some := range slices.Chunk(l.parts, maxTogether) {
		var ids []imap.Criteria
		for _, p := range some {
			if id := l.c.Messages[p.n].MessageID; id != "" {
				ids = append(ids, imap.HeaderHolds("Message-ID", id))
			}
		}
		if len(ids) == 0 {
			continue
		}
		found, err := s.Search(imap.Criteria{AnyOf: [][]imap.Criteria{ids}}).Wait()
		if err == nil && found.Count() > MaxPiece {
			err = l.Conflict("So many messages have the same Message-ID that none is certain.", mail.AdviceMailProgram)
		}
		if err == nil {
			err = l.each(s, box, found, func(is *mail.ChangeMessage) {
				for _, p := range some {
					m := &l.c.Messages[p.n]
					source := l.c.Kind == mail.ChangeCopy && box.Name == l.c.Folder && is.UID == m.UID
					if m.MessageID != "" && !source && identical(is, m) && arrivedTogether(is, m) {
						g := l.got[p]
						g.fit, g.at = g.fit+1, place{l.c.Account, l.c.Mailbox, box.Name, box.UIDValidity, is.UID}
						l.got[p] = g
					}
				}
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
