package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/vault"
)

// principalJournal is a vault's journal for one principal, and for the owner with everybody's.
type principalJournal struct {
	*vault.Vault
	name string
}

const owner = "owner"

func (j principalJournal) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	c.Principal = j.name
	return j.Vault.BeginChange(ctx, c, unasked)
}

func (j principalJournal) ChangesMade(ctx context.Context, q mail.ChangeQuery) ([]mail.Change, error) {
	if j.name != owner {
		q.Principal = j.name
	}
	return j.Vault.ChangesMade(ctx, q)
}

func (j principalJournal) AmendChange(ctx context.Context, id string, amend func(*mail.Change) error) (mail.Change, error) {
	return j.Vault.AmendChange(ctx, id, func(c *mail.Change) error {
		if j.name != owner && c.Principal != j.name {
			return mail.ErrNoChange
		}
		return amend(c)
	})
}

// client gives a client of a mailbox for a principal.
func (j *journal) client(b *box, name string) *mailbox.Client {
	m := mailbox.New(mailbox.Options{Directory: b.Dir, Journal: principalJournal{j.Vault, name}})
	b.T.Cleanup(func() { _ = m.Close() })
	return m
}

// standing is a message as it stands in a mailbox.
type standing struct {
	id, flags, arrived string
}

// stands is all that stands in a folder, by UID.
func (b *box) stands(folder string) map[uint32]standing {
	b.T.Helper()
	data, err := b.Admin.Select(b.In(folder), nil).Wait()
	must(b.T, err)
	out := map[uint32]standing{}
	if data.NumMessages == 0 {
		return out
	}
	messages, err := b.Admin.Fetch(imap.UIDSet{{Start: 1, Stop: 0}}, &imap.FetchOptions{UID: true, Envelope: true, Flags: true, InternalDate: true}).Collect()
	must(b.T, err)
	for _, m := range messages {
		var flags []string
		for _, f := range m.Flags {
			if !strings.EqualFold(string(f), `\Recent`) {
				flags = append(flags, strings.ToLower(string(f)))
			}
		}
		slices.Sort(flags)
		out[uint32(m.UID)] = standing{m.Envelope.MessageID, strings.Join(flags, " "), m.InternalDate.UTC().Format(time.RFC3339)}
	}
	return out
}

// walked is a message of a walk: where it is, and where it has to be when all is taken back.
type walked struct {
	id, folder string
	uid        uint32
	flags      map[string]bool
	arrived    string

	home    string // empty of one that was made since
	homeUID uint32
	was     map[string]bool // flags
	touched map[string]int  // flags, by others: how often
}

// ours reports whether changes of ours have made something of it.
func (w *walked) ours() bool {
	if w.home == "" {
		return w.folder != "Trash" // where what is made is put
	}
	return w.folder != w.home || !sameFlags(w.flags, w.was)
}

func sameFlags(a, b map[string]bool) bool { return flagText(a) == flagText(b) }

func flagText(flags map[string]bool) string {
	var on []string
	for f, set := range flags {
		if set {
			on = append(on, f)
		}
	}
	slices.Sort(on)
	return strings.Join(on, " ")
}

type walk struct {
	*box
	*rand.Rand
	all   []*walked
	gone  map[mail.Ref]bool // where others took or changed what we had put there
	story []string
	made  []string // ids of changes
}

var (
	walkFolders = []string{"INBOX", "Work", "Archive", "Trash"}
	walkFlags   = []string{`\flagged`, `\seen`, `\answered`, "project"}
)

