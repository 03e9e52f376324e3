package mailbox

import (
	"cmp"
	"context"
	"slices"

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

	maxCandidates   = 1000 // messages read for one conversation
	maxThreadIDs    = 30   // message ids searched for at once
	maxThreadRounds = 3    // searches, each for ids that the one before found
)

// threadFields are the fields that link conversations.
var threadFields = []string{"MESSAGE-ID", "REFERENCES", "IN-REPLY-TO"}

// Thread returns the conversation of a message within its folder, oldest first: messages
// linked by References, then In-Reply-To, then a base subject where one of the two is a
// reply (004 section 5). Of a long one the newest messages are kept. Candidates come from
// the server's search, or from its THREAD (RFC 5256) where the policy hides nothing: a
// server would also link two visible messages through a hidden one, and so reveal it.
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
	var out *Thread
	err = withStructure(ctx, func(structure bool) error {
		return x.lend(ctx, ref.Folder, func(s *imap.Session) (err error) {
			t := &threading{access: x.access, q: q}
			out, err = x.converse(s, t, ref, structure)
			return err
		})
	})
	return out, err
}

// threading is one Thread in progress, by IMAP or POP3.
type threading struct {
	*access
	q     ThreadQuery
	first *fetched   // the message asked for
	known []*fetched // visible messages that may belong to it
	cut   bool       // there were more messages than Thread reads
}

// converse finds the candidates by searching for linking ids and subjects, in rounds.
func (x *imapBox) converse(s *imap.Session, t *threading, ref mail.Ref, structure bool) (*Thread, error) {
	want := wanted{header: !x.policy.ShowsAll(), structure: structure && x.policy.ShowsAll(), dates: true, full: t.q.Full, thread: true}
	b := &batch{imapBox: x, refs: []mail.Ref{ref}, uids: []uint32{ref.UID}, folder: ref.Folder}
	l, err := b.locate(s, false, want)
	if err != nil {
		return nil, err
	}
	if t.first = l.found[ref.UID]; t.first == nil || !t.first.readable {
		return nil, t.noMessage(l.reason())
	}
	t.known = []*fetched{t.first}
	group, parents := t.known, map[mail.Ref]mail.Ref{}
	asked := map[string]bool{}
	for range maxThreadRounds {
		t.looking(0, 0, ref.Folder)
		ids, subjects := t.linked(group, asked)
		if len(ids)+len(subjects) == 0 {
			break
		}
		if err := x.candidates(s, t, ids, subjects, want); err != nil {
			return nil, err
		}
		slices.SortFunc(t.known, func(a, b *fetched) int { return cmp.Compare(a.ref.UID, b.ref.UID) })
		group, parents = t.conversation()
	}
	if structure && !want.structure {
		// The server did not search every candidate, because some of them may be hidden.
		if err := structures(s, group); err != nil {
			return nil, err
		}
	}
	return t.thread(group, parents), nil
}

// linked returns the ids that the messages of a conversation have or name, those at the
// root first, and the base subjects of its root and of the requested message, without those
// already searched for.
func (t *threading) linked(group []*fetched, asked map[string]bool) (ids, subjects []string) {
	for i, g := range group {
		for _, id := range append(g.links(), messageID(g.header)) {
			if id != "" && !asked[id] && len(ids) < maxThreadIDs {
				asked[id] = true
				ids = append(ids, id)
			}
		}
		if i > 0 && g != t.first {
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

// candidates searches for messages that have or name one of the ids, or have one of the
// subjects, and fetches those that are not known yet.
func (x *imapBox) candidates(s *imap.Session, t *threading, ids, subjects []string, want wanted) error {
	c := threadCriteria(ids, subjects)
	var found goimap.UIDSet
	var err error
	if s.Has("THREAD=REFERENCES") && t.policy.ShowsAll() {
		var trees []imapclient.ThreadData
		if trees, err = s.Thread(c).Wait(); err == nil {
			found = treeOf(trees, t.first.ref.UID)
		}
	} else {
		found, err = s.Search(c).Wait()
	}
	if err != nil {
		return err
	}
	known := map[uint32]bool{}
	for _, g := range t.known {
		known[g.ref.UID] = true
	}
	kept := 0
	return x.walk(s, source{uids: found, but: known}, false, want, nil, func(got []fetched) bool {
		for i := range got {
			switch g := &got[i]; {
			case !g.readable || !g.visible(t.policy):
			case kept == maxCandidates:
				t.cut = true // only for visible messages: hidden ones do not count
			default:
				kept++
				t.known = append(t.known, g)
			}
		}
		return !t.cut || !t.policy.ShowsAll()
	})
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
func (t *threading) conversation() (group []*fetched, parents map[mail.Ref]mail.Ref) {
	nodes := make([]message.ThreadNode, len(t.known))
	for i, g := range t.known {
		date, ok := g.date()
		if !ok {
			date = g.internal
		}
		nodes[i] = message.ThreadNode{ID: messageID(g.header), References: g.links(), Subject: g.header.Text("Subject"), Date: date}
	}
	threads := message.Thread(nodes)
	first := slices.Index(t.known, t.first)
	parents = map[mail.Ref]mail.Ref{}
	for _, indices := range threads.Groups {
		if !slices.Contains(indices, first) {
			continue
		}
		for _, i := range indices {
			group = append(group, t.known[i])
			if p := threads.Parent[i]; p >= 0 {
				parents[t.known[i].ref] = t.known[p].ref
			}
		}
	}
	return group, parents
}

// thread is the answer: the newest messages of the conversation, and the one asked for.
func (t *threading) thread(group []*fetched, parents map[mail.Ref]mail.Ref) *Thread {
	out := &Thread{Folder: t.first.ref.Folder, UIDValidity: t.first.ref.UIDValidity, Truncated: t.cut}
	out.Subject, _ = message.BaseSubject(t.first.header.Text("Subject"))
	if older := len(group) - t.q.Limit; older > 0 {
		out.Truncated = true
		asked := slices.Contains(group[:older], t.first)
		if group = slices.Clone(group[older:]); asked {
			group[0] = t.first
		}
	}
	for _, g := range group {
		m := ThreadMessage{Summary: g.summary(t.q.Full)}
		if p := parents[g.ref]; slices.ContainsFunc(group, func(o *fetched) bool { return o.ref == p }) {
			m.Parent = p
		}
		out.Messages = append(out.Messages, m)
	}
	return out
}
