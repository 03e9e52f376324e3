package vault

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

var outboxDay = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func outgoing(n int, change ...func(*mail.Outgoing)) mail.Outgoing {
	o := mail.Outgoing{ID: fmt.Sprintf("id-%04d", n), Account: "work", Principal: "agent", State: mail.OutboxQueued, Created: outboxDay, Changed: outboxDay,
		MessageID: "<one@example.org>", From: "ann@example.org", Recipients: []string{"bob@example.net"}, To: []mail.Address{{Name: "Bob", Addr: "bob@example.net"}},
		Subject: "quarterly figures", Digest: "d", Request: "r", Sent: mail.SentPending}
	for _, c := range change {
		c(&o)
	}
	return o
}

func mustAddOutgoing(t testing.TB, v *Vault, o mail.Outgoing, message []byte) mail.Outgoing {
	t.Helper()
	kept, added, err := v.AddOutgoing(t.Context(), o, message)
	if err != nil || !added {
		t.Fatalf("AddOutgoing = %v, %v", added, err)
	}
	return kept
}

func randomMessage(n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(n)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

func TestOutboxKeepsMessagesOfEveryLength(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	for i, n := range []int{0, 1, outboxChunk - 1, outboxChunk, outboxChunk + 1, 3 * outboxChunk, size(testmain.Rounds(3, 35), 1) << 20} {
		want := randomMessage(n)
		o := mustAddOutgoing(t, v, outgoing(i), want)
		got, err := v.OutgoingMessage(t.Context(), o.ID)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("a message of %d bytes came back with %d: %v", n, len(got), err)
		}
	}
	must(t, v.Check(t.Context()))
}

func TestOutboxEntryComesBackAsItWas(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	o := outgoing(1, func(o *mail.Outgoing) {
		o.Key, o.Attempt, o.Until = "k", "attempt", outboxDay.Add(time.Minute)
		o.BCC, o.Attachments = []mail.Address{{Name: "Eve, \"E\"", Addr: "eve@example.net"}}, []mail.FileName{{Name: "a.pdf", Type: "application/pdf", Size: 3}}
		o.Code, o.Reason, o.Temporary, o.Decided, o.Attempts, o.SMTPUTF8 = 451, "later", true, "ann", 2, true
	})
	mustAddOutgoing(t, v, o, []byte("m"))
	got, err := v.Outgoing(t.Context(), o.ID)
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", o) {
		t.Errorf("Outgoing = %+v, %v\nwant %+v", got, err, o)
	}
	for _, id := range []string{"id-0002", "", "../id", strings.Repeat("a", 65)} {
		wantErr(t, second(v.Outgoing(t.Context(), id)), mail.ErrNoOutgoing, "Outgoing(%q)", id)
		wantErr(t, second(v.OutgoingMessage(t.Context(), id)), mail.ErrNoOutgoing, "OutgoingMessage(%q)", id)
		wantErr(t, second(v.ChangeOutgoing(t.Context(), id, func(*mail.Outgoing) (bool, error) { t.Error("lent nothing"); return false, nil })), mail.ErrNoOutgoing, "ChangeOutgoing(%q)", id)
	}
}

func TestOutboxKeyBelongsToOneEntryOfAnAccount(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	keyed := func(o *mail.Outgoing) { o.Key = "digest" }
	first := mustAddOutgoing(t, v, outgoing(1, keyed), []byte("first"))
	kept, added, err := v.AddOutgoing(t.Context(), outgoing(2, keyed), []byte("second"))
	if err != nil || added || kept.ID != first.ID {
		t.Fatalf("a second entry of the key: %s, %v, %v", kept.ID, added, err)
	}
	wantErr(t, second(v.Outgoing(t.Context(), "id-0002")), mail.ErrNoOutgoing, "the second entry is there")
	mustAddOutgoing(t, v, outgoing(3, keyed, func(o *mail.Outgoing) { o.Account = "home" }), nil)
	for account, id := range map[string]string{"work": "id-0001", "home": "id-0003"} {
		if o, err := v.OutgoingByKey(t.Context(), account, "digest"); err != nil || o.ID != id {
			t.Errorf("OutgoingByKey(%s) = %s, %v", account, o.ID, err)
		}
	}
	for _, k := range []string{"other", ""} {
		wantErr(t, second(v.OutgoingByKey(t.Context(), "work", k)), mail.ErrNoOutgoing, "OutgoingByKey(%q)", k)
	}
}