func (w *walk) say(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

func (w *walk) at(folder string, uid uint32) *walked {
	for _, m := range w.all {
		if m.folder == folder && m.uid == uid {
			return m
		}
	}
	return nil
}

// some are messages of one folder, none where it is empty.
func (w *walk) some() (folder string, some []*walked) {
	folder = walkFolders[w.IntN(len(walkFolders))]
	for _, m := range w.all {
		if m.folder == folder && !m.flags[`\draft`] && w.IntN(2) == 0 { // a draft is not moved out of the trash
			some = append(some, m)
		}
	}
	return folder, some
}

// plain is a folder's name in the walk.
func (w *walk) plain(folder string) string { return strings.TrimPrefix(folder, w.Root) }

// step makes one change of a principal's.
func (w *walk) step(ctx context.Context, c *mailbox.Client) error {
	folder, some := w.some()
	do := w.IntN(8)
	if do == 0 {
		id := fmt.Sprintf("draft.%d@example.org", len(w.all))
		source := fmt.Sprintf("Message-ID: <%s>\r\nFrom: ann@example.org\r\nSubject: draft\r\n\r\ntext\r\n", id)
		p, err := c.File(ctx, "mail draft", account, &mailbox.OwnMessage{Role: "drafts", Flags: []string{`\Draft`, `\Seen`}, Date: time.Now(), Source: []byte(source)})
		if err != nil {
			return err
		}
		w.say("draft %d", p.Ref.UID)
		w.all = append(w.all, &walked{id: id, folder: "Drafts", uid: p.Ref.UID, flags: map[string]bool{`\draft`: true, `\seen`: true}, touched: map[string]int{}})
		return nil
	}
	if do == 1 {
		q := mailbox.UndoQuery{Last: true}
		if len(w.made) > 0 && w.IntN(2) == 0 {
			q = mailbox.UndoQuery{ID: w.made[w.IntN(len(w.made))]}
		}
		u, err := c.Undo(ctx, q)
		if err != nil && !strings.Contains(err.Error(), "no such change") {
			return err
		}
		w.say("undo %+v: %v", q, u)
		w.undone(u)
		return nil
	}
	var refs []mail.Ref
	var uids []uint32
	for _, m := range some {
		refs, uids = append(refs, w.Ref(folder, m.uid)), append(uids, m.uid)
	}
	to := walkFolders[w.IntN(len(walkFolders))]
	switch {
	case len(refs) == 0:
		return nil
	case do < 4 && to != folder, do == 4 && folder != "Trash":
		of := mailbox.Batch{Op: "mail move", Account: account, Refs: refs, Action: mail.Action{Do: mail.DoMove, To: w.In(to)}}
		if do == 4 {
			to, of.Do, of.To = "Trash", mail.DoTrash, ""
		}
		got, err := c.Do(ctx, of)
		if err != nil {
			return err
		}
		w.say("%s %v from %s to %s", of.Do, uids, folder, to)
		w.made = append(w.made, got.Change)
		moving := map[uint32]*walked{}
		for _, m := range some {
			moving[m.uid] = m
		}
		for _, g := range got.Messages {
			m := moving[g.Ref.UID]
			m.folder, m.uid = to, g.New.UID
		}
	case do == 5 && to != folder:
		got, err := c.Copy(ctx, account, refs, "", w.In(to))
		if err != nil {
			return err
		}
		w.say("copy %v from %s to %s", uids, folder, to)
		w.made = append(w.made, got.Change)
		for _, g := range got.Messages {
			m := w.at(folder, g.Ref.UID)
			w.all = append(w.all, &walked{id: m.id, folder: to, uid: g.New.UID, flags: cloned(m.flags), arrived: m.arrived, touched: map[string]int{}})
		}
	case do > 5:
		add, remove := []string{walkFlags[w.IntN(4)]}, []string{walkFlags[w.IntN(4)]}
		if w.IntN(3) == 0 || add[0] == remove[0] {
			add, remove = []string{`\seen`}, nil
		}
		got, err := c.SetFlags(ctx, account, refs, add, remove)
		if err != nil {
			return err
		}
		w.say("flags %v of %s +%v -%v", uids, folder, add, remove)
		w.made = append(w.made, got.Change)
		for _, m := range some {
			m.flags[add[0]] = true
			for _, f := range remove {
				m.flags[f] = false
			}
		}
	}
	return nil
}

func cloned(flags map[string]bool) map[string]bool {
	out := map[string]bool{}
	for f, set := range flags {
		out[f] = set
	}
	return out
}

// undone applies what an undo says that it did.
func (w *walk) undone(u *mailbox.Undone) {
	if u == nil {
		return
	}
	moved := map[*walked]mail.Ref{}
	for _, r := range u.Restored {
		m := w.at(w.plain(r.From.Folder), r.From.UID)
		if m == nil {
			w.T.Errorf("%+v was taken back, and was not there", r)
			continue
		}
		for _, f := range r.Added {
			m.flags[strings.ToLower(f)] = true
		}
		for _, f := range r.Removed {
			m.flags[strings.ToLower(f)] = false
		}
		moved[m] = r.Ref
	}
	for m, to := range moved {
		m.folder, m.uid = w.plain(to.Folder), to.UID
	}
}

// other is a change by somebody else's mail program.
func (w *walk) other() {
	folder, some := w.some()
	if len(some) == 0 {
		return
	}
	m := some[w.IntN(len(some))]
	ref := w.Ref(folder, m.uid)
	set := imap.UIDSet{}
	set.AddNum(imap.UID(m.uid))
	_, err := w.Admin.Select(w.In(folder), nil).Wait()
	must(w.T, err)
	switch w.IntN(4) {
	case 0:
		to := walkFolders[w.IntN(len(walkFolders))]
		if to == folder {
			return
		}
		c, err := w.Admin.Copy(set, w.In(to)).Wait()
		must(w.T, err)
		w.Remove(folder, m.uid)
		w.say("others move %d from %s to %s", m.uid, folder, to)
		w.gone[ref] = w.gone[ref] || m.ours()
		m.folder, m.uid = to, uint32(c.DestUIDs[0].Start)
		m.home, m.homeUID, m.was, m.touched = to, m.uid, cloned(m.flags), map[string]int{}
	case 1:
		w.Remove(folder, m.uid)
		w.say("others delete %d of %s", m.uid, folder)
		w.gone[ref] = w.gone[ref] || m.ours()
		w.all = slices.DeleteFunc(w.all, func(o *walked) bool { return o == m })
	default:
		f := walkFlags[w.IntN(4)]
		set0 := !m.flags[f]
		op := imap.StoreFlagsAdd
		if !set0 {
			op = imap.StoreFlagsDel
		}
		must(w.T, w.Admin.Store(set, &imap.StoreFlags{Op: op, Silent: true, Flags: []imap.Flag{imap.Flag(f)}}, nil).Close())
		w.say("others turn %s of %d of %s", f, m.uid, folder)
		if _, known := w.gone[ref]; !known {
			w.gone[ref] = false // it may be told
		}
		m.flags[f], m.touched[f] = set0, m.touched[f]+1
		if m.was != nil {
			m.was[f] = set0
		}
	}
}

// matches compares the mailbox with the walk.
func (w *walk) matches(when string) {
	for _, folder := range append(slices.Clone(walkFolders), "Drafts") {
		there := w.stands(folder)
		for _, m := range w.all {
			if m.folder != folder {
				continue
			}
			got, ok := there[m.uid]
			if delete(there, m.uid); !ok || got.id != m.id || got.flags != flagText(m.flags) || m.arrived != "" && got.arrived != m.arrived {
				w.T.Errorf("%s: UID %d of %s is %+v %t, and should be %+v", when, m.uid, folder, got, ok, m)
			}
		}
		if len(there) > 0 {
			w.T.Errorf("%s: %s also has %v", when, folder, there)
		}
	}
}

// After any changes of three principals, with others' in between, all that was changed since a
// moment is as it was then, and what others changed since is as they left it, and told.
func TestAllSinceAMomentIsTakenBack(t *testing.T) {
	t.Parallel()
	_, full := mailtest.Shared(t, servertest.Config{})
	_, noMove := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"MOVE"}})
	noMove.Name = "dovecot without MOVE"
	on(t, []mailtest.Endpoint{full, noMove, mailtest.SharedCourier(t), mailtest.SharedCyrus(t), mailtest.InMemory(t)}, func(t *testing.T, e mailtest.Endpoint) {
		for range testmain.Rounds(3, 1000) {
			if seed := rand.Uint64(); !t.Run(fmt.Sprint(seed), func(t *testing.T) { walkBack(t, e, seed) }) {
				return
			}
		}
	})
}

