package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sort"
	"time"
)

// SeenStore keeps, for each folder of each account, which messages were
// acknowledged. Implementations are safe for concurrent use, by other processes
// too.
type SeenStore interface {
	// Seen returns the state of a folder; the zero SeenState when there is none.
	Seen(ctx context.Context, account, folder string) (SeenState, error)
	// UpdateSeen lends the state of a folder and keeps what change leaves in it,
	// in one transaction. An error of change is returned and keeps nothing.
	// change must be short and may not wait for the network.
	UpdateSeen(ctx context.Context, account, folder string, change func(*SeenState) error) error
}

// SeenState tells new messages of a folder from those that were dealt with (000
// section 6): a message is new when its UID is above the floor and was not
// acknowledged. The zero SeenState is that of a folder that was never looked at.
type SeenState struct {
	Mailbox     string     `json:"mailbox"`     // server and user the state was last used for
	UIDValidity uint32     `json:"uidvalidity"` // 0: never looked at
	Floor       uint32     `json:"floor"`
	Acked       []UIDRange `json:"acked,omitempty"` // above the floor, ascending, apart
	Newest      Newest     `json:"newest,omitzero"`
	Given       []Given    `json:"given,omitempty"`
	Told        time.Time  `json:"told,omitzero"` // when a process that watches last told others of something new

	// Of a mailbox whose messages have names and no UIDs (POP3): digests of the
	// names that were dealt with, sorted.
	Named bool     `json:"named,omitempty"`
	Names []string `json:"names,omitempty"`
}

// CodeAge is how long a one-time code may be given after its message came.
const CodeAge = 10 * time.Minute

// Given is a message whose one-time code was given.
type Given struct {
	UIDValidity uint32    `json:"uidvalidity"`
	UID         uint32    `json:"uid"`
	At          time.Time `json:"at"`
}

// Give notes that the code of a message is given now, and reports whether it was not before.
// What is older than twice CodeAge is forgotten.
func (s *SeenState) Give(uidValidity, uid uint32, now time.Time) bool {
	s.Given = slices.DeleteFunc(s.Given, func(g Given) bool { return now.Sub(g.At) > 2*CodeAge })
	if slices.ContainsFunc(s.Given, func(g Given) bool { return g.UIDValidity == uidValidity && g.UID == uid }) {
		return false
	}
	s.Given = append(s.Given, Given{uidValidity, uid, now})
	return true
}

// Newest is where a folder's newest messages were when they were last listed, so that a
// list may ask for them before it knows how many messages the folder has. It is a guess: no
// answer depends on it. The zero Newest is that of a folder that was not listed.
type Newest struct {
	UIDRange
	Messages int `json:"messages"` // how many of them were listed
}

const (
	newestSpare = 20  // messages fetched besides, in case some of those listed are gone
	newestReach = 100 // UIDs fetched at most on either side
)

// Around is a range of UIDs that probably has a folder's n newest messages, and at most 200
// besides those listed before.
func (w Newest) Around(n int) UIDRange {
	size := (int64(w.Last) - int64(w.First) + 1) * int64(n+newestSpare) / int64(max(w.Messages, 1))
	return UIDRange{
		First: uint32(max(1, int64(w.First)-newestReach, int64(w.Last)+1-size)),
		Last:  uint32(min(1<<32-1, int64(w.Last)+newestReach)),
	}
}

// Leads reports whether Around is still good for a list that now finds its messages
// elsewhere, also when half as many have come as it has room for.
func (w Newest) Leads(now Newest) bool {
	r := w.Around(now.Messages)
	return w.Messages > 0 && r.First <= now.First && now.Last <= w.Last+newestReach/2
}

// UIDRange is a run of UIDs, both ends included.
type UIDRange struct {
	First uint32 `json:"first"`
	Last  uint32 `json:"last"`
}

// Known reports whether the state is about this mailbox as it is now, by the name
// it has now.
func (s *SeenState) Known(mailbox string, uidValidity uint32) bool {
	return s.UIDValidity != 0 && s.UIDValidity == uidValidity && s.Mailbox == mailbox
}

// Begin starts a new state unless this one is about the mailbox as it is now: on first
// contact, and when UIDs mean other messages than before. Messages that are there count as
// dealt with, unless the backlog is to be processed. last is the greatest UID the folder
// has given out.
func (s *SeenState) Begin(mailbox string, uidValidity, last uint32, backlog bool) {
	if s.Known(mailbox, uidValidity) || s.Follow(mailbox, uidValidity, last) {
		return
	}
	if backlog {
		last = 0
	}
	if s.UIDValidity == uidValidity && uidValidity != 0 {
		// It may be the same folder all the same, whose last messages are gone and
		// whose server does not say which UID comes next.
		last = min(last, s.Floor)
	}
	*s = SeenState{Mailbox: mailbox, UIDValidity: uidValidity, Floor: last, Given: s.Given, Told: s.Told}
}

