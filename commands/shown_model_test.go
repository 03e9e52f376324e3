package commands

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/vault"
)

// shownFolders have names that are easily mistaken for something else.
var shownFolders = []string{"INBOX", "Sent", "50", "50/7", "a b", "100%", "x%20y", "x y", "c:d", "home:Sent", "Projects/Été", `q"u'o`, "-x", "a,b", `back\slash`}

// shownModel is mail that changes under several processes of one vault. No two messages in
// it have the same subject.
type shownModel struct {
	t         *testing.T
	random    *rand.Rand
	server    mailtest.Endpoint
	admin     map[string]*imapclient.Client // of each user of the server
	user      map[string]string             // of each account
	path      string
	keys      vault.Keys
	now       time.Time
	vault     *vault.Vault // the administrator's
	processes []*shownProcess
	count     int // of messages, users and folders so far

	shown                  []shownID
	reached, refused, long int // short ids that reached their message, those that did not, and long ids that were used
}

// shownID is an id that a principal was shown, and the message it was shown for.
type shownID struct {
	id, principal, subject string
	account, user          string
	at                     time.Time
}

type shownProcess struct {
	deps  *Deps
	boxes *mailbox.Client
	store *fakeFailingStore
}

// fakeFailingStore is a vault that can fail to write down what was shown, before it is written
// or after.
type fakeFailingStore struct {
	*vault.Vault
	before, after bool
}

var errFailing = errors.New("the store fails")

func (s *fakeFailingStore) AllSettings(ctx context.Context) ([]vault.Setting, error) {
	return s.Settings(ctx)
}

func (s *fakeFailingStore) UpdateShown(ctx context.Context, principal string, change func(*vault.Shown) bool) error {
	if s.before {
		return errFailing
	}
	err := s.Vault.UpdateShown(ctx, principal, change)
	if s.after {
		err = errFailing
	}
	return err
}

func newShownModel(t *testing.T, seed uint64) *shownModel {
	w := &shownModel{t: t, random: rand.New(rand.NewPCG(seed, 0)), server: mailtest.InMemory(t), admin: map[string]*imapclient.Client{}, user: map[string]string{},
		path: filepath.Join(t.TempDir(), "vault.db"), now: time.Date(2026, 3, 9, 8, 0, 0, 0, time.UTC)}
	for _, k := range []*mail.Secret{&w.keys.Admin, &w.keys.Agent} {
		key, err := vault.NewKey()
		w.must(err)
		*k = mail.NewSecret([]byte(key))
	}
	_, err := vault.Init(t.Context(), w.path, w.keys)
	w.must(err)
	w.vault = w.open()
	w.add("work")
	w.processes = []*shownProcess{w.process(), w.process()}
	return w
}

func (w *shownModel) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *shownModel) open() *vault.Vault {
	v, err := vault.Open(w.t.Context(), w.path, w.keys, &vault.Options{Now: func() time.Time { return w.now }})
	w.must(err)
	return v
}

// process starts one, which remembers nothing.
func (w *shownModel) process() *shownProcess {
	p := &shownProcess{store: &fakeFailingStore{Vault: w.open()}}
	p.boxes = mailbox.New(mailbox.Options{Directory: p.store, Seen: p.store})
	w.t.Cleanup(func() { _ = p.boxes.Close() })
	p.deps = &Deps{Store: p.store, Mailboxes: p.boxes, Now: func() time.Time { return w.now }}
	return p
}

func (w *shownModel) next() int { w.count++; return w.count }

// newUser is a user of the server whose folders have the UIDVALIDITYs of every other user's.
func (w *shownModel) newUser() string {
	user := fmt.Sprintf("user%d", w.next())
	w.admin[user] = w.server.Admin(w.t, user)
	w.fill(user, "INBOX")
	for _, f := range shownFolders[1:] {
		w.must(w.admin[user].Create(f, nil).Wait())
		w.fill(user, f)
	}
	return user
}

