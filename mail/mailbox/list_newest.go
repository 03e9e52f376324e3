package mailbox

import (
	"slices"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// fromTheNewest reports whether the list is of the newest messages, whatever they are.
func (l *listing) fromTheNewest() bool {
	return !l.q.OldestFirst && !l.q.Unread && !l.q.New && l.q.Before.UID == 0 && l.q.After.UID == 0 && !dated(&l.q)
}

// guessNewest lists the newest messages of a folder that is not open yet in one round trip:
// the fetch leaves together with the EXAMINE, for the UIDs that they probably have. A UID
// without a message is no error (RFC 9051 section 6.4.9), so that no server refuses the
// range. What the fetch gives counts only if the last message of the folder is among it,
// by its sequence number, so that no newer one lies beyond the range; older messages that
// the page has room for are fetched afterwards.
func (l *listing) guessNewest(s *imap.Session) error {
	n := l.windows(0)()
	valid, newest := l.seen.state.UIDValidity, l.seen.state.Newest
	uids := newest.Around(n)
	var known goimap.UIDSet // the pieces begin where there are messages
	known.AddRange(goimap.UID(uids.First), goimap.UID(newest.Last))
	pieces := imap.NewestFirst(known)
	if uids.Last > newest.Last {
		var newer goimap.UIDSet
		newer.AddRange(goimap.UID(newest.Last+1), goimap.UID(uids.Last))
		pieces = append([]goimap.UIDSet{newer}, pieces...)
	}
	var requests []imap.FetchRequest
	for _, piece := range pieces {
		requests = append(requests, imap.FetchRequest{UIDs: piece, Options: l.want.Options()})
	}
	box, data, err, fetchErr := fetch.Now(s, l.q.Folder, func() *imap.Fetching { return s.FetchEach(requests) })
	if err != nil {
		return err
	}
	if err := l.begin(s, box); err != nil {
		return err
	}
	l.listed = int(box.Exists)
	older, covers := box.Exists, false
	for _, d := range data {
		older, covers = min(older, d.SeqNum-1), covers || d.SeqNum >= box.Exists
	}
	switch {
	case fetchErr != nil && !imap.Refused(fetchErr):
		if box.UIDValidity == valid && covers {
			l.take(unbroken(goimap.SeqSet{{Start: older + 1, Stop: box.Exists}}, l.readWindow(box, data), false))
		}
		return fetchErr
	case fetchErr != nil || box.UIDValidity != valid || !covers:
		older = box.Exists
	default:
		got := l.readWindow(box, data)
		slices.Reverse(got)
		if !l.take(got) {
			return nil
		}
	}
	if l.searchable(uint64(box.Exists)) {
		return l.bySearch(s)
	}
	return l.numbered(s, 1, older, n)
}

// noteNewest notes where the messages of the page are, unless what is known of them will do,
// and begins the state of a folder whose server does not say which UID comes next.
func (l *listing) noteNewest() error {
	if !l.fromTheNewest() || l.seen.store == nil {
		return nil
	}
	last := max(l.next, l.reached+1) - 1
	if l.later && !l.broken && (last > 0 || l.listed == 0) {
		box := imap.Folder{UIDValidity: l.page.UIDValidity, UIDNext: last + 1}
		if err := l.seen.begin(l.imapBox, nil, box); err != nil {
			return err
		}
	}
	if l.broken || len(l.shown) == 0 {
		return nil
	}
	now := mail.Newest{UIDRange: mail.UIDRange{First: l.shown[len(l.shown)-1].Ref.UID, Last: last}, Messages: len(l.shown)}
	if !l.seen.state.Newest.Leads(now) {
		l.seen.newest = now
	}
	return nil
}