func TestOutboxNeverOverwritesAnEntry(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	mustAddOutgoing(t, v, outgoing(1), []byte("first"))
	if _, added, err := v.AddOutgoing(t.Context(), outgoing(1), []byte("second")); added || !errors.Is(err, ErrExists) {
		t.Errorf("AddOutgoing = %v, %v", added, err)
	}
	if got, err := v.OutgoingMessage(t.Context(), "id-0001"); err != nil || string(got) != "first" {
		t.Errorf("the first message is %q, %v", got, err)
	}
	for _, bad := range []mail.Outgoing{outgoing(1, func(o *mail.Outgoing) { o.ID = "a/b" }), outgoing(1, func(o *mail.Outgoing) { o.ID = "" }),
		outgoing(2, func(o *mail.Outgoing) { o.Account = "a\x00b" })} {
		if _, _, err := v.AddOutgoing(t.Context(), bad, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("AddOutgoing(%q, %q): %v", bad.ID, bad.Account, err)
		}
	}
}

func TestOutboxChangeIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	mustAddOutgoing(t, v, outgoing(1, func(o *mail.Outgoing) { o.Key = "k" }), []byte("bytes"))
	refuse := errors.New("no")
	if _, err := v.ChangeOutgoing(t.Context(), "id-0001", func(o *mail.Outgoing) (bool, error) {
		o.State = mail.OutboxAccepted
		return true, refuse
	}); !errors.Is(err, refuse) {
		t.Errorf("ChangeOutgoing: %v", err)
	}
	if o, err := v.Outgoing(t.Context(), "id-0001"); err != nil || o.State != mail.OutboxQueued {
		t.Errorf("after a refused change: %s, %v", o.State, err)
	}
	must(t, second(v.OutgoingMessage(t.Context(), "id-0001")))
	o, err := v.ChangeOutgoing(t.Context(), "id-0001", func(o *mail.Outgoing) (bool, error) {
		o.State, o.ID, o.Key, o.Account = mail.OutboxAccepted, "id-0009", "other", "home"
		return true, nil
	})
	if err != nil || o.State != mail.OutboxAccepted || o.ID != "id-0001" || o.Key != "k" || o.Account != "work" {
		t.Errorf("ChangeOutgoing = %+v, %v", o, err)
	}
	wantErr(t, second(v.OutgoingMessage(t.Context(), "id-0001")), mail.ErrNoOutgoing, "dropped bytes")
	must(t, v.View(t.Context(), func(tx kv.Tx) error {
		return each(tx, outboxChunks, func(k, _ []byte) error { return fmt.Errorf("a piece is left: %x", k) })
	}))
}

func TestOutboxListPagesNewestFirst(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	for i := range 20 {
		mustAddOutgoing(t, v, outgoing(i, func(o *mail.Outgoing) {
			if i%2 == 1 {
				o.Account, o.State = "home", mail.OutboxWaiting
			}
			if i%5 == 0 {
				o.Principal = "other"
			}
		}), nil)
	}
	ids := func(q mail.OutboxQuery) (out []string, more bool) {
		t.Helper()
		entries, more, err := v.ListOutgoing(t.Context(), q)
		must(t, err)
		for _, e := range entries {
			out = append(out, strings.TrimPrefix(e.ID, "id-00"))
		}
		return out, more
	}
	for _, c := range testmain.Table[struct {
		What                               string
		Limit                              int
		Before, Account, Principal, States string
		Want                               string
		More                               bool
	}](t, "testdata/cases/outbox_list.txt") {
		q := mail.OutboxQuery{Limit: c.Limit, Before: c.Before, Account: c.Account, Principal: c.Principal}
		for _, s := range strings.Fields(c.States) {
			q.States = append(q.States, mail.OutboxState(s))
		}
		if got, more := ids(q); strings.Join(got, " ") != c.Want || more != c.More {
			t.Errorf("%s: %v, %v; want %s, %v", c.What, got, more, c.Want, c.More)
		}
	}
	var all []string
	before := ""
	for more := true; more; {
		var page []string
		page, more = ids(mail.OutboxQuery{Limit: 3, Before: before})
		all = append(all, page...)
		before = "id-00" + page[len(page)-1]
	}
	if !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) || len(all) != 20 {
		t.Errorf("pages: %v", all)
	}
}

