package imap

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"sync"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// Fetching is a FETCH or a STORE that was started.
type Fetching struct {
	s    *Session
	g    *gathering
	done chan struct{}
	err  error
}

// Wait returns what came of each requested message that the server answered with a UID,
// by ascending UID. When the server refuses the command after it has answered for some
// messages, or a FETCH ends because the connection broke or the time was over, Wait returns
// those that came whole with the error.
func (f *Fetching) Wait() ([]*Fetched, error) {
	<-f.done
	if f.g == nil {
		return nil, f.err
	}
	got := f.s.gathered(f.g)
	if f.err != nil && !Refused(f.err) && (f.g.stores || Unreadable(f.err)) {
		return nil, f.err
	}
	out := make([]*Fetched, 0, len(got))
	for _, m := range got {
		if m.structure != nil { // it is read here, where a fault ends one command alone
			m.Structure = structureOf(m.structure)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Fetched) int { return cmp.Compare(a.UID, b.UID) })
	return out, f.err
}

// Fetch starts a FETCH, by UID or by sequence number as the set says. Only one for each folder
// that is opened may be in progress.
func (s *Session) Fetch(set NumSet, items Items) *Fetching {
	return s.fetch([]NumSet{set}, []Items{items})
}

// FetchRequest is one of several FETCHes that are in progress at once.
type FetchRequest struct {
	UIDs  UIDSet
	Items Items
}

// FetchEach starts several FETCHes in one write. They may request different items, but not
// the same message. Wait is like Fetch's, for all of them. It counts as one Fetch.
func (s *Session) FetchEach(requests []FetchRequest) *Fetching {
	var sets []NumSet
	var items []Items
	for _, r := range requests {
		sets, items = append(sets, r.UIDs), append(items, r.Items)
	}
	return s.fetch(sets, items)
}

// FetchNewest is Fetch in pieces that leave in one write, the newest messages first: servers
// answer each piece from its oldest on, and what comes before a break is of use only where
// nothing newer is missing. With andNewer a SeqRange goes on to the newest message there is.
func (s *Session) FetchNewest(set NumSet, items Items, andNewer bool) *Fetching {
	pieces := set.newestFirst()
	if r, ok := set.(SeqRange); ok && andNewer && len(pieces) > 0 {
		r = pieces[0].(SeqRange)
		pieces[0] = SeqRange{First: r.First}
	}
	return s.fetch(pieces, slices.Repeat([]Items{items}, len(pieces)))
}

func (s *Session) fetch(sets []NumSet, items []Items) *Fetching {
	g := gathering{sets: sets}
	for _, w := range items {
		g.ask(w)
	}
	gathered := s.gather(g)
	var cmds []*imapclient.FetchCommand
	s.Together(func() {
		for i, set := range sets {
			cmds = append(cmds, s.client.Fetch(set.wire(), items[i].wire()))
		}
	})
	return s.collecting(StageFetch, gathered, cmds...)
}

// collecting takes the messages of commands as they come in. Each command is read
// by a goroutine of its own, because their answers interleave and the library
// waits for each to be taken.
func (s *Session) collecting(stage string, g *gathering, cmds ...*imapclient.FetchCommand) *Fetching {
	f := &Fetching{s: s, g: g, done: make(chan struct{})}
	var wg sync.WaitGroup
	for _, cmd := range cmds {
		wg.Go(func() {
			err := s.take(stage, cmd)
			s.mu.Lock()
			defer s.mu.Unlock()
			if f.err == nil {
				f.err = err
			}
		})
	}
	go func() {
		wg.Wait()
		close(f.done)
	}()
	return f
}

func (s *Session) take(stage string, cmd *imapclient.FetchCommand) error {
	for m := cmd.Next(); m != nil; m = cmd.Next() {
		if err := s.collect(m); err != nil {
			return s.fail(stage, err)
		}
	}
	return s.fail(stage, cmd.Close())
}

