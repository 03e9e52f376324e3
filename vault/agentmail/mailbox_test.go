package agentmail

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// agentVault makes a mailbox with a fake clock.
func agentVault(t testing.TB) (*testBox, *fakeClock) {
	t.Helper()
	c := &fakeClock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	return newBox(t, c.now), c
}

func post(t testing.TB, v *testBox, from, to, subject string) Message {
	t.Helper()
	m, err := v.Send(t.Context(), Message{Sender: from, Recipient: to, Subject: subject})
	must(t, err)
	return m
}

// fetch reads an inbox and confirms its messages.
func fetch(t testing.TB, v *testBox, q Query) []Message {
	t.Helper()
	in, err := v.Read(t.Context(), q)
	must(t, err)
	if in.Claim != nil {
		must(t, v.Confirm(t.Context(), q.Agent, in.Claim))
	}
	return in.Messages
}

// reads checks the subjects of what an inbox has, which is confirmed.
func reads(t testing.TB, v *testBox, q Query, want string) {
	t.Helper()
	if got := subjects(fetch(t, v, q)); got != want {
		t.Errorf("%+v reads %q, want %q", q, got, want)
	}
}

// postMany sends n messages in one transaction, every third of them to everyone.
func postMany(t testing.TB, v *testBox, from, to string, n int) (list []Message) {
	t.Helper()
	must(t, v.update(t.Context(), func(r *room) {
		for i := range n {
			m := Message{Sender: from, Recipient: to, Subject: "many", Created: r.now}
			if i%3 == 0 {
				m.Recipient = Everyone
			}
			m.ID = newID()
			r.add(&m)
			list = append(list, m)
		}
	}))
	return list
}

func subjects(list []Message) string {
	var s []string
	for _, m := range list {
		s = append(s, m.Subject)
	}
	return strings.Join(s, " ")
}

func statusOf(t testing.TB, v *testBox, agent string) Status {
	t.Helper()
	list, err := v.Status(t.Context(), agent, "")
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("status of %s has %d entries", agent, len(list))
	}
	return list[0]
}