func TestOutboxForgetsOnlyMessagesThatEndedLongAgo(t *testing.T) {
	t.Parallel()
	c := &fakeClock{at: outboxDay}
	_, v := newVault(t, &Options{Now: c.now})
	states := []mail.OutboxState{mail.OutboxWaiting, mail.OutboxQueued, mail.OutboxUnknown, mail.OutboxAccepted, mail.OutboxRefused, mail.OutboxCancelled, mail.OutboxRejected}
	for i, s := range states {
		mustAddOutgoing(t, v, outgoing(i, func(o *mail.Outgoing) { o.State, o.Key = s, fmt.Sprint("k", i) }), []byte("bytes"))
	}
	// This one was created long ago and ended yesterday.
	late := outgoing(len(states), func(o *mail.Outgoing) {
		o.State, o.Changed = mail.OutboxRefused, outboxDay.Add(mail.KeepOutgoing-24*time.Hour)
	})
	mustAddOutgoing(t, v, late, []byte("bytes"))
	here := func() (entries, messages string) {
		for i := range len(states) + 1 {
			id := fmt.Sprintf("id-%04d", i)
			if _, err := v.Outgoing(t.Context(), id); err == nil {
				entries += fmt.Sprint(i)
			} else if !errors.Is(err, mail.ErrNoOutgoing) {
				t.Error(err)
			}
			if _, err := v.OutgoingMessage(t.Context(), id); err == nil {
				messages += fmt.Sprint(i)
			} else if !errors.Is(err, mail.ErrNoOutgoing) {
				t.Error(err)
			}
		}
		return entries, messages
	}
	n := 100
	for _, s := range []struct {
		after             time.Duration
		entries, messages string
	}{
		{mail.KeepOutgoingMessage, "01234567", "01234567"},
		{mail.KeepOutgoingMessage + time.Second, "01234567", "0127"},
		{mail.KeepOutgoing, "01234567", "0127"},
		{mail.KeepOutgoing + time.Second, "0127", "0127"},
	} {
		c.at = outboxDay.Add(s.after)
		n++
		mustAddOutgoing(t, v, outgoing(n, func(o *mail.Outgoing) { o.Created, o.Changed = c.at, c.at }), nil)
		if entries, messages := here(); entries != s.entries || messages != s.messages {
			t.Errorf("after %s: entries %s, messages %s; want %s, %s", s.after, entries, messages, s.entries, s.messages)
		}
	}
	wantErr(t, second(v.OutgoingByKey(t.Context(), "work", "k3")), mail.ErrNoOutgoing, "the key of a forgotten entry")
	must(t, second(v.OutgoingByKey(t.Context(), "work", "k2")))
}

func TestOutboxDamageIsNoticed(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	mustAddOutgoing(t, v, outgoing(1), randomMessage(2*outboxChunk+5))
	mustAddOutgoing(t, v, outgoing(2), randomMessage(outboxChunk))
	whole := readRecords(t, v)
	without := func(n int) func(kv.Tx) error {
		return func(tx kv.Tx) error { return tx.Delete(statePrefix+outboxChunks, chunkKey("id-0001", n)) }
	}
	copied := func(bucket string, from, to []byte) func(kv.Tx) error {
		return func(tx kv.Tx) error { return rawCopy(tx, statePrefix+bucket, from, to) }
	}
	for name, damage := range map[string]func(kv.Tx) error{
		"a piece is missing":         without(1),
		"the last piece is missing":  without(2),
		"a piece stands twice":       copied(outboxChunks, chunkKey("id-0001", 0), chunkKey("id-0001", 1)),
		"a piece of another message": copied(outboxChunks, chunkKey("id-0002", 0), chunkKey("id-0001", 0)),
		"another message's length":   copied(outboxSizes, []byte("id-0002"), []byte("id-0001")),
	} {
		rawUpdate(t, v, damage)
		if m, err := v.OutgoingMessage(t.Context(), "id-0001"); !errors.Is(err, ErrDamaged) || m != nil {
			t.Errorf("%s: OutgoingMessage = %d bytes, %v", name, len(m), err)
		}
		whole.write(t, v)
	}
	must(t, second(v.OutgoingMessage(t.Context(), "id-0001")))
	// A key without its entry cannot be used again.
	keyed := func(o *mail.Outgoing) { o.Key = "digest" }
	mustAddOutgoing(t, v, outgoing(3, keyed), nil)
	rawUpdate(t, v, func(tx kv.Tx) error { return tx.Delete(statePrefix+outboxEntries, []byte("id-0003")) })
	if _, added, err := v.AddOutgoing(t.Context(), outgoing(4, keyed), nil); added || !errors.Is(err, ErrDamaged) {
		t.Errorf("AddOutgoing = %v, %v", added, err)
	}
	wantErr(t, second(v.OutgoingByKey(t.Context(), "work", "digest")), ErrDamaged, "OutgoingByKey")
}