func (w *shownModel) fill(user, folder string) {
	box := &mailtest.Box{T: w.t, Admin: w.admin[user]}
	for range 1 + w.random.IntN(3) {
		box.Add(folder, mailtest.Letter{Subject: fmt.Sprintf("m%d", w.next())})
	}
}

func (w *shownModel) add(name string) {
	if w.user[name] == "" || w.random.IntN(2) == 0 {
		w.user[name] = w.newUser()
	}
	a := mailtest.Settings(w.server.Host, w.server.Port, w.user[name])
	a.Name, a.Mode = name, mail.ReadWrite
	w.must(w.vault.AddAccount(w.t.Context(), a, mail.NewSecret([]byte(servertest.Password))))
}

// pick is one of some things.
func pick[T any](w *shownModel, list []T) T { return list[w.random.IntN(len(list))] }

func (w *shownModel) accounts() (names []string) {
	accounts, err := w.vault.Accounts(w.t.Context())
	w.must(err)
	for _, a := range accounts {
		names = append(names, a.Name)
	}
	return names
}

// step is one thing that happens, drawn by chance.
func (w *shownModel) step() {
	ctx, p := w.t.Context(), pick(w, w.processes)
	account, folder := pick(w, w.accounts()), pick(w, shownFolders[:3+w.random.IntN(len(shownFolders)-2)])
	user := w.admin[w.user[account]]
	switch n := w.random.IntN(100); {
	case n < 32 || len(w.recent()) == 0:
		w.list(p, account, folder, pick(w, []string{"agent", "agent", "other"}))
	case n < 69:
		w.use(p, pick(w, w.recent()))
	case n < 78:
		w.batch(p)
	case n < 82 && folder != "INBOX": // deleted and made again
		w.must(user.Delete(folder).Wait())
		w.must(user.Create(folder, nil).Wait())
		w.fill(w.user[account], folder)
	case n < 85 && folder != "INBOX": // renamed and made again
		w.must(user.Rename(folder, fmt.Sprintf("old %d", w.next()), nil).Wait())
		w.must(user.Create(folder, nil).Wait())
		w.fill(w.user[account], folder)
	case n < 87: // two folders change places
		a, b, aside := "Sent", "x y", fmt.Sprintf("aside %d", w.next())
		for _, r := range [][2]string{{a, aside}, {b, a}, {aside, b}} {
			w.must(user.Rename(r[0], r[1], nil).Wait())
		}
	case n < 88: // the account is edited to another user
		w.user[account] = w.newUser()
		w.must(w.vault.UpdateAccount(ctx, account, func(a *mail.Account) error { a.Username = w.user[account]; return nil }, nil))
	case n < 90: // an account comes or goes
		if names := w.accounts(); len(names) == 1 {
			w.add(map[string]string{"work": "home", "home": "work"}[names[0]])
		} else {
			w.must(w.vault.RemoveAccount(ctx, account))
		}
	case n < 91: // removed and made again
		w.must(w.vault.RemoveAccount(ctx, account))
		w.add(account)
	case n < 93:
		w.must(w.vault.SetSetting(ctx, "default_account", account))
	case n < 97: // killed and started again
		_ = p.boxes.Close()
		*p = *w.process()
	default:
		w.now = w.now.Add(time.Duration(w.random.IntN(12)) * time.Hour)
	}
}

// recent are the ids that were shown within the time for which they may not mislead. A long id does not say which user the account
// had (001 section 3), so it is left out when that changes.
func (w *shownModel) recent() []shownID {
	w.shown = slices.DeleteFunc(w.shown, func(s shownID) bool {
		return w.now.Sub(s.at) >= shownMistrust || strings.HasPrefix(s.id, "imap:") && s.user != w.user[s.account]
	})
	return w.shown
}