func TestAgentMessagesKeepEveryByte(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	sent, err := v.Send(t.Context(), Message{Sender: "p:a", Recipient: "p:b", Subject: "é\t", Body: "a\r\nb\x7f\u200d\n", Refs: `["x"]`,
		ReplyTo: "0123ABCD-0000-4000-8000-00000000000F", ID: "mine", Created: c.at.Add(time.Hour), ReadAt: c.at})
	must(t, err)
	if !regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z`).MatchString(sent.ID) || !sent.Created.Equal(c.at) {
		t.Errorf("sent as %s at %v", sent.ID, sent.Created)
	}
	got := fetch(t, v, Query{Agent: "p:b"})
	sent.Created = sent.Created.Local()
	if len(got) != 1 || !got[0].Created.Equal(sent.Created) {
		t.Fatalf("got %+v", got)
	}
	got[0].Created = sent.Created
	if !reflect.DeepEqual(got[0], sent) || got[0].ReplyTo != "0123abcd-0000-4000-8000-00000000000f" || !got[0].ReadAt.IsZero() {
		t.Errorf("got  %+v\nsent %+v", got[0], sent)
	}
}

func TestAgentMailRefusesInvalidIdentitiesAndIDs(t *testing.T) {
	t.Parallel()
	v, _ := agentVault(t)
	const id = "0123abcd-0000-4000-8000-00000000000f"
	refused := func(what string, errs ...error) {
		t.Helper()
		for i, err := range errs {
			wantErr(t, err, vault.ErrInvalid, "%q, %d", what, i)
		}
	}
	named := func(agent, id string) []error {
		return []error{second(v.Ack(t.Context(), agent, id, false)), second(v.Thread(t.Context(), Thread{Agent: agent, ID: id}))}
	}
	for _, bad := range []string{"", "a", "a:", ":a", "A:b", "a:b:c", "a:b\n", "-a:b", "a:-b", "a b:c", "é:b", "*"} {
		refused(bad, append(named(bad, id), second(v.Send(t.Context(), Message{Sender: bad, Recipient: "p:b"})), second(v.Read(t.Context(), Query{Agent: bad})))...)
		if bad != "*" {
			refused(bad, second(v.Send(t.Context(), Message{Sender: "p:a", Recipient: bad})))
		}
	}
	for _, bad := range []string{"", "x", id + "\n", "0123abcd0000400080000000000000ff", "g123abcd-0000-4000-8000-00000000000f"} {
		refused(bad, named("p:a", bad)...)
	}
}

func TestUnconfirmedMessagesComeBack(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	for i := range 4 {
		to := "p:b"
		if i%2 == 1 {
			to = Everyone
		}
		post(t, v, "p:a", to, fmt.Sprint(i))
	}
	read := func(q Query) Inbox {
		q.Agent = "p:b"
		in, err := v.Read(t.Context(), q)
		must(t, err)
		return in
	}
	first := read(Query{Limit: 3})
	second := read(Query{})
	if subjects(first.Messages) != "0 1 2" || subjects(second.Messages) != "3" || second.Retry.IsZero() {
		t.Fatalf("read %q, then %q", subjects(first.Messages), subjects(second.Messages))
	}
	if s := statusOf(t, v, "p:b"); s.Unread != 0 || s.Unacked != 4 {
		t.Errorf("while the answers travel: %+v", s)
	}
	for _, m := range read(Query{All: true, Peek: true}).Messages {
		if !m.ReadAt.Equal(c.at) {
			t.Errorf("%s is not shown as read", m.Subject)
		}
	}
	must(t, v.Confirm(t.Context(), "p:b", second.Claim))

	c.at = c.at.Add(Lease - time.Second)
	if in := read(Query{}); len(in.Messages) != 0 || !in.Retry.Equal(first.Retry) && in.Retry.IsZero() {
		t.Errorf("before the lease is over: %+v", in)
	}
	c.at = c.at.Add(time.Second)
	if s := statusOf(t, v, "p:b"); s.Unread != 3 {
		t.Errorf("after the lease: %+v", s)
	}
	again := read(Query{Limit: 1})
	if subjects(again.Messages) != "0" {
		t.Fatalf("came back: %q", subjects(again.Messages))
	}
	// The first reader was only slow. The second reader keeps its messages.
	must(t, v.Confirm(t.Context(), "p:b", first.Claim))
	must(t, v.Confirm(t.Context(), "p:b", first.Claim))
	c.at = c.at.Add(Lease)
	if in := read(Query{}); subjects(in.Messages) != "0" {
		t.Errorf("the one that was taken over: %q", subjects(in.Messages))
	}
	// A clock that goes back makes a claim neither longer nor endless.
	c.at = c.at.Add(-time.Hour)
	if in := read(Query{}); subjects(in.Messages) != "0" {
		t.Errorf("after the clock went back: %q", subjects(in.Messages))
	}
}

func TestAPageHoldsTheMessagesThatFit(t *testing.T) {
	t.Parallel()
	v, _ := agentVault(t)
	for i, n := range []int{500, 30, 30, 50} {
		must(t, second(v.Send(t.Context(), Message{Sender: "p:a", Recipient: "p:b", Subject: fmt.Sprint(i), Body: strings.Repeat("x", n)})))
	}
	q := Query{Agent: "p:b", Room: Room{Room: 100, Size: func(m *Message) int { return len(m.Body) }}}
	for _, want := range []string{"0", "1 2", "3", ""} {
		reads(t, v, q, want)
	}
	if s := statusOf(t, v, "p:b"); s.Unread != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAThreadIsWholeAndStaysUnread(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	reply := func(from, to, subject, parent string) Message {
		c.at = c.at.Add(time.Second)
		m, err := v.Send(t.Context(), Message{Sender: from, Recipient: to, Subject: subject, ReplyTo: parent})
		must(t, err)
		return m
	}
	root := reply("p:a", "p:b", "root", "00000000-0000-4000-8000-000000000000") // its parent does not exist
	left := reply("p:b", "p:a", "left", root.ID)
	right := reply("p:b", Everyone, "right", root.ID)
	leaf := reply("p:a", "p:c", "leaf", left.ID)
	reply("p:a", "p:b", "other", "")
	for _, id := range []string{root.ID, strings.ToUpper(right.ID), leaf.ID} {
		in, err := v.Thread(t.Context(), Thread{Agent: "p:c", ID: id})
		if list := in.Messages; err != nil || subjects(list) != "root left right leaf" {
			t.Errorf("thread of %s: %q, %v", id, subjects(in.Messages), err)
		}
	}
	reads(t, v, Query{Agent: "p:c"}, "right leaf")
	in, err := v.Thread(t.Context(), Thread{Agent: "p:c", ID: leaf.ID, Own: true})
	list := in.Messages
	if err != nil || subjects(list) != "right leaf" || list[0].ReadAt.IsZero() || list[1].ReadAt.IsZero() {
		t.Errorf("own thread: %+v, %v", list, err)
	}
	for name, q := range map[string]Thread{
		"unknown": {Agent: "p:a", ID: "00000000-0000-4000-8000-000000000000"},
		"foreign": {Agent: "p:c", ID: root.ID, Own: true},
	} {
		wantErr(t, second(v.Thread(t.Context(), q)), ErrNoMessage, "%s", name)
	}
	tight := Room{Room: 10, Size: func(m *Message) int { return 4 }}
	in, err = v.Thread(t.Context(), Thread{Agent: "p:a", ID: leaf.ID, Room: tight})
	if rest, err2 := v.Thread(t.Context(), Thread{Agent: "p:a", ID: leaf.ID, After: in.Last, Room: tight}); err != nil || err2 != nil || subjects(in.Messages) != "root left" || subjects(rest.Messages) != "right leaf" || rest.Last != "" {
		t.Errorf("a thread without room: %+v, %v, and %+v, %v", in, err, rest, err2)
	}
}

// Who acknowledges what when is in the model.
func TestAnAckOfAnothersMessageIsRefused(t *testing.T) {
	t.Parallel()
	v, c := agentVault(t)
	direct := post(t, v, "p:a", "p:b", "direct")
	wantErr(t, second(v.Ack(t.Context(), "p:c", direct.ID, true)), ErrNoMessage, "somebody else's, own only")
	wantErr(t, second(v.Ack(t.Context(), "p:b", "00000000-0000-4000-8000-000000000000", false)), ErrNoMessage, "unknown")
	if at, err := v.Ack(t.Context(), "p:b", strings.ToUpper(direct.ID), true); err != nil || !at.Equal(c.at) {
		t.Errorf("ack = %v, %v", at, err)
	}
}

// agentModel is a simple model of the mailbox: a list of messages.
type agentModel struct {
	list []*modelMessage
}

type modelMessage struct {
	Message
	read, acked map[string]time.Time
}

func (m *modelMessage) reaches(agent string) bool {
	return m.Sender != agent && (m.Broadcast() || m.Recipient == agent)
}

func (a *agentModel) fetch(q Query, now time.Time) (list []Message) {
	for _, m := range a.list {
		unread := m.read[q.Agent].IsZero()
		if !m.reaches(q.Agent) || q.From != "" && m.Sender != q.From || !q.All && !unread || len(list) == q.Limit {
			continue
		}
		c := m.Message
		c.ReadAt, c.AckedAt = m.read[q.Agent], m.acked[q.Agent]
		list = append(list, c)
		if !q.Peek && unread {
			m.read[q.Agent] = now
		}
	}
	slices.SortStableFunc(list, func(a, b Message) int { return a.Created.Compare(b.Created) })
	return list
}

func (a *agentModel) status() (list []Status) {
	agents := map[string]bool{}
	for _, m := range a.list {
		agents[m.Sender] = true
		if !m.Broadcast() {
			agents[m.Recipient] = true
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(agents)) {
		s := Status{Agent: agent}
		for _, m := range a.list {
			if m.reaches(agent) && m.read[agent].IsZero() {
				s.Unread++
			}
			if m.reaches(agent) && m.acked[agent].IsZero() {
				s.Unacked++
			}
		}
		list = append(list, s)
	}
	return list
}

// TestAgentMailAgreesWithItsModel runs commands at random, on a clock that also goes
// back, and compares every answer with that of agentModel. Expired messages are removed a few
// at a time, so that there are always some that nobody may see.
func TestAgentMailAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	v, c := agentVault(t)
	v.limits.purge = 3
	agents := []string{"p:a", "p:b", "p:c", "q:a", "q:silent"}
	someone := func() string { return agents[dice.IntN(len(agents))] }
	model := &agentModel{}
	for step := range size(testmain.Rounds(400, 1500), 120) {
		c.at = c.at.Add(time.Duration(dice.IntN(20)) * time.Minute)
		if dice.IntN(20) == 0 {
			c.at = c.at.Add(-time.Duration(dice.IntN(60)) * time.Second)
		}
		model.list = slices.DeleteFunc(model.list, func(m *modelMessage) bool { return c.at.Sub(m.Created) > TTL })
		switch dice.IntN(6) {
		case 0, 1:
			m := Message{Sender: agents[dice.IntN(4)], Recipient: someone(), Subject: fmt.Sprint(step)}
			if dice.IntN(3) == 0 {
				m.Recipient = Everyone
			}
			sent, err := v.Send(t.Context(), m)
			must(t, err)
			model.list = append(model.list, &modelMessage{sent, map[string]time.Time{}, map[string]time.Time{}})
		case 2, 3:
			q := Query{Agent: someone(), All: dice.IntN(4) == 0, Peek: dice.IntN(4) == 0, Limit: 1 + dice.IntN(5)}
			if dice.IntN(3) == 0 {
				q.From = someone()
			}
			got, want := fetch(t, v, q), model.fetch(q, c.at)
			if subjects(got) != subjects(want) {
				t.Fatalf("step %d, %+v: got %q, want %q", step, q, subjects(got), subjects(want))
			}
			for i := range got {
				if !got[i].ReadAt.Equal(want[i].ReadAt) || !got[i].AckedAt.Equal(want[i].AckedAt) {
					t.Fatalf("step %d, %+v: got %+v, want %+v", step, q, got[i], want[i])
				}
			}
		case 4:
			if len(model.list) == 0 {
				continue
			}
			m, agent := model.list[dice.IntN(len(model.list))], someone()
			must(t, second(v.Ack(t.Context(), agent, m.ID, false)))
			if !m.Broadcast() {
				agent = m.Recipient
			}
			if m.acked[agent].IsZero() {
				m.acked[agent] = c.at
			}
		case 5:
			got, err := v.Status(t.Context(), "", "")
			must(t, err)
			if want := model.status(); !slices.Equal(got, want) {
				t.Fatalf("step %d: status %+v, want %+v", step, got, want)
			}
		}
	}
	c.at = c.at.Add(2 * TTL)
	must(t, second(v.Cleanup(t.Context(), false)))
	onlyTheNumberRemains(t, v)
	must(t, v.Check(t.Context()))
}

func TestAVaultDoesNotNameAgents(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, vault.Keys{Agent: k.Agent}, nil)
	m := post(t, v, "project:sender", "project:recipient", "subject")
	post(t, v, "project:sender", Everyone, "subject")
	fetch(t, v, Query{Agent: "project:recipient", Limit: 1})
	must(t, second(v.Ack(t.Context(), "project:recipient", m.ID, false)))
	all := vaulttest.Content(t, path)
	if len(all) == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	for _, word := range []string{"project:sender", "project:recipient", "subject"} {
		if bytes.Contains(all, []byte(word)) {
			t.Errorf("%q lies in the vault", word)
		}
	}
}