func TestOutboxDamagedOldRecordDoesNotPreventSending(t *testing.T) {
	t.Parallel()
	c := &fakeClock{at: outboxDay}
	_, v := newVault(t, &Options{Now: c.now})
	mustAddOutgoing(t, v, outgoing(1), []byte("old"))
	rawUpdate(t, v, func(tx kv.Tx) error {
		return tx.Put(statePrefix+outboxEntries, []byte("id-0001"), []byte("garbage of some length, to be sure"))
	})
	c.at = outboxDay.Add(2 * mail.KeepOutgoing)
	mustAddOutgoing(t, v, outgoing(2), []byte("new"))
}

// Ended messages make room for a new one; waiting messages do not. What waits or could not be sent
// counts to its principal's share, so that nobody fills the outbox for others, and what ended does not.
func TestOutboxHasABound(t *testing.T) {
	t.Parallel()
	_, v := newVault(t, nil)
	state := func(state mail.OutboxState) func(*mail.Outgoing) {
		return func(o *mail.Outgoing) { o.State, o.Created, o.Changed = state, time.Now(), time.Now() }
	}
	for i := range 6 {
		mustAddOutgoing(t, v, outgoing(i, state([]mail.OutboxState{mail.OutboxRefused, mail.OutboxWaiting}[min(i/2, 1)])), []byte("0123456789"))
	}
	for i, c := range []struct {
		size, most int
		bytes      uint64
		left       int // messages that are kept; 0: there is no room
	}{{10, 7, 70, 6}, {10, 6, 70, 5}, {11, 6, 60, 4}, {10, 4, 1000, 0}, {21, 6, 60, 0}} {
		left := 0
		err := v.Update(t.Context(), func(tx kv.Tx) error {
			if err := roomFor(tx, v.now(), "", c.size, c.most, c.bytes); err != nil {
				return err
			}
			return each(tx, outboxSizes, func(_, _ []byte) error { left++; return nil })
		})
		if left != c.left || (c.left == 0) != errors.Is(err, mail.ErrOutboxFull) {
			t.Errorf("step %d: %d left, %v", i, left, err)
		}
	}
	if o, err := v.Outgoing(t.Context(), outgoing(0).ID); err != nil || o.State != mail.OutboxRefused {
		t.Errorf("what ended is not told any more: %+v, %v", o, err)
	}
	_, v = newVault(t, nil)
	for i := range 8 {
		mustAddOutgoing(t, v, outgoing(i, state([]mail.OutboxState{mail.OutboxWaiting, mail.OutboxRefused}[i%2])), []byte("0123456789"))
	}
	// Nobody decided, and nothing wrote that down.
	mustAddOutgoing(t, v, outgoing(8, state(mail.OutboxWaiting), func(o *mail.Outgoing) {
		o.Kind, o.Created = mail.OutboxDelete, time.Now().Add(-mail.DeletionWaits-time.Hour)
	}), []byte("0123456789"))
	for i, c := range []struct {
		principal  string
		size, most int
		bytes      uint64
		full       bool
	}{{"agent", 10, 16, 1000, true}, {"agent", 10, 20, 1000, false}, {"agent", 11, 100, 200, true}, {"agent", 10, 100, 200, false}, {"person", 11, 16, 200, false}} {
		err := v.View(t.Context(), func(tx kv.Tx) error { return roomFor(tx, v.now(), c.principal, c.size, c.most, c.bytes) })
		var full *ShareFull
		if errors.As(err, &full) != c.full || err != nil && (!c.full || full.Principal != c.principal || full.Count != c.most/4) {
			t.Errorf("share, step %d: %v", i, err)
		}
	}
}