// list shows a folder. Sometimes the store fails, and sometimes the process is killed
// before anybody sees the answer.
func (w *shownModel) list(p *shownProcess, account, folder, principal string) {
	ctx := w.t.Context()
	page, err := p.boxes.List(ctx, account, mailbox.ListQuery{Folder: folder, Limit: 5})
	w.must(err)
	p.store.before, p.store.after = w.random.IntN(20) == 0, w.random.IntN(20) == 0
	call := &discovery.Call{Caller: discovery.Caller{Principal: principal}}
	ids := p.deps.shown(ctx, call, refsOf(page.Messages)...)
	p.store.before, p.store.after = false, false
	if w.random.IntN(20) == 0 {
		_ = p.boxes.Close()
		*p = *w.process()
		return
	}
	for _, m := range page.Messages {
		s := shownID{ids.Of(m.Ref), principal, m.Subject, account, w.user[account], w.now}
		if several := len(w.accounts()) > 1; several && !strings.Contains(s.id, account+":") {
			w.t.Errorf("with several accounts %q names none", s.id)
		}
		w.shown = append(w.shown, s)
		if got, err := w.read(p, s); err != nil || got != s.subject {
			w.t.Errorf("%q was shown for %s and is %s (%v) at once", s.id, s.subject, got, err)
		}
	}
}

func (w *shownModel) read(p *shownProcess, s shownID) (subject string, err error) {
	a := messageArgs{ID: s.id}
	if err := a.Validate(); err != nil {
		return "", err
	}
	call := &discovery.Call{Caller: discovery.Caller{Principal: s.principal}}
	ref, err := p.deps.message(w.t.Context(), call, &a)
	if err != nil {
		return "", err
	}
	m, err := p.boxes.Get(w.t.Context(), ref, mailbox.GetQuery{BodyChars: 100})
	if err != nil {
		return "", err
	}
	return m.Subject, nil
}

// use reads a message by an id that was shown a while ago.
func (w *shownModel) use(p *shownProcess, s shownID) {
	subject, err := w.read(p, s)
	w.judge(s, err)
	if err == nil && subject != s.subject {
		w.t.Errorf("%q was shown for %s %s ago, and reads %s", s.id, s.subject, w.now.Sub(s.at), subject)
	}
}

// judge counts, and makes sure that what is refused is refused as it should be.
func (w *shownModel) judge(s shownID, err error) {
	w.t.Helper()
	if strings.HasPrefix(s.id, "imap:") {
		w.long++
	} else if err == nil {
		w.reached++
	} else {
		w.refused++
	}
	if err == nil {
		return
	}
	if f := answer.Faults(err); f == nil || f.Code != discovery.Conflict && f.Code != discovery.NotFound && f.Code != discovery.ValidationError {
		w.t.Errorf("%q: %v", s.id, err)
	}
}

// batch flags several messages, and looks which have the flag then.
func (w *shownModel) batch(p *shownProcess) {
	ctx, flag := w.t.Context(), fmt.Sprintf("k%d", w.next())
	first := pick(w, w.recent())
	meant, a := []string{first.subject}, messagesArgs{IDs: []string{first.id}}
	for _, s := range w.recent() {
		folder := func(id string) string { return strings.TrimRight(id, "0123456789") }
		if s.principal == first.principal && (folder(s.id) == folder(first.id) && w.random.IntN(2) == 0 || w.random.IntN(200) == 0) {
			a.IDs, meant = append(a.IDs, s.id), append(meant, s.subject)
		}
	}
	w.random.Shuffle(len(a.IDs), func(i, j int) { a.IDs[i], a.IDs[j] = a.IDs[j], a.IDs[i] })
	err := a.Validate()
	var c *mailbox.Changed
	if err == nil {
		call := &discovery.Call{Caller: discovery.Caller{Principal: first.principal}}
		var refs []mail.Ref
		if refs, err = p.deps.messages(ctx, call, &a); err == nil {
			c, err = p.boxes.SetFlags(ctx, refs[0].Account, refs, []string{flag}, nil)
		}
	}
	w.judge(first, err)
	var flagged []string
	for _, account := range w.accounts() {
		flagged = append(flagged, w.flagged(w.user[account], imap.Flag(flag))...)
	}
	for _, subject := range flagged {
		if !slices.Contains(meant, subject) {
			w.t.Errorf("%q were shown for %q, and flagged %s", a.IDs, meant, subject)
		}
	}
	if err != nil && len(flagged) > 0 {
		w.t.Errorf("%q failed (%v) and changed %q", a.IDs, err, flagged)
	}
	if err == nil && len(c.Issues) == 0 && len(flagged) == 0 {
		w.t.Errorf("%q changed nothing: %+v", a.IDs, c)
	}
}

