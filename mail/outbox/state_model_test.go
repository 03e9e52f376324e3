package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/smtp"
	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/mailbox"
)

// The model: several processes that share one store work on one message, each in
// small steps. A scheduler lets one of them make one step at a time, by chance, and
// lets the clock jump or a process die between any two. After every step the store
// is compared with what the server has.

// stateModel is what the processes share.
type stateModel struct {
	rng  *rand.Rand
	now  time.Time
	mode mail.Mode

	entries  map[string]mail.Outgoing
	messages map[string][]byte
	resends  int  // claims of an entry that was unknown
	reopened bool // one that a person had closed was claimed

	copies int            // of the message, at the server
	copied map[uint32]int // of each message of a plan
	made   []mail.Change  // the journal
	begun  bool           // the gate was opened
	faults bool
	log    []string
}

// modelProcess is one of them: its steps wait for the scheduler.
type modelProcess struct {
	w      *stateModel
	name   string
	turn   chan bool // true: go on; false: die here
	parked chan bool // true: at a step; false: it has ended
	until  time.Time // when its context has ended at the latest, of a plan
}

func (p *modelProcess) step(what string) {
	p.parked <- true
	if !<-p.turn {
		p.w.log = append(p.w.log, p.name+" dies before "+what)
		runtime.Goexit()
	}
	p.w.log = append(p.w.log, p.name+" "+what)
}

// modelStore is one process's access to the shared store.
type modelStore struct {
	p *modelProcess
}

func (s modelStore) AddOutgoing(_ context.Context, o mail.Outgoing, message []byte) (mail.Outgoing, bool, error) {
	s.p.step("add")
	w := s.p.w
	for _, e := range w.entries {
		if o.Key != "" && e.Key == o.Key {
			return e, false, nil
		}
	}
	w.entries[o.ID], w.messages[o.ID] = o, message
	return o, true, nil
}

func (s modelStore) Outgoing(_ context.Context, id string) (mail.Outgoing, error) {
	s.p.step("read")
	e, ok := s.p.w.entries[id]
	if !ok {
		return e, mail.ErrNoOutgoing
	}
	return e, nil
}

func (s modelStore) OutgoingByKey(_ context.Context, _, key string) (mail.Outgoing, error) {
	s.p.step("look up")
	for _, e := range s.p.w.entries {
		if e.Key == key {
			return e, nil
		}
	}
	return mail.Outgoing{}, mail.ErrNoOutgoing
}

func (s modelStore) OutgoingMessage(_ context.Context, id string) ([]byte, error) {
	s.p.step("read bytes")
	m, ok := s.p.w.messages[id]
	if !ok {
		return nil, mail.ErrNoOutgoing
	}
	return m, nil
}

func (s modelStore) ListOutgoing(_ context.Context, q mail.OutboxQuery) (out []mail.Outgoing, more bool, err error) {
	s.p.step("list")
	for _, e := range s.p.w.entries {
		if q.Matches(&e) {
			out = append(out, e)
		}
	}
	return out, false, nil
}

func (s modelStore) ChangeOutgoing(_ context.Context, id string, change func(*mail.Outgoing) (bool, error)) (mail.Outgoing, error) {
	s.p.step("change")
	w := s.p.w
	before, ok := w.entries[id]
	if !ok {
		return before, mail.ErrNoOutgoing
	}
	after := before
	drop, err := change(&after)
	if err != nil {
		return mail.Outgoing{}, err
	}
	if before.State == mail.OutboxUnknown && after.Attempt != "" && after.Attempt != before.Attempt {
		w.resends++
		w.reopened = w.reopened || before.Settled
	}
	s.p.until = after.Until
	w.begun = w.begun || after.State == mail.OutboxUnknown
	w.entries[id] = after
	if drop {
		delete(w.messages, id)
	}
	w.log = append(w.log, fmt.Sprintf("  %s %q -> %s %q", before.State, before.Attempt, after.State, after.Attempt))
	return after, nil
}

// modelWire is one process's connection to the server.
type modelWire struct{ p *modelProcess }

func (m modelWire) Check(smtp.Envelope, []byte) error { return nil }
func (m modelWire) Extensions() []string              { return nil }
func (m modelWire) Close() error                      { return nil }