// collect reads one message's data for the FETCH of the folder in which it came, or for
// none. The library may have matched it with a command for another folder, where a message
// has the same UID. Where the connection breaks inside a literal, the library believes that it
// has all of it, and two goroutines would read the connection: after an error the message and
// its command may not be touched until the reader has ended, and need not be after that.
func (s *Session) collect(m *imapclient.FetchMessageData) error {
	got := &Fetched{Number: m.SeqNum}
	var g *gathering
	begun, ended := false, false
	for item := m.Next(); item != nil; item = m.Next() {
		switch item := item.(type) {
		case imapclient.FetchItemDataBodySection:
			var b []byte
			if item.Literal != nil {
				var err error
				if b, err = read(item.Literal, g.most(got)); err != nil {
					s.guard.end(io.ErrUnexpectedEOF)
					<-s.client.Closed()
					return err
				}
			}
			if g.wants(got) {
				got.Sections = append(got.Sections, SectionBytes{sectionOf(item.Section), b})
			}
		case imapclient.FetchItemDataFlags:
			got.Flags = []string{} // sent, but empty
			for _, f := range item.Flags {
				got.Flags = append(got.Flags, string(f))
			}
		case imapclient.FetchItemDataUID:
			got.UID = uint32(item.UID)
		case imapclient.FetchItemDataInternalDate:
			got.Date = item.Time
		case imapclient.FetchItemDataRFC822Size:
			got.Size = item.Size
		case imapclient.FetchItemDataBinarySectionSize:
			// our own, the first and the last; see orderItem
			if ended = begun; !begun {
				begun, got.order = true, item.Size
				g = s.askedIn(uint32(item.Part[0]) - 1)
			}
		case imapclient.FetchItemDataBodyStructure:
			got.structure = item.BodyStructure
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g != nil && ended && slices.Contains(s.asked, g) {
		g.add(got)
	}
	s.taken++
	s.cond.Broadcast()
	return nil
}

// askedIn is the FETCH in progress for the folder that was opened as the nth of the
// connection; nil without one.
func (s *Session) askedIn(n uint32) *gathering {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range slices.Backward(s.asked) {
		if g.opened == n {
			return g
		}
	}
	return nil
}

// read returns a literal's first bytes, at most max of them, and reads all of it. It
// does not read on once the literal has ended: from then on the library reads the
// connection itself.
func read(lit goimap.LiteralReader, max int64) ([]byte, error) {
	max = min(max, lit.Size())
	// Announced bytes are not allocated before they come. The result is never nil: a
	// section may be empty.
	kept := bytes.NewBuffer(make([]byte, 0, min(max, 64<<10)+bytes.MinRead))
	n, err := kept.ReadFrom(io.LimitReader(lit, max))
	if err == nil && n == max {
		var rest int64
		rest, err = io.Copy(io.Discard, lit)
		n += rest
	}
	if err == nil && n != lit.Size() {
		err = io.ErrUnexpectedEOF
	}
	return kept.Bytes(), err
}

// takeStray collects FETCH data that the library matched with no command: an unsolicited
// flag change, an answer whose UID comes after a literal, or an answer that such a flag
// change had displaced. The library calls it on a goroutine of its own, and waits for it to
// read each literal.
func (s *Session) takeStray(m *imapclient.FetchMessageData) { _ = s.collect(m) }

// gather begins a FETCH: from here on g takes the data that comes in. The budget shrinks to
// the needs of such an answer.
func (s *Session) gather(g gathering) *gathering {
	g.got = make(map[uint32]*Fetched)
	g.opened = s.opens
	g.count()
	s.mu.Lock()
	s.asked = append(s.asked, &g)
	bytes, open := int64(0), false
	for _, g := range s.asked {
		bytes, open = bytes+g.bytes(), open || g.open
	}
	s.mu.Unlock()
	if !open {
		s.guard.narrow(bytes)
	}
	return &g
}

// gathered ends a FETCH, when every message that came in before its answer has been taken:
// the library does not wait for the last message it hands to takeStray.
func (s *Session) gathered(g *gathering) map[uint32]*Fetched {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := s.guard.mend.fetches.Load(); s.taken < n && !s.dead; {
		s.cond.Wait()
	}
	if s.asked = slices.DeleteFunc(s.asked, func(o *gathering) bool { return o == g }); len(s.asked) == 0 {
		s.guard.widen()
	}
	return g.got
}

// gathering is the requests of a FETCH in progress and their results. A server may send
// more, or the same again: unrequested data is not kept, and each message has only one
// buffer.
type gathering struct {
	sets     []NumSet
	opened   uint32 // the number of folders opened until the one it is for
	messages int    // the most that can come
	sections int    // of one message
	section  int64  // bytes of a section; 0 until requested
	open     bool   // some section was requested whole
	stores   bool   // it is of a STORE

	got map[uint32]*Fetched
}

const (
	// maxOpenSet is how many messages a set with * in it can hold here.
	maxOpenSet = 20_000
	// Bytes of an answer besides its sections: per message, which may come with its
	// structure, and in all, for unsolicited data.
	besidesMessage = 64 << 10
	besidesAll     = 4 << 20
)

// ask adds the items that a FETCH asks for of each message.
func (g *gathering) ask(w Items) {
	g.sections = max(g.sections, len(w.Sections))
	for _, s := range w.Sections {
		g.open, g.section = g.open || s.Size <= 0, max(g.section, s.Size)
	}
}

// count works out how many messages the sets can hold.
func (g *gathering) count() {
	for _, set := range g.sets {
		g.messages = int(min(int64(g.messages)+set.most(), 1<<31-1))
	}
}

// bytes bounds the size of an answer.
func (g *gathering) bytes() int64 {
	return besidesAll + int64(g.messages)*(int64(g.sections)*g.section+besidesMessage)
}

// wants reports whether another section of a message can be used. The message may not be
// known yet.
func (g *gathering) wants(m *Fetched) bool {
	return g != nil && len(m.Sections) < g.sections && (m.UID == 0 || g.holds(m))
}

// most is how many bytes of the next section can be used.
func (g *gathering) most(m *Fetched) int64 {
	switch {
	case !g.wants(m):
		return 0
	case g.open:
		return 1<<63 - 1
	}
	return g.section
}

// holds reports whether a message was requested.
func (g *gathering) holds(m *Fetched) bool {
	return slices.ContainsFunc(g.sets, func(set NumSet) bool { return set.holds(m) })
}

// add takes a message. Data without a UID is an unsolicited flag change. Later data of a
// message completes or replaces the earlier data.
func (g *gathering) add(m *Fetched) {
	if m.UID == 0 || !g.holds(m) {
		return
	}
	old := g.got[m.UID]
	switch {
	case old == nil && len(g.got) >= g.messages:
	case old == nil:
		g.got[m.UID] = m
	case m.order < old.order:
		g.complete(m, old)
		g.got[m.UID] = m
	default:
		g.complete(old, m)
	}
}

// complete adds later data to a message.
func (g *gathering) complete(m, later *Fetched) {
	if later.Flags != nil {
		m.Flags = later.Flags
	}
	if !later.Date.IsZero() {
		m.Date = later.Date
	}
	m.structure = cmp.Or(later.structure, m.structure)
	m.Size, m.order = cmp.Or(later.Size, m.Size), later.order
	for _, b := range later.Sections {
		i := slices.IndexFunc(m.Sections, func(o SectionBytes) bool { return o.Section == b.Section })
		switch {
		case i >= 0:
			m.Sections[i] = b
		case len(m.Sections) < g.sections:
			m.Sections = append(m.Sections, b)
		}
	}
}