// flagged are the subjects of a user's messages that have a flag.
func (w *shownModel) flagged(user string, flag imap.Flag) (subjects []string) {
	c := w.admin[user]
	folders, err := c.List("", "*", nil).Collect()
	w.must(err)
	for _, f := range folders {
		selected, err := c.Select(f.Mailbox, &imap.SelectOptions{ReadOnly: true}).Wait()
		w.must(err)
		if selected.NumMessages == 0 {
			continue
		}
		messages, err := c.Fetch(imap.SeqSet{{Start: 1}}, &imap.FetchOptions{Flags: true, Envelope: true}).Collect()
		w.must(err)
		for _, m := range messages {
			if slices.Contains(m.Flags, flag) {
				subjects = append(subjects, m.Envelope.Subject)
			}
		}
	}
	w.must(c.Unselect().Wait())
	return subjects
}

// TestAShortIDReachesTheMessageItWasShownFor lets a world change at random: an id that was
// shown within the last day reaches that message or is refused, in every process.
func TestAShortIDReachesTheMessageItWasShownFor(t *testing.T) {
	t.Parallel()
	seeds, steps := testmain.Rounds(3, 12), 300
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newShownModel(t, uint64(seed))
			for i := 0; i < steps && !t.Failed(); i++ {
				w.step()
			}
			t.Logf("%d short ids reached their message, %d were refused; %d were long", w.reached, w.refused, w.long)
			if w.reached < steps/30 || w.refused < steps/30 || w.long < steps/30 {
				t.Error("the steps show little")
			}
		})
	}
}

// TestAProcessNoticesWhatItShowedLast has a process that went on showing a folder as it was,
// while another one saw long ago that it had been made anew.
func TestAProcessNoticesWhatItShowedLast(t *testing.T) {
	w := newShownModel(t, 1)
	call := &discovery.Call{Caller: discovery.Caller{Principal: "agent"}}
	show := func(p *shownProcess, uidValidity uint32, want string) {
		t.Helper()
		r := mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "Sent", UIDValidity: uidValidity, UID: 5}
		if got := p.deps.shown(t.Context(), call, r).Of(r); got != want {
			t.Errorf("it shows %q, want %q", got, want)
		}
	}
	one, two := w.processes[0], w.processes[1]
	show(one, 1, "Sent/5")
	show(two, 2, "imap:work:Sent:2:5")
	w.now = w.now.Add(20 * time.Hour)
	show(one, 1, "Sent/5")
	w.now = w.now.Add(5 * time.Hour)
	show(one, 2, "imap:work:Sent:2:5")
	w.now = w.now.Add(25 * time.Hour)
	show(one, 2, "Sent/5")
}