func (m modelWire) Send(_ context.Context, e smtp.Envelope, _ []byte) (*smtp.Receipt, error) {
	w := m.p.w
	refused := func(code int) (*smtp.Receipt, error) {
		return nil, &smtp.SendError{Outcome: smtp.NotSent, Temporary: code < 500, Err: &wire.Error{Kind: wire.KindRefused, Reply: code}}
	}
	cut := func(o smtp.Outcome) (*smtp.Receipt, error) {
		return nil, &smtp.SendError{Outcome: o, Temporary: true, Err: &wire.Error{Kind: wire.KindConnection}}
	}
	m.p.step("MAIL")
	switch w.chance(8) {
	case 0:
		return refused(450)
	case 1:
		return refused(550)
	}
	if err := e.BeforeData(); err != nil {
		return nil, &smtp.SendError{Outcome: smtp.NotSent, Err: err}
	}
	m.p.step("DATA")
	switch w.chance(8) {
	case 0:
		return cut(smtp.NotSent)
	case 1:
		return refused(552)
	}
	m.p.step("the dot")
	switch w.chance(8) {
	case 0:
		return cut(smtp.Unknown) // before it arrived
	case 1:
		return refused(451)
	}
	w.copies++
	m.p.step("the answer")
	if w.chance(4) == 0 {
		return cut(smtp.Unknown)
	}
	return &smtp.Receipt{Reply: 250}, nil
}

// chance is 0 once in n times where faults happen, and otherwise never a fault.
func (w *stateModel) chance(n int) int {
	if !w.faults {
		return n
	}
	return w.rng.IntN(n)
}

type modelDirectory struct{ w *stateModel }

func (d modelDirectory) Accounts(context.Context) ([]mail.Account, error) { return nil, nil }
func (d modelDirectory) Secret(context.Context, string) (mail.Secret, error) {
	return mail.NewSecret([]byte("secret")), nil
}

func (d modelDirectory) Account(context.Context, string) (mail.Account, error) {
	return mail.Account{Name: "ann", Email: "ann@example.org", Protocol: mail.POP3, Username: "ann", Auth: mail.AuthPassword, Mode: d.w.mode, AskChanges: d.w.asks(),
		POP3: mail.Endpoint{Host: "127.0.0.1", Port: 110, Security: mail.Plaintext}, SMTP: mail.Endpoint{Host: "127.0.0.1", Port: 25, Security: mail.Plaintext}}, nil
}

func (p *modelProcess) outbox() *Outbox {
	b := New(Options{Directory: modelDirectory{p.w}, Store: modelStore{p}, Now: func() time.Time { return p.w.now },
		Key: func(context.Context) ([]byte, error) { return make([]byte, 32), nil }})
	b.o.Journal, b.change = modelJournal{w: p.w}, p.change
	b.dial = func(context.Context, mail.Operation, *mail.Account) (submission, error) {
		p.step("dial")
		if p.w.chance(8) == 0 {
			return nil, &mail.Error{Kind: mail.KindConnection, Retryable: true, Message: "No connection."}
		}
		return modelWire{p}, nil
	}
	return b
}

var modelRequest = Request{Key: "key", Principal: "agent", Draft: Draft{To: []mail.Address{{Addr: "bob@example.net"}}, Subject: "Hello", Body: "Hello"}}

// modelJournal is the journal of what a plan copies.
type modelJournal struct {
	mail.Journal
	w *stateModel
}

func (j modelJournal) ChangesMade(context.Context, mail.ChangeQuery) ([]mail.Change, error) {
	return slices.Clone(j.w.made), nil
}

// asks is mail.Account.AskChanges.
func (w *stateModel) asks() *int {
	if n := modelBound; w.mode == mail.Approve {
		return &n
	}
	return nil
}

// modelBound is how many messages go unasked: less than a plan has.
const modelBound = 3

