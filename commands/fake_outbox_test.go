package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// fakeOutbox is an Outbox without servers: a message that is sent or approved becomes
// what the test says.
type fakeOutbox struct {
	mu      sync.Mutex
	shown   map[string]*outbox.Shown
	order   []string
	queries []mail.OutboxQuery
	request outbox.Request // the last one
	draft   outbox.Draft   // the last one
	sent    []string       // ids, each time one left

	begins  mail.OutboxState // of a message that is new; empty means accepted
	becomes mail.OutboxState // of one that is approved; empty means accepted
	reason  string
	asks    []mail.Ask // of a message that is new
	unasked bool       // it goes so
	fails   error      // of Send and Approve
	replays bool       // what is sent was sent before

	unmarked  *mail.Issue // of a message that is sent
	draftLeft *mail.Issue // of a draft that is sent
	appended  mail.Ref    // the last draft that was added to
	left      *mail.Issue // of a draft that was added to
}

func newFakeOutbox() *fakeOutbox { return &fakeOutbox{shown: map[string]*outbox.Shown{}} }

// put adds an entry and returns it.
func (y *fakeOutbox) put(id, principal string, state mail.OutboxState) *outbox.Shown {
	s := &outbox.Shown{Here: true, Body: "The text.\nOf two lines.", HeaderFrom: mail.Address{Name: "Desk", Addr: "desk@example.org"}, Outgoing: mail.Outgoing{ID: id, Account: "work", Principal: principal,
		State: state, Created: at, Changed: at, MessageID: "<" + id + "@example.org>", From: "desk@example.org", Recipients: []string{"ann@example.org"},
		To: []mail.Address{{Addr: "ann@example.org"}}, Subject: "Subject of " + id, Size: 500, Digest: strings.Repeat("ab", 31) + fmt.Sprintf("%02x", len(y.order)), Sent: mail.SentPending}}
	y.shown[id] = s
	y.order = append(y.order, id)
	return s
}

func (y *fakeOutbox) Send(_ context.Context, account string, r outbox.Request) (*mail.Outgoing, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.request = r
	if y.fails != nil && y.begins == "" {
		return nil, y.fails
	}
	state := y.begins
	if state == "" {
		state = mail.OutboxAccepted
	}
	s := y.put(fmt.Sprintf("m%d", len(y.order)), r.Principal, state)
	s.Account, s.Subject, s.Body, s.Reason = account, r.Draft.Subject, r.Draft.Body, y.reason
	if s.Asks = y.asks; y.unasked {
		s.Unasked = s.Digest
	}
	o := s.Outgoing
	o.Replayed, o.Unmarked, o.DraftLeft = y.replays, y.unmarked, y.draftLeft
	if r.Stored != nil {
		o.Draft = r.Stored.String()
	}
	if r.DryRun {
		delete(y.shown, s.ID)
		o.ID = ""
	} else if state == mail.OutboxAccepted {
		y.sent = append(y.sent, s.ID)
	}
	return &o, y.fails
}

func (y *fakeOutbox) HoldDeletion(_ context.Context, account string, refs []mail.Ref, principal string) (*mail.Outgoing, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.fails != nil {
		return nil, y.fails
	}
	s := y.put(fmt.Sprintf("d%d", len(y.order)), principal, mail.OutboxWaiting)
	s.Kind, s.Account, s.Folder, s.Subject, s.Recipients, s.Body, s.MessageID = mail.OutboxDelete, account, refs[0].Folder, "", nil, "", ""
	for i, r := range refs {
		s.Deletes = append(s.Deletes, mail.Deletion{ID: r.String(), Date: at, From: []mail.Address{{Name: "Ann", Addr: "ann@example.org"}}, Subject: fmt.Sprint("Letter ", i)})
	}
	o := s.Outgoing
	return &o, nil
}