func walkBack(t *testing.T, e mailtest.Endpoint, seed uint64) {
	ctx := t.Context()
	w := &walk{box: open(t, e, fmt.Sprint("walk", seed), writable), Rand: rand.New(rand.NewPCG(seed, 0)), gone: map[mail.Ref]bool{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(w.story, "\n"))
		}
	})
	w.folders("Work", "Archive", "Trash", "Drafts")
	j := newJournal(t)
	var clients []*mailbox.Client
	for _, name := range []string{"one", "two", "three", owner} {
		clients = append(clients, j.client(w.box, name))
	}
	for i := range 14 {
		folder := walkFolders[w.IntN(len(walkFolders))]
		m := &walked{id: fmt.Sprintf("%d.walk@example.org", i), folder: folder, home: folder, flags: map[string]bool{}, touched: map[string]int{}}
		came := time.Date(2026, 3, 1+w.IntN(20), 8, i, 0, 0, time.UTC)
		l := letter{Subject: fmt.Sprint("m", i), Extra: "Message-ID: <" + m.id + ">\r\n", Received: came}
		for _, f := range walkFlags {
			if w.IntN(3) == 0 {
				m.flags[f], l.Flags = true, append(l.Flags, imap.Flag(f))
			}
		}
		m.uid, m.was, m.arrived = w.Add(folder, l)[0], cloned(m.flags), came.Format(time.RFC3339)
		m.homeUID = m.uid
		w.all = append(w.all, m)
	}
	begun := time.Now()
	for range 18 {
		if w.IntN(4) == 0 {
			w.other()
		} else {
			if err := w.step(ctx, clients[w.IntN(3)]); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
		}
	}
	if w.matches("before"); t.Failed() {
		return
	}
	before := map[*walked]mail.Ref{}
	for _, m := range w.all {
		before[m] = w.Ref(m.folder, m.uid)
	}
	w.Dir.Edit(func(a *mail.Account) { a.Mode = mail.ReadOnly })
	u, err := clients[3].Undo(ctx, mailbox.UndoQuery{Since: begun, Owner: true})
	if err != nil {
		if mailtest.WantKind(t, err, mail.KindNotFound); len(w.made) > 0 {
			t.Fatal(err)
		}
		return
	}
	w.say("all: %+v", u)
	w.undone(u)
	w.matches("after")
	var came []*walked
	for _, m := range w.all {
		home, was := m.home, m.was
		if home == "" {
			home, was = "Trash", m.flags
		}
		differs := flagText(m.flags) != flagText(was) && !slices.ContainsFunc(walkFlags, func(f string) bool { return m.touched[f] > 1 })
		if m.folder != home || differs {
			t.Errorf("UID %d of %s, which was UID %d of %s with %q: %+v", m.uid, m.folder, m.homeUID, home, flagText(was), m)
		}
		if m.home != "" && before[m].UID != m.uid {
			came = append(came, m)
		}
	}
	slices.SortFunc(came, func(a, b *walked) int {
		return strings.Compare(a.folder+fmt.Sprintf("%09d", a.uid), b.folder+fmt.Sprintf("%09d", b.uid))
	})
	for i, m := range came {
		if i > 0 && came[i-1].folder == m.folder && came[i-1].homeUID > m.homeUID {
			t.Errorf("%s has UID %d before %d: they were %d and %d", m.folder, came[i-1].uid, m.uid, came[i-1].homeUID, m.homeUID)
		}
	}
	for _, l := range u.Left {
		l.Ref.UIDValidity, l.Ref.Folder = 0, w.In(w.plain(l.Ref.Folder))
		if _, others := w.gone[l.Ref]; !others || l.Why != mailbox.LeftGone && l.Why != mailbox.LeftChanged {
			t.Errorf("left without a reason: %+v", l)
		}
		delete(w.gone, l.Ref)
	}
	for ref, ours := range w.gone {
		if ours {
			t.Errorf("others changed %v since, which is not told", ref)
		}
	}
	if again, err := clients[3].Undo(ctx, mailbox.UndoQuery{Since: begun, Owner: true}); err != nil || len(again.Restored) != 0 {
		t.Errorf("taken back again: %+v %v", again, err)
	}
}