// change is mailbox.Client.Do: a copy, the intent of which is kept first.
func (p *modelProcess) change(_ context.Context, of mailbox.Batch) (*mailbox.Changed, error) {
	w, c := p.w, mail.Change{Of: of.Of, Account: "ann", Folder: of.Refs[0].Folder, UIDValidity: 1, Approved: of.Approved}
	failed := func(unknown bool) error {
		return &mail.Error{Kind: mail.KindConnection, Retryable: true, Unknown: unknown, Message: "No connection."}
	}
	p.step("begin")
	n := 0
	for i := range w.made {
		n += w.made[i].Counts()
	}
	for _, r := range of.Refs {
		c.Messages = append(c.Messages, mail.ChangeMessage{UID: r.UID})
	}
	switch {
	case w.chance(8) == 0:
		return nil, failed(false)
	case w.mode == mail.Approve && n+c.Counts() > modelBound:
		return nil, &mail.Error{Kind: mail.KindAsks, Err: mail.ErrManyChanges}
	}
	w.made = append(w.made, c)
	at := len(w.made) - 1
	if p.step("copy"); !w.now.Before(p.until) {
		return nil, failed(false)
	}
	out := &mailbox.Changed{}
	for i, r := range of.Refs {
		w.copied[r.UID]++
		w.made[at].Messages[i].Done = true
		out.Messages = append(out.Messages, mailbox.ChangedMessage{Ref: r})
	}
	p.step("the answer")
	if w.chance(6) == 0 {
		return nil, failed(true)
	}
	w.made[at].Ended = w.now
	return out, nil
}

// modelPlan puts a plan of two pieces into the outbox.
func (w *stateModel) modelPlan() {
	record, _ := json.Marshal([]frozen{{"A", 1, [][2]uint32{{1, 2}}}, {"B", 1, [][2]uint32{{3, 4}}}})
	e := mail.Outgoing{ID: "plan", Kind: mail.OutboxPlan, Account: "ann", Principal: "agent", State: mail.OutboxQueued, Created: w.now, Changed: w.now,
		Plan: &mail.Plan{Action: mail.Action{Do: mail.DoCopy, To: "C"}, List: hash(record), Count: 4}}
	e.Digest = workOf(e.Kind).digest(&e)
	w.entries[e.ID], w.messages[e.ID] = e, record
}

// checkPlan compares a plan with what was copied.
func (w *stateModel) checkPlan(e *mail.Outgoing) error {
	n, unasked := 0, 0
	for _, times := range w.copied {
		if n++; times > 1 {
			return errors.New("a message was copied twice")
		}
	}
	for i := range w.made {
		unasked += w.made[i].Counts()
	}
	now := e.Plan.Outcome
	switch {
	case n > 0 && !w.begun:
		return errors.New("it was carried out without a claim")
	case w.mode == mail.Approve && unasked > modelBound:
		return fmt.Errorf("%d were copied unasked", unasked)
	case now.Done > n:
		return fmt.Errorf("%d are said to be copied, and %d are", now.Done, n)
	case e.State == mail.OutboxQueued && n > 0:
		return errors.New("it is queued, and was begun")
	case e.State == mail.OutboxDone && n != 4, (e.State == mail.OutboxDone || e.State == mail.OutboxPartly) && now.Tried() != 4:
		return fmt.Errorf("it is %s with %+v, and %d were copied", e.State, now, n)
	case !e.Ended() && w.messages[e.ID] == nil:
		return fmt.Errorf("it is %s, and its list is gone", e.State)
	}
	return nil
}

// start runs what a process does until it ends or dies.
func (w *stateModel) start(name string, do func(ctx context.Context, p *modelProcess, b *Outbox)) *modelProcess {
	p := &modelProcess{w: w, name: name, turn: make(chan bool), parked: make(chan bool)}
	go func() {
		defer func() { p.parked <- false }()
		p.step("begins")
		do(context.Background(), p, p.outbox())
	}()
	return p
}

func (w *stateModel) entry() (mail.Outgoing, bool) {
	for _, e := range w.entries {
		return e, true
	}
	return mail.Outgoing{}, false
}