func (y *fakeOutbox) SaveDraft(_ context.Context, account string, d outbox.Draft) (*outbox.SavedDraft, error) {
	y.draft = d
	if y.fails != nil {
		return nil, y.fails
	}
	s := &outbox.SavedDraft{Account: account, Folder: "Drafts", MessageID: "draft@example.org", Subject: d.Subject, Size: 100}
	for _, a := range slices.Concat(d.To, d.CC, d.BCC) {
		s.Recipients = append(s.Recipients, a.Addr)
	}
	s.Hidden = d.Subject == "hidden"
	if d.Subject != "no uid" {
		s.Ref = mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "Drafts", UIDValidity: 3, UID: 4}
	}
	return s, nil
}

func (y *fakeOutbox) AppendToDraft(ctx context.Context, ref mail.Ref, more outbox.Draft) (*outbox.SavedDraft, error) {
	saved, err := y.SaveDraft(ctx, ref.Account, more)
	if err == nil {
		y.appended, saved.Left, saved.Recipients = ref, y.left, []string{"reader@example.org"}
	}
	return saved, err
}

func (y *fakeOutbox) List(_ context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error) {
	y.queries = append(y.queries, q)
	for _, id := range slices.Backward(y.order) {
		if s := y.shown[id]; s != nil && q.Matches(&s.Outgoing) {
			if len(entries) == q.Limit {
				return entries, true, nil
			}
			entries = append(entries, s.Outgoing)
		}
	}
	return entries, false, nil
}

func (y *fakeOutbox) Show(_ context.Context, id string) (*outbox.Shown, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if s := y.shown[id]; s != nil {
		shown := *s
		return &shown, nil
	}
	return nil, mail.ErrNoOutgoing
}

func (y *fakeOutbox) change(id string, from []mail.OutboxState, to mail.OutboxState, by string) (*mail.Outgoing, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	s := y.shown[id]
	switch {
	case s == nil:
		return nil, mail.ErrNoOutgoing
	case !slices.Contains(from, s.State):
		o := s.Outgoing
		return &o, &mail.Error{Op: "outbox", Kind: mail.KindConflict, Message: "The message is " + string(s.State) + ".", Advice: mail.AdviceShowEntry, Detail: s.ID}
	}
	s.State, s.Decided = to, by
	if to == mail.OutboxAccepted {
		y.sent = append(y.sent, id)
	}
	o := s.Outgoing
	o.Unmarked = y.unmarked
	return &o, nil
}

func (y *fakeOutbox) Cancel(_ context.Context, id, principal string) (*mail.Outgoing, error) {
	if s := y.shown[id]; s != nil && principal != "" && s.Principal != principal {
		return nil, mail.ErrNoOutgoing
	}
	return y.change(id, []mail.OutboxState{mail.OutboxWaiting, mail.OutboxQueued}, mail.OutboxCancelled, principal)
}

func (y *fakeOutbox) Approve(_ context.Context, id, digest, by string) (*mail.Outgoing, error) {
	if s := y.shown[id]; s != nil && s.Digest != digest {
		return nil, &mail.Error{Op: "outbox", Kind: mail.KindConflict, Message: "The digest is another.", Advice: mail.AdviceShowEntry, Detail: s.ID}
	}
	if y.fails != nil {
		o := y.shown[id].Outgoing
		return &o, y.fails
	}
	to := y.becomes
	if to == "" {
		to = mail.OutboxAccepted
	}
	return y.change(id, []mail.OutboxState{mail.OutboxWaiting, mail.OutboxQueued, mail.OutboxUnknown}, to, by)
}

func (y *fakeOutbox) Reject(_ context.Context, id, by, reason string) (*mail.Outgoing, error) {
	o, err := y.change(id, []mail.OutboxState{mail.OutboxWaiting}, mail.OutboxRejected, by)
	if err == nil {
		y.shown[id].Reason, o.Reason = reason, reason
	}
	return o, err
}

func (y *fakeOutbox) Verify(_ context.Context, account string) (*mail.Verification, error) {
	return &mail.Verification{Account: account}, nil
}

// withFakeOutbox gives a fixture an outbox.
func withFakeOutbox(b *fixture) *fakeOutbox {
	y := newFakeOutbox()
	b.deps.Outbox = y
	return y
}
