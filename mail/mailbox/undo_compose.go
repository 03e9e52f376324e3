package mailbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// place is where a message is. One whose UID is 0 is not known but for its folder.
type place struct {
	account, mailbox, folder string
	validity, uid            uint32
}

func (p place) sameFolder(o place) bool {
	return p.account == o.account && p.mailbox == o.mailbox && p.folder == o.folder
}

// part is a message of a change.
type part struct {
	change string
	n      int
}

// looked is what was seen of a part whose outcome the journal leaves open. The zero looked is that
// nobody could look.
type looked struct {
	ok    bool
	there bool  // of a move: it is in the folder it was in before
	fit   int   // how many messages of the other folder, or the only one, it may be
	at    place // of the one that fits
}

// track is a message through all the changes that are taken back together.
type track struct {
	now, then place              // where the newest change left it, and where it was before the oldest
	made      bool               // the oldest made it: there is no then
	is        mail.ChangeMessage // what tells it from others; its flags before the oldest change
	flags     []flagBefore       // that the changes set or removed
	theirs    []string           // flags that others changed between two of the changes: what came before no longer counts
	moves     []part             // the changes of its place that are taken back
	flagged   []part             // those of its flags
	oldest    *mail.Change
	newest    *mail.Change
	why       LeftWhy // it is left; empty where it is not
	chosen    bool    // one of the changes was to be taken back
	back      bool    // one of these was taken back, by a change that was not chosen
	open      []part  // those of which the journal does not say that they were taken back

	current  []string  // its flags, as they are in the end
	restored *Restored // nil where nothing was taken back
	said     string    // see LeftAsItIs
}

// flagBefore is a flag that a message had before the changes, or not, and that they left it with,
// or without.
type flagBefore struct {
	name      string
	had, left bool
	unsure    bool // whether they left it so
}

// moved reports whether the message has to leave the folder that it is in.
func (t *track) moved() bool { return t.made || !t.now.sameFolder(t.then) }

// identical reports whether what is told of two messages can only be told of the same: its
// Message-ID, and its size. Without a Message-ID they also came at the same time.
func identical(a, b *mail.ChangeMessage) bool {
	return a.MessageID == b.MessageID && a.Size == b.Size && (a.MessageID != "" || arrivedTogether(a, b))
}

// arrivedTogether reports whether two messages came at the same time, as far as it is known.
func arrivedTogether(a, b *mail.ChangeMessage) bool {
	return a.Arrived.IsZero() || b.Arrived.IsZero() || a.Arrived.Truncate(time.Second).Equal(b.Arrived.Truncate(time.Second))
}

// composing is the state of compose.
type composing struct {
	seen    map[part]looked
	all     []*track
	at      map[place]*track   // by then
	held    map[place][]*track // by then without the UID
	unknown []part
}

// compose follows messages backwards through changes, of which the newest comes first, to what
// they come to together. It gives those tracks that have a chosen change in them: the others are
// undos, which may have taken some of that back. unknown are parts of which the journal does not
// tell the outcome, and seen does not either: of such tracks why is LeftNotCertain.
func compose(changes []mail.Change, chosen func(*mail.Change) bool, seen map[part]looked) (tracks []*track, unknown []part) {
	c := &composing{seen: seen, at: map[place]*track{}, held: map[place][]*track{}}
	known, picked := map[string]bool{}, map[string]bool{}
	for i := range changes {
		for _, id := range []string{changes[i].ID, changes[i].Of} {
			known[id], picked[id] = true, picked[id] || chosen(&changes[i])
		}
	}
	for i := range changes {
		h := &changes[i]
		for n := range h.Messages {
			m := &h.Messages[n]
			before := place{h.Account, h.Mailbox, h.Folder, h.UIDValidity, m.UID}
			var touched []*track
			switch {
			case h.Sent || m.Back != "" && !known[m.Back]:
				if !chosen(h) || h.Sent && !m.Done && !h.Ended.IsZero() {
					continue
				}
				t := &track{now: before, is: *m, oldest: h, newest: h, why: LeftTakenBack, chosen: true}
				if h.Sent {
					t.why = LeftSent
				}
				c.all = append(c.all, t)
				continue
			case h.Kind == mail.ChangeFlags:
				if m.Done || h.Ended.IsZero() { // else it is not known that nothing happened; flags are looked at
					t := c.begin(before, h, m)
					t.others(h, m)
					t.flag(h, m)
					t.flagged = append(t.flagged, part{h.ID, n})
					touched = append(touched, t)
				}
			default:
				if touched = c.place(h, n, before); len(touched) > 0 {
					touched[0].others(h, m)
				}
			}
			for _, t := range touched {
				t.oldest, t.is.Flags = h, m.Flags
				if root := cmp.Or(h.Of, h.ID); m.Back == "" && root != cmp.Or(t.newest.Of, t.newest.ID) {
					t.open = append(t.open, part{h.ID, n})
				}
				if chosen(h) {
					t.chosen, t.back = true, t.back || m.Back != "" && !picked[m.Back]
				}
			}
		}
	}
	for _, t := range c.all {
		t.flags = slices.DeleteFunc(t.flags, func(f flagBefore) bool { return f.had == f.left && !f.unsure })
		if t.chosen {
			tracks = append(tracks, t)
		}
	}
	return tracks, c.unknown
}