// Only who has the administrator's key can make a code, and one is good for one entry as it is.
func TestApprovalCodesAreTheAdministrators(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	code, err := admin.ApprovalCode(t.Context(), "id-0001", "digest")
	must(t, err)
	if again, err := mustOpen(t, path, Keys{Admin: k.Admin}, nil).ApprovalCode(t.Context(), "id-0001", "digest"); err != nil || again != code || len(code) != 8 {
		t.Errorf("in another process it is %q, %v; was %q", again, err, code)
	}
	other, _ := newVault(t, nil)
	seen := map[string]bool{code: true}
	for _, of := range []struct {
		v          *Vault
		id, digest string
	}{{admin, "id-0002", "digest"}, {admin, "id-0001", "other"}, {admin, "id-0001d", "igest"}, {other, "id-0001", "digest"}} {
		c, err := of.v.ApprovalCode(t.Context(), of.id, of.digest)
		if must(t, err); seen[c] {
			t.Errorf("%s %s has a code that another has", of.id, of.digest)
		}
		seen[c] = true
	}
	for name, v := range map[string]*Vault{"the agent's key": mustOpen(t, path, Keys{Agent: k.Agent}, nil), "as an agent": mustOpen(t, path, k, &Options{AsAgent: true})} {
		if c, err := v.ApprovalCode(t.Context(), "id-0001", "digest"); !errors.Is(err, ErrAdminRequired) || c != "" {
			t.Errorf("%s: %q, %v", name, c, err)
		}
	}
}

// Two handles of one vault add replies that go unasked: with however many at once, five of an
// account do within the hour, and the others wait with the reason.
func TestFiveGoUnaskedWithinTheHour(t *testing.T) {
	t.Parallel()
	other, v := newVault(t, nil)
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	entry := func(i int, account string, at time.Time) mail.Outgoing {
		return mail.Outgoing{ID: fmt.Sprintf("%s-%s-%02d", at.Format("20060102150405"), account, i), Account: account, Principal: "agent", Created: at, Changed: at,
			State: mail.OutboxQueued, Attempt: "a", Until: at.Add(time.Minute), Attempts: 1, Digest: "d", Unasked: "d"}
	}
	for i := range mail.MaxUnasked { // too old to count, of another account, and asked about
		mustAddOutgoing(t, v, entry(i, "work", at.Add(-2*time.Hour)), nil)
		mustAddOutgoing(t, v, entry(i, "else", at), nil)
		asked := entry(50+i, "work", at)
		asked.Unasked = ""
		mustAddOutgoing(t, v, asked, nil)
	}
	var wg sync.WaitGroup
	var unasked, waiting atomic.Int32
	for i := range 12 {
		wg.Go(func() {
			kept, added, err := []*Vault{v, other}[i%2].AddOutgoing(t.Context(), entry(i, "work", at.Add(time.Duration(i)*time.Second)), []byte("m"))
			switch {
			case err != nil || !added:
				t.Errorf("%+v, %v", kept, err)
			case kept.Unasked == "d" && kept.State == mail.OutboxQueued && kept.Attempt == "a":
				unasked.Add(1)
			case kept.Unasked == "" && kept.State == mail.OutboxWaiting && kept.Attempt == "" && kept.Attempts == 0 && slices.Equal(kept.Asks, []mail.Ask{mail.AskOften}):
				waiting.Add(1)
			default:
				t.Errorf("%+v", kept)
			}
		})
	}
	wg.Wait()
	if unasked.Load() != mail.MaxUnasked || waiting.Load() != 12-mail.MaxUnasked {
		t.Errorf("%d went unasked, %d wait", unasked.Load(), waiting.Load())
	}
	if kept := mustAddOutgoing(t, v, entry(60, "work", at.Add(61*time.Minute)), nil); kept.Unasked == "" {
		t.Errorf("an hour later: %+v", kept)
	}
}