// Follow keeps the state for a mailbox by another name, such as that of its server,
// a port or a user, and reports whether it does: where the folder has the same
// UIDVALIDITY and has given out every UID the state is about. New messages stay new then,
// and if it is another folder by chance, no message that arrives is lost.
func (s *SeenState) Follow(mailbox string, uidValidity, last uint32) bool {
	top := s.Floor
	if n := len(s.Acked); n > 0 {
		top = s.Acked[n-1].Last
	}
	if s.UIDValidity == 0 || s.UIDValidity != uidValidity || last < top {
		return false
	}
	s.Mailbox = mailbox
	return true
}

// IsNew reports whether a message has not been dealt with.
func (s *SeenState) IsNew(uid uint32) bool {
	if uid <= s.Floor {
		return false
	}
	i := sort.Search(len(s.Acked), func(i int) bool { return s.Acked[i].Last >= uid })
	return i == len(s.Acked) || s.Acked[i].First > uid
}

// Ack adds UIDs, in any order and also repeated, and raises the floor over the run right
// above it.
func (s *SeenState) Ack(uids ...uint32) {
	all := slices.Clone(s.Acked)
	for _, u := range uids {
		if u > s.Floor {
			all = append(all, UIDRange{u, u})
		}
	}
	slices.SortFunc(all, func(a, b UIDRange) int { return cmp.Compare(a.First, b.First) })
	s.Acked = nil
	for _, r := range all {
		switch n := len(s.Acked); {
		case n == 0 && r.First-1 <= s.Floor:
			s.Floor = max(s.Floor, r.Last)
		case n > 0 && r.First-1 <= s.Acked[n-1].Last:
			s.Acked[n-1].Last = max(s.Acked[n-1].Last, r.Last)
		default:
			s.Acked = append(s.Acked, r)
		}
	}
}

// Unacked returns the runs of UIDs above the floor that were not acknowledged,
// ascending; the last has no end.
func (s *SeenState) Unacked() []UIDRange {
	const end = 1<<32 - 1
	var runs []UIDRange
	from := uint64(s.Floor) + 1
	for _, r := range s.Acked {
		if uint64(r.First) > from {
			runs = append(runs, UIDRange{uint32(from), r.First - 1})
		}
		from = uint64(r.Last) + 1
	}
	if from <= end {
		runs = append(runs, UIDRange{uint32(from), end})
	}
	return runs
}

// BeginNames is Begin for a mailbox whose messages have names and no UIDs: on first
// contact what is there counts as dealt with, unless the backlog is to be processed.
func (s *SeenState) BeginNames(mailbox string, present []string, backlog bool) {
	if s.KnownNames(mailbox) {
		return
	}
	*s = SeenState{Mailbox: mailbox, Named: true, Given: s.Given, Told: s.Told}
	if !backlog {
		s.AckNames(present...)
	}
}

// FollowNames keeps the state for a mailbox by another name, such as that of its
// server, a port or a user: only messages whose names were dealt with count as such. If it
// is another mailbox, all its other messages are new. Names that are not present are
// forgotten, since another mailbox may yet use them.
func (s *SeenState) FollowNames(mailbox string, present []string) {
	if !s.Named || s.Mailbox == mailbox {
		return
	}
	s.KeepNames(present)
	s.Mailbox = mailbox
}

// KnownNames reports whether the state is about the names of this mailbox, by the
// name it has now.
func (s *SeenState) KnownNames(mailbox string) bool { return s.Named && s.Mailbox == mailbox }

// IsNewName reports whether the message of that name has not been dealt with.
func (s *SeenState) IsNewName(name string) bool {
	_, found := slices.BinarySearch(s.Names, nameDigest(name))
	return !found
}

// AckNames adds names, in any order and also repeated.
func (s *SeenState) AckNames(names ...string) {
	all := slices.Clone(s.Names)
	for _, n := range names {
		all = append(all, nameDigest(n))
	}
	slices.Sort(all)
	s.Names = slices.Compact(all)
}

// KeepNames forgets the names of messages that are no longer there, and reports
// whether there were any. A server may not reuse a name while the mailbox lasts (RFC 1939
// section 7), so no forgotten message becomes new.
func (s *SeenState) KeepNames(present []string) bool {
	here := make(map[string]bool, len(present))
	for _, n := range present {
		here[nameDigest(n)] = true
	}
	before := len(s.Names)
	s.Names = slices.DeleteFunc(slices.Clone(s.Names), func(d string) bool { return !here[d] })
	return len(s.Names) < before
}

// nameDigest stands for a name in 16 characters, however long the name is.
func nameDigest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