// begin gives the track that goes on at a place, or begins one there.
func (c *composing) begin(at place, h *mail.Change, m *mail.ChangeMessage) *track {
	if t := c.at[at]; t != nil && at.uid != 0 {
		return t
	}
	t := &track{now: at, then: at, is: *m, newest: h}
	t.is.Flags = nil
	c.all = append(c.all, t)
	c.put(t)
	return t
}

func (c *composing) put(t *track) {
	if t.then.uid != 0 {
		c.at[t.then] = t
	}
	folder := t.then
	folder.uid, folder.validity = 0, 0
	c.held[folder] = append(c.held[folder], t)
}

// reach says that a track was elsewhere before, or nowhere.
func (c *composing) reach(t *track, then place, made bool) {
	delete(c.at, t.then)
	folder := t.then
	folder.uid, folder.validity = 0, 0
	c.held[folder] = slices.DeleteFunc(c.held[folder], func(o *track) bool { return o == t })
	if t.then, t.made = then, made; !made {
		c.put(t)
	}
}

// place takes back a change of place, and gives the tracks that it touched.
func (c *composing) place(h *mail.Change, n int, before place) []*track {
	m, p := &h.Messages[n], part{h.ID, n}
	after, moves := place{h.Account, h.Mailbox, h.To, h.ToValidity, m.New}, h.Kind == mail.ChangeMove
	if h.Kind == mail.ChangeAppend {
		after = before
	}
	var next *track // what later changes did to it
	if after.uid != 0 {
		next = c.at[after]
	} else {
		next = c.only(after, m)
	}
	arrived, stayed, doubtful := after.uid != 0 || next != nil, false, false
	switch {
	case m.Done && arrived:
	case !m.Done && !h.Ended.IsZero() && after.uid == 0:
		return nil // it was not made
	default:
		seen, asked := c.seen[p]
		if moves && !m.Done && c.at[before] != nil { // a later change found it there
			seen, asked = looked{ok: true, there: true}, true
		}
		if !asked {
			c.unknown = append(c.unknown, p)
		}
		stayed = moves && !m.Done && seen.there
		switch {
		case !seen.ok:
			doubtful = true
		case arrived:
		case seen.fit == 0 && !m.Done && (stayed || !moves):
			return nil // it was not made
		case seen.fit != 1 || stayed || h.Kind == mail.ChangeCopy: // it may be another copy, and somebody else's
			doubtful = true
		default:
			after = seen.at
		}
	}
	t := next
	if t == nil {
		t = c.begin(after, h, m)
	}
	if doubtful {
		t.why = LeftNotCertain
	}
	t.moves = append(t.moves, p)
	c.reach(t, before, stayed && arrived || !moves)
	touched := []*track{t}
	if stayed && arrived { // what it was to be expunged by goes too
		left := c.begin(before, h, m)
		left.flag(&mail.Change{Add: []string{fetch.FlagDeleted}}, m)
		touched = append(touched, left)
	}
	return touched
}

// only gives the one track whose message was in a folder and can be no other than m.
func (c *composing) only(at place, m *mail.ChangeMessage) (found *track) {
	at.uid, at.validity = 0, 0
	if m.MessageID == "" {
		return nil
	}
	for _, t := range c.held[at] {
		if identical(&t.is, m) && arrivedTogether(&t.is, m) {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

// others notes the flags that others changed between a change and the one that came next.
func (t *track) others(h *mail.Change, m *mail.ChangeMessage) {
	if t.oldest == nil {
		return
	}
	after := slices.Clone(m.Flags)
	if h.Kind == mail.ChangeFlags {
		after = slices.DeleteFunc(append(after, h.Add...), func(f string) bool { return fetch.HasFlag(h.Remove, f) })
	}
	for _, f := range differing(after, t.is.Flags) {
		if unsure := h.Ended.IsZero() && !m.Done; !unsure || !fetch.HasFlag(h.Add, f) && !fetch.HasFlag(h.Remove, f) {
			t.theirs = append(t.theirs, f)
		}
	}
}

// flag notes the flags that a change set or removed, unless others changed them since.
func (t *track) flag(h *mail.Change, m *mail.ChangeMessage) {
	for i, name := range slices.Concat(h.Add, h.Remove) {
		has := i < len(h.Add) && !fetch.HasFlag(h.Remove, name)
		had := fetch.HasFlag(m.Flags, name)
		if had == has || fetch.HasFlag(t.theirs, name) {
			continue
		}
		at := slices.IndexFunc(t.flags, func(f flagBefore) bool { return strings.EqualFold(f.name, name) })
		if at < 0 {
			at = len(t.flags)
			t.flags = append(t.flags, flagBefore{name: name, left: has, unsure: h.Ended.IsZero() && !m.Done})
		}
		t.flags[at].had = had
	}
}