// check compares the store with the server.
func (w *stateModel) check() error {
	e, there := w.entry()
	switch {
	case len(w.entries) > 1:
		return errors.New("one key has two entries")
	case !there && w.copies > 0:
		return errors.New("the server has a message that is not in the outbox")
	case !there:
		return nil
	case e.Kind == mail.OutboxPlan:
		return w.checkPlan(&e)
	case w.reopened:
		return errors.New("a person had closed it, and it was tried again")
	case w.copies > 1+w.resends:
		return fmt.Errorf("the server has it %d times, and a person asked for it again %d times", w.copies, w.resends)
	case e.State == mail.OutboxAccepted && w.copies == 0:
		return errors.New("it is accepted, and the server does not have it")
	case e.State != mail.OutboxAccepted && e.State != mail.OutboxUnknown && w.copies > 0:
		return fmt.Errorf("it is %s, and the server has it", e.State)
	case w.copies > 0 && e.Key != "" && w.messages[e.ID] == nil && e.State == mail.OutboxUnknown && !e.Settled:
		return errors.New("the bytes of an unknown message are gone")
	case !e.Ended() && w.messages[e.ID] == nil:
		return fmt.Errorf("it is %s, and its bytes are gone", e.State)
	}
	return nil
}

// run schedules the processes until all have ended.
func (w *stateModel) run(deaths bool, live ...*modelProcess) error {
	parked := func(p *modelProcess) bool { return <-p.parked }
	live = slices.DeleteFunc(live, func(p *modelProcess) bool { return !parked(p) })
	for len(live) > 0 {
		i := w.rng.IntN(len(live))
		switch p := live[i]; {
		case w.faults && w.rng.IntN(25) == 0:
			w.now = w.now.Add(time.Hour) // every lease is over
			w.log = append(w.log, "the clock jumps")
			continue
		case w.faults && w.copied == nil && w.rng.IntN(60) == 0 && w.mode == mail.ReadWrite:
			w.mode = mail.Approve
			w.log = append(w.log, "the mode is approve now")
			continue
		default:
			p.turn <- !deaths || w.rng.IntN(30) != 0
			if !parked(p) {
				live = slices.Delete(live, i, i+1)
			}
		}
		if err := w.check(); err != nil {
			// The others are let go, for they wait for good.
			for _, p := range live {
				p.turn <- false
				<-p.parked
			}
			return err
		}
	}
	return nil
}

func modelRun(seed uint64) (w *stateModel, err error) {
	w = &stateModel{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), mode: mail.ReadWrite,
		entries: map[string]mail.Outgoing{}, messages: map[string][]byte{}, faults: true}
	if w.rng.IntN(2) == 0 {
		w.mode = mail.Approve
	}
	send := func(ctx context.Context, _ *modelProcess, b *Outbox) {
		for range 1 + w.rng.IntN(2) {
			_, _ = b.Send(ctx, "ann", modelRequest)
		}
	}
	decide := func(ctx context.Context, p *modelProcess, b *Outbox) {
		for range 3 {
			entries, _, _ := b.List(ctx, mail.OutboxQuery{})
			if len(entries) == 0 {
				continue
			}
			e := entries[0]
			switch w.rng.IntN(6) {
			case 0:
				_, _ = b.Cancel(ctx, e.ID, "agent")
			case 1:
				_, _ = b.Reject(ctx, e.ID, "ann", "no")
			default:
				_, _ = b.Approve(ctx, e.ID, e.Digest, "ann")
			}
		}
	}
	var all []*modelProcess
	for i := range 2 + w.rng.IntN(3) {
		all = append(all, w.start("send"+strconv.Itoa(i), send))
	}
	for i := range w.rng.IntN(3) {
		all = append(all, w.start("person"+strconv.Itoa(i), decide))
	}
	if err := w.run(true, all...); err != nil {
		return w, err
	}
	// Whatever happened, the same request afterwards is answered with the truth, and
	// what never left can still leave.
	w.faults, w.now = false, w.now.Add(time.Hour)
	before, there := w.entry()
	copies := w.copies
	var last *mail.Outgoing
	var lastErr error
	if err := w.run(false, w.start("last", func(ctx context.Context, _ *modelProcess, b *Outbox) {
		last, lastErr = b.Send(ctx, "ann", modelRequest)
	})); err != nil {
		return w, err
	}
	after, _ := w.entry()
	switch {
	case last == nil || last.State != after.State:
		return w, fmt.Errorf("the last answer is %+v, %v", last, lastErr)
	case (lastErr == nil) != slices.Contains([]mail.OutboxState{mail.OutboxAccepted, mail.OutboxWaiting, mail.OutboxUnknown}, last.State):
		return w, fmt.Errorf("the last answer is %s and %v", last.State, lastErr)
	case there && before.State == mail.OutboxQueued && w.mode == mail.ReadWrite && (after.State != mail.OutboxAccepted || w.copies != copies+1):
		return w, fmt.Errorf("what was queued is %s", after.State)
	case there && before.State != mail.OutboxQueued && w.copies != copies:
		return w, fmt.Errorf("what was %s was sent", before.State)
	}
	return w, nil
}