// TestAScreenShowsUIDs has a folder that was made anew shown in a full answer: what is typed
// in that process is what the screen shows, and in another one it is not known.
func TestAScreenShowsUIDs(t *testing.T) {
	w := newShownModel(t, 1)
	call := &discovery.Call{Caller: discovery.Caller{Principal: "person"}}
	screen, other := w.processes[0], w.processes[1]
	r := mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: "Sent", UIDValidity: 1, UID: 5}
	if ids := screen.deps.shown(t.Context(), call, r); len(ids.Issues) > 0 {
		t.Errorf("a first showing has %+v", ids.Issues)
	}
	r.UIDValidity, call.Full = 2, true
	for range 2 {
		ids := screen.deps.shown(t.Context(), call, r)
		if len(ids.Issues) != 1 || !strings.Contains(ids.Issues[0].Message, "Since 2026-03-09T08:00Z the folder Sent of work is another one") || ids.Of(r) != r.String() {
			t.Errorf("%q with %+v", ids.Of(r), ids.Issues)
		}
	}
	short, err := argument.ParseID("Sent/5")
	w.must(err)
	if refs, err := screen.deps.resolve(t.Context(), call, "", []mail.Ref{short}); err != nil || refs[0] != r {
		t.Errorf("it means %+v, %v", refs, err)
	}
	_, err = other.deps.resolve(t.Context(), call, "", []mail.Ref{short})
	if f := discovery.AsFault(err); f == nil || f.Code != discovery.Conflict || !strings.Contains(f.Message, "until 2026-03-10T08:00Z") || !strings.Contains(f.Hint, "--uid") {
		t.Errorf("another process says %+v", f)
	}
}

// TestTheRecordIsBounded shows more folders than it takes.
func TestTheRecordIsBounded(t *testing.T) {
	w := newShownModel(t, 1)
	p, call := w.processes[0], &discovery.Call{Caller: discovery.Caller{Principal: "agent"}}
	folder := func(n int) mail.Ref {
		return mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: fmt.Sprintf("f%d", n), UIDValidity: 1, UID: 5}
	}
	var all []mail.Ref
	for n := range maxShownFolders - 1 { // the only account has a place, too
		all = append(all, folder(n))
	}
	ids := p.deps.shown(t.Context(), call, all...)
	if got := ids.Of(all[maxShownFolders-2]); got != fmt.Sprintf("f%d/5", maxShownFolders-2) {
		t.Errorf("the last that fits is %q", got)
	}
	last := folder(maxShownFolders)
	if id := p.deps.shown(t.Context(), call, last).Of(last); id != last.String() {
		t.Errorf("one too many is %q", id)
	}
	w.now = w.now.Add(shownRenewed + shownMistrust)
	if p.deps.shown(t.Context(), call, last).Of(last) != last.Short(false) {
		t.Error("there is no room for a new folder, though the others were not shown for days")
	}
	record, err := p.store.Shown(t.Context(), "agent")
	w.must(err)
	if len(record.Folders) != maxShownFolders || len(p.deps.shownTo("agent").folders) > maxShownFolders {
		t.Errorf("%d folders are kept, and %d in memory", len(record.Folders), len(p.deps.shownTo("agent").folders))
	}
}

// TestShowingAtOnce has several calls of two processes show folders and use what they
// showed, all at the same time.
func TestShowingAtOnce(t *testing.T) {
	w := newShownModel(t, 1)
	var wg sync.WaitGroup
	for i := range 8 {
		p, call := w.processes[i%2], &discovery.Call{Caller: discovery.Caller{Principal: "agent"}, Full: i%3 == 0}
		wg.Go(func() {
			for n := range 20 {
				r := mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: fmt.Sprintf("f%d", (i+n)%10), UIDValidity: 7, UID: uint32(i + 1)}
				id := p.deps.shown(t.Context(), call, r).Of(r)
				short, err := argument.ParseID(id)
				if err != nil || id != r.Short(false) {
					t.Errorf("%q, %v", id, err)
				}
				if refs, err := p.deps.resolve(t.Context(), call, "", []mail.Ref{short}); err != nil || refs[0] != r {
					t.Errorf("%q is %+v, %v", id, refs, err)
				}
			}
		})
	}
	wg.Wait()
}
