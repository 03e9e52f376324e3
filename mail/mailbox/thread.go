package mailbox

import (
	"context"
	"slices"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
)

// The bounds of Thread.
const (
	defaultThread = 50
	maxThread     = 200

	maxCandidates   = 1000 // messages looked at for one conversation
	maxThreadIDs    = 30   // message ids searched for at once
	maxThreadRounds = 3    // searches, each for what the one before brought up
)

// threadFields are what conversations are told by.
var threadFields = []string{"MESSAGE-ID", "REFERENCES", "IN-REPLY-TO"}

// Thread returns the conversation of a message within its folder, oldest first:
// what is linked by References, then In-Reply-To, then a base subject where one of
// the two is a reply (004 section 5). Of a long one the newest messages are kept.
// Candidates come from the server's search, or from its THREAD (RFC 5256) where
// the policy hides nothing: a server would also link two visible messages through
// one that is hidden, and so tell of it.
func (m *Client) Thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	b, err := m.open(ctx, "mail thread", ref.Account)
	if err != nil {
		return nil, err
	}
	q.Limit = within(q.Limit, defaultThread, 1, maxThread)
	return b.thread(ctx, ref, q)
}

func (x *imapBox) thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	ref, err := x.named(ref)
	if err != nil {
		return nil, err
	}
	t := &threading{access: x.access, box: x, ref: ref, q: q,
		want: wanted{header: !x.policy.ShowsAll(), structure: x.policy.ShowsAll(), dates: true, full: q.Full, thread: true}}
	err = t.run(ctx)
	if ctx.Err() == nil && unreadable(err) {
		t.want.structure, t.unstructured = false, true // see List
		if err = t.run(ctx); err == nil {
			t.structureLater(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return t.out, nil
}

// threading is one Thread in progress.
type threading struct {
	*access
	box  *imapBox // nil for POP3, whose candidates are the headers of the mailbox
	ref  mail.Ref
	q    ThreadQuery
	want wanted

	unstructured bool // a BODYSTRUCTURE cannot be read

	known map[uint32]*fetched // candidates that the policy shows
	cut   bool                // there were more candidates than are looked at
	out   *Thread
}

func (t *threading) run(ctx context.Context) error {
	return t.box.lend(ctx, t.ref.Folder, func(s *imap.Session) error {
		t.known, t.cut, t.out = map[uint32]*fetched{}, false, nil
		b := &batch{imapBox: t.box, refs: []mail.Ref{t.ref}, uids: []uint32{t.ref.UID}, folder: t.ref.Folder}
		l, err := b.locate(s, false, t.want)
		if err != nil {
			return err
		}
		first := l.found[t.ref.UID]
		if first == nil || !first.readable {
			return t.noMessage(l.reason())
		}
		t.known[first.uid] = first
		group, parents := []*fetched{first}, map[uint32]uint32{}
		asked := map[string]bool{}
		for range maxThreadRounds {
			t.looking(0, 0, t.ref.Folder)
			ids, subjects := t.linked(group, asked)
			if len(ids)+len(subjects) == 0 {
				break
			}
			if err := t.look(s, ids, subjects); err != nil {
				return err
			}
			group, parents = t.conversation()
		}
		if err := t.structure(s, group); err != nil {
			return err
		}
		t.finish(l, first, group, parents)
		return nil
	})
}

// structure asks what the messages of the conversation are made of, where it was
// not asked of every candidate because some of them may be hidden.
func (t *threading) structure(s *imap.Session, group []*fetched) error {
	if t.want.structure || t.unstructured {
		return nil
	}
	uids := make([]uint32, len(group))
	for i, g := range group {
		uids[i] = g.uid
	}
	s.Renew()
	data, err := startStructures(s, uids).Wait()
	if err != nil && !refusedByServer(err) {
		return err
	}
	for _, g := range group {
		if d := dataOf(data, g.uid); d != nil && d.BodyStructure != nil {
			g.root = partsOf(d.BodyStructure)
		}
	}
	return nil
}

// structureLater does the same, with care, where one of the answers cannot be read.
func (t *threading) structureLater(ctx context.Context) {
	uids := make([]uint32, len(t.out.Messages))
	for i, m := range t.out.Messages {
		uids[i] = m.Ref.UID
	}
	t.box.structures(ctx, t.ref.Folder, t.out.UIDValidity, uids, func(uid uint32, root *message.Part) {
		i := slices.Index(uids, uid)
		if root != nil {
			g := fetched{root: root}
			t.out.Messages[i].HasAttachments = g.hasAttachments()
		}
	})
}

// linked returns the ids that the messages of a conversation have or name, those
// at the root first, and the base subjects at its root and of the message asked
// for, as far as they have not been searched for.
func (t *threading) linked(group []*fetched, asked map[string]bool) (ids, subjects []string) {
	for i, g := range group {
		for _, id := range append(g.links(), messageID(g.header)) {
			if id != "" && !asked[id] && len(ids) < maxThreadIDs {
				asked[id] = true
				ids = append(ids, id)
			}
		}
		if i > 0 && g.uid != t.ref.UID {
			continue
		}
		base, _ := message.BaseSubject(g.header.Text("Subject"))
		if base, _ = plain.Head(base, 100); base != "" && !asked["subject "+base] {
			asked["subject "+base] = true // no id has a space in it
			subjects = append(subjects, base)
		}
	}
	return ids, subjects
}

// links are the ids a message names, the root first.
func (g *fetched) links() []string {
	ids := g.header.MsgIDs("References")
	if reply := g.header.MsgIDs("In-Reply-To"); len(reply) > 0 && !slices.Contains(ids, reply[0]) {
		ids = append(ids, reply[0])
	}
	return ids
}

// look searches for messages that have or name one of the ids, or have one of the
// subjects, and fetches those that are not here yet.
func (t *threading) look(s *imap.Session, ids, subjects []string) error {
	c := threadCriteria(ids, subjects)
	var found goimap.UIDSet
	var err error
	if s.Has("THREAD=REFERENCES") && t.policy.ShowsAll() {
		var trees []imapclient.ThreadData
		if trees, err = s.Thread(c).Wait(); err == nil {
			found = treeOf(trees, t.ref.UID)
		}
	} else {
		found, err = s.Search(c).Wait()
	}
	if err != nil {
		return err
	}
	kept := 0
	for left := found; len(left) > 0; {
		var window, set goimap.UIDSet
		window, left = imap.SplitUIDs(left, maxWindow, false)
		nums, _ := window.Nums()
		for _, uid := range nums {
			if t.known[uint32(uid)] == nil {
				set.AddNum(uid)
			}
		}
		if len(set) == 0 {
			continue
		}
		if kept >= maxCandidates && t.policy.ShowsAll() {
			t.cut = true
			break
		}
		s.Renew()
		got, err := fetchAll(s, set, t.want)
		if err != nil {
			return err
		}
		for i := len(got) - 1; i >= 0; i-- {
			g := &got[i]
			switch {
			case !g.readable || !set.Contains(goimap.UID(g.uid)) || !g.visible(t.policy):
			case kept == maxCandidates:
				t.cut = true // of what is visible: a hidden message counts for nothing
			default:
				kept++
				t.known[g.uid] = g
			}
		}
	}
	return nil
}

func threadCriteria(ids, subjects []string) *goimap.SearchCriteria {
	var all []goimap.SearchCriteria
	for _, id := range ids {
		all = append(all, headerHolds("Message-ID", id), headerHolds("References", id), headerHolds("In-Reply-To", id))
	}
	for _, s := range subjects {
		all = append(all, headerHolds("Subject", s))
	}
	return anyOf(all)
}

// treeOf returns every UID of the conversation that holds one.
func treeOf(trees []imapclient.ThreadData, uid uint32) goimap.UIDSet {
	for _, t := range trees {
		var all []uint32
		var walk func(t imapclient.ThreadData)
		walk = func(t imapclient.ThreadData) {
			all = append(all, t.Chain...)
			for _, sub := range t.SubThreads {
				walk(sub)
			}
		}
		walk(t)
		if slices.Contains(all, uid) {
			return imap.UIDs(all...)
		}
	}
	return nil
}

// conversation returns the messages that belong together with the one asked for,
// oldest first, and the parent of each.
func (t *threading) conversation() (group []*fetched, parents map[uint32]uint32) {
	var all []*fetched
	for _, g := range t.known {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *fetched) int { return int(int64(a.uid) - int64(b.uid)) })
	nodes := make([]message.ThreadNode, len(all))
	for i, g := range all {
		nodes[i] = message.ThreadNode{ID: messageID(g.header), References: g.links(), Subject: g.header.Text("Subject"), Date: g.when()}
	}
	threads := message.Thread(nodes)
	parents = map[uint32]uint32{}
	for _, indices := range threads.Groups {
		if !slices.ContainsFunc(indices, func(i int) bool { return all[i].uid == t.ref.UID }) {
			continue
		}
		for _, i := range indices {
			group = append(group, all[i])
			if p := threads.Parent[i]; p >= 0 {
				parents[all[i].uid] = all[p].uid
			}
		}
	}
	return group, parents
}

// when is the date a message is sorted by.
func (g *fetched) when() time.Time {
	if d, ok := g.date(); ok {
		return d
	}
	return g.internal
}

func (t *threading) finish(l *located, first *fetched, group []*fetched, parents map[uint32]uint32) {
	t.out = &Thread{Folder: t.ref.Folder, UIDValidity: l.box.UIDValidity, Truncated: t.cut}
	t.out.Subject, _ = message.BaseSubject(first.header.Text("Subject"))
	if len(group) > t.q.Limit {
		group, t.out.Truncated = t.newest(group), true
	}
	ref := func(uid uint32) mail.Ref {
		return mail.Ref{Protocol: mail.IMAP, Account: t.account.Name, Folder: t.ref.Folder, UIDValidity: l.box.UIDValidity, UID: uid}
	}
	here := map[uint32]bool{}
	for _, g := range group {
		here[g.uid] = true
	}
	for _, g := range group {
		m := ThreadMessage{Summary: g.summary(t.q.Full)}
		m.Ref = ref(g.uid)
		if p, ok := parents[g.uid]; ok && here[p] {
			m.Parent = ref(p)
		}
		t.out.Messages = append(t.out.Messages, m)
	}
}

// newest keeps the newest messages and the one that was asked for.
func (t *threading) newest(group []*fetched) []*fetched {
	kept := slices.Clone(group[len(group)-t.q.Limit:])
	for _, g := range group[:len(group)-t.q.Limit] {
		if g.uid == t.ref.UID {
			kept[0] = g
		}
	}
	return kept
}