// planRun is modelRun for a plan, which several run and a person decides about.
func planRun(seed uint64) (w *stateModel, err error) {
	w = &stateModel{rng: rand.New(rand.NewPCG(seed, 2)), now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), mode: []mail.Mode{mail.ReadWrite, mail.Approve}[seed%2],
		entries: map[string]mail.Outgoing{}, messages: map[string][]byte{}, copied: map[uint32]int{}, faults: true}
	w.modelPlan()
	var all []*modelProcess
	for i := range 2 + w.rng.IntN(3) {
		all = append(all, w.start("run"+strconv.Itoa(i), func(ctx context.Context, _ *modelProcess, b *Outbox) {
			for range 1 + w.rng.IntN(3) {
				_, _ = b.Run(ctx, "plan", "agent")
			}
		}))
	}
	for i := range w.rng.IntN(3) {
		all = append(all, w.start("person"+strconv.Itoa(i), func(ctx context.Context, _ *modelProcess, b *Outbox) {
			switch e := w.entries["plan"]; w.rng.IntN(5) {
			case 0:
				_, _ = b.Cancel(ctx, e.ID, "agent")
			case 1:
				_, _ = b.Reject(ctx, e.ID, "ann", "no")
			default:
				_, _ = b.Approve(ctx, e.ID, e.Digest, "ann")
			}
		}))
	}
	if err := w.run(true, all...); err != nil {
		return w, err
	}
	// What was not ended comes to its end, by a person where it asks.
	w.faults, w.now = false, w.now.Add(time.Hour)
	before := w.entries["plan"]
	err = w.run(false, w.start("last", func(ctx context.Context, _ *modelProcess, b *Outbox) {
		_, _ = b.Run(ctx, "plan", "agent")
		_, _ = b.Approve(ctx, "plan", before.Digest, "ann")
	}))
	if after := w.entries["plan"]; err == nil && after.State != before.State && after.State != mail.OutboxDone && after.State != mail.OutboxPartly || err == nil && !after.Ended() && !after.Expired(w.now) {
		err = fmt.Errorf("what was %s is %s", before.State, after.State)
	}
	return w, err
}

func TestNoInterleavingOfAPlanDoesMoreThanItMay(t *testing.T) {
	t.Parallel()
	reached := map[mail.OutboxState]int{}
	for seed := range uint64(testmain.Rounds(1000, 3000)) {
		w, err := planRun(seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(w.log, "\n"))
		}
		reached[w.entries["plan"].State]++
	}
	for _, s := range []mail.OutboxState{mail.OutboxDone, mail.OutboxPartly, mail.OutboxCancelled, mail.OutboxRejected} {
		if reached[s] == 0 {
			t.Errorf("no run ended %s: %v", s, reached)
		}
	}
}

func modelled(t *testing.T, seed uint64) *stateModel {
	t.Helper()
	w, err := modelRun(seed)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(w.log, "\n"))
	}
	return w
}

func FuzzInterleavings(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { modelled(t, seed) })
}

func TestNoInterleavingSendsTwiceOrLies(t *testing.T) {
	t.Parallel()
	reached := map[mail.OutboxState]int{}
	twice := 0
	for seed := range uint64(testmain.Rounds(1000, 3000)) {
		w := modelled(t, seed)
		e, _ := w.entry()
		reached[e.State]++
		if w.copies > 1 {
			twice++
		}
	}
	// A model that never gets anywhere proves nothing.
	for _, s := range []mail.OutboxState{mail.OutboxWaiting, mail.OutboxAccepted, mail.OutboxUnknown, mail.OutboxRefused, mail.OutboxCancelled, mail.OutboxRejected} {
		if reached[s] == 0 {
			t.Errorf("no run ended %s: %v", s, reached)
		}
	}
	if twice == 0 {
		t.Error("no person ever had an unknown message sent again")
	}
}
