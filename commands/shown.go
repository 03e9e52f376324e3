package commands

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
)

// A short id has no UIDVALIDITY: it means the message that the folder had under that UID
// when it was last shown to the same principal. What is here keeps it from ever reaching
// another message. A short id of which that is not certain is refused; and an answer that
// cannot note what it shows, or shows a folder that became another one within the last
// day, has long ids.
//
// What this process showed is in memory, so that nothing is read or written while nothing
// changes; the vault has it for other processes and later ones. A process believes itself
// first: if another one has seen a newer folder since, the server refuses the old
// UIDVALIDITY.

const (
	// shownMistrust is how long short ids of a folder are not trusted after it was shown with
	// another UIDVALIDITY than before: somebody may still use those from before.
	shownMistrust = 24 * time.Hour
	// shownRenewed is how much later a folder may have been shown than its record says.
	shownRenewed = 24 * time.Hour
	// maxShownFolders bounds a record. The folder that was not shown for the longest time
	// goes, but none that was shown within shownMistrust.
	maxShownFolders = 1000
)

// ShownStore keeps for each principal what its short ids mean. It is safe for concurrent
// use, by other processes too; *vault.Vault implements it.
type ShownStore interface {
	Shown(ctx context.Context, principal string) (vault.Shown, error)
	UpdateShown(ctx context.Context, principal string, change func(*vault.Shown) (changed bool)) error
}

// shownMemory is what this process showed to each principal.
type shownMemory struct {
	mu sync.Mutex
	to map[string]*shownTo
}

// shownTo is what this process showed to one principal, as the store has it too.
type shownTo struct {
	mu sync.Mutex // held while the store is asked, too
	vault.Shown

	// uids are the folders whose messages were shown in full answers, such as those of a
	// person's screen: what is typed then is a UID of the folder as it is now.
	uids map[string]vault.ShownFolder
}

// shownTo is what a principal was shown. The caller locks it.
func (d *Deps) shownTo(principal string) *shownTo {
	m := &d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.to[principal]
	if t == nil {
		t = &shownTo{Shown: vault.Shown{Folders: map[string]vault.ShownFolder{}}, uids: map[string]vault.ShownFolder{}}
		if m.to == nil {
			m.to = map[string]*shownTo{}
		}
		m.to[principal] = t
	}
	return t
}

func shownKey(r mail.Ref) string { return r.Account + ":" + r.Folder }

// mailboxOf names the mailbox that an account leads to: edited to another server or user
// it leads to another one.
func mailboxOf(a *mail.Account) string {
	return string(a.Protocol) + " " + a.Incoming().Address() + " " + a.Username
}

// recent reports whether what was shown before an instant may still be in use. The zero
// instant is never.
func recent(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) < shownMistrust }

// sameUIDs reports whether the UIDs of both mean the same messages.
func sameUIDs(a, b vault.ShownFolder) bool {
	return a.Mailbox == b.Mailbox && a.UIDValidity == b.UIDValidity
}

// idWriter writes the ids of an answer.
type idWriter struct {
	account bool              // short ids name their account
	short   map[string]uint32 // UIDVALIDITY of the folders that have short ids, by shownKey
	own     map[string]string // the address of each account
	Issues  []mail.Issue      // tell of folders whose ids from before are void
}

// of is the id of a message in a compact answer.
func (w *idWriter) of(r mail.Ref) string {
	if v, ok := w.short[shownKey(r)]; ok && v == r.UIDValidity {
		return r.Short(w.account)
	}
	return r.String()
}

// showing is a folder about to be shown.
type showing struct {
	key, account, folder string
	vault.ShownFolder
}

// shown notes that the caller is about to be shown these messages, of any folders and
// accounts, and returns what writes their ids. A command whose answer has ids or UIDs
// calls it once, for full answers too. Nothing fails because of it.
func (d *Deps) shown(ctx context.Context, call *discovery.Call, refs ...mail.Ref) *idWriter {
	w := &idWriter{short: map[string]uint32{}, own: map[string]string{}}
	accounts, err := d.Store.Accounts(ctx)
	if err != nil {
		return w
	}
	for _, a := range accounts {
		w.own[a.Name] = a.Email
	}
	now := d.now().UTC().Truncate(time.Second)
	var list []showing
	for _, r := range refs {
		i := slices.IndexFunc(accounts, func(a mail.Account) bool { return a.Name == r.Account })
		if r.Protocol != mail.IMAP || r.UIDValidity == 0 || i < 0 {
			continue
		}
		s := showing{shownKey(r), r.Account, r.Folder, vault.ShownFolder{Mailbox: mailboxOf(&accounts[i]), UIDValidity: r.UIDValidity, Time: now}}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return w
	}
	sole := ""
	if len(accounts) == 1 {
		sole = accounts[0].Name
	}
	t := d.shownTo(call.Principal)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.knows(list, sole, now) {
		if err := d.Store.UpdateShown(ctx, call.Principal, func(record *vault.Shown) bool { return t.note(record, list, sole, now) }); err != nil {
			for _, s := range list { // the store may know it, or not
				delete(t.Folders, s.key)
			}
			t.Sole = ""
			return w
		}
	}
	w.account = sole == "" || recent(t.SoleChanged, now)
	for _, s := range list {
		f, ok := t.Folders[s.key]
		if ok && call.Full {
			t.uids[s.key] = f
		}
		switch {
		case !ok:
		case recent(f.Changed, now):
			w.Issues = append(w.Issues, mail.Issue{Kind: mail.KindConflict, Stage: "examine",
				Message: fmt.Sprintf("Since %sZ the folder %s of %s is another one than before: ids shown earlier are void.", minute(f.Changed), s.folder, s.account)})
		default:
			w.short[s.key] = s.UIDValidity
		}
	}
	return w
}

// knows reports whether this process has shown all of it before, not long ago. sole is the
// account that ids need not name; empty where they have to.
func (t *shownTo) knows(list []showing, sole string, now time.Time) bool {
	for _, s := range list {
		if f, ok := t.Folders[s.key]; !ok || !sameUIDs(f, s.ShownFolder) || now.Sub(f.Time) >= shownRenewed {
			return false
		}
	}
	return sole == "" || sole == t.Sole
}

// note puts what is about to be shown into the record of the store and into memory. It
// reports whether it changed the record.
func (t *shownTo) note(record *vault.Shown, list []showing, sole string, now time.Time) (changed bool) {
	for _, s := range list {
		changed = t.put(record, s, now) || changed
	}
	if sole != "" && (record.Sole != sole || t.Sole != sole && t.Sole != "") {
		if record.Sole != "" || t.Sole != "" {
			record.SoleChanged = now
		}
		record.Sole, changed = sole, true
	}
	for key := range t.Folders {
		if _, kept := record.Folders[key]; !kept {
			delete(t.Folders, key)
			delete(t.uids, key)
		}
	}
	for _, s := range list {
		if f, ok := record.Folders[s.key]; ok {
			t.Folders[s.key] = f
		}
	}
	if sole != "" {
		t.Sole, t.SoleChanged = record.Sole, record.SoleChanged
	}
	return changed
}

// put writes a folder that is shown into a record, unless that is full, and reports whether
// it did.
func (t *shownTo) put(record *vault.Shown, s showing, now time.Time) bool {
	old, known := record.Folders[s.key]
	own, shown := t.Folders[s.key]
	if s.Changed = old.Changed; own.Changed.After(s.Changed) {
		s.Changed = own.Changed
	}
	switch {
	case known && !sameUIDs(old, s.ShownFolder), shown && !sameUIDs(own, s.ShownFolder):
		s.Changed = now
	case known && now.Sub(old.Time) < shownRenewed:
		return false
	case !known && len(record.Folders) >= maxShownFolders:
		oldest := slices.MinFunc(slices.Collect(maps.Keys(record.Folders)), func(a, b string) int { return record.Folders[a].Time.Compare(record.Folders[b].Time) })
		if now.Sub(record.Folders[oldest].Time) < shownRenewed+shownMistrust {
			return false
		}
		delete(record.Folders, oldest)
	}
	if record.Folders == nil {
		record.Folders = map[string]vault.ShownFolder{}
	}
	record.Folders[s.key] = s.ShownFolder
	return true
}

// resolve makes whole references of those that parseID read from short ids. It leaves long
// ones as they are, and zero ones. account is that of --account. A command resolves all its
// ids before it asks a server for anything, so that one that is refused stops all of it.
func (d *Deps) resolve(ctx context.Context, call *discovery.Call, account string, refs []mail.Ref) ([]mail.Ref, error) {
	refs = slices.Clone(refs)
	for i, r := range refs {
		if account != "" && r.Account != "" && r.Account != account {
			return nil, &discovery.Fault{Code: discovery.ValidationError, Message: "The message id belongs to another account than --account.",
				Hint: "Leave --account out: the id names its account."}
		}
		if r.Protocol != mail.IMAP || refs[i].UIDValidity != 0 {
			continue
		}
		if err := d.resolveOne(ctx, call, account, &refs[i]); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// accountOf is the account of an id: its own, else that of --account, else the only one that
// the caller may see, and then it is bare. The default account does not matter, so that
// another default leads no id elsewhere.
func (d *Deps) accountOf(ctx context.Context, r mail.Ref, account string) (name string, bare bool, err error) {
	if name = cmp.Or(r.Account, account); name != "" {
		return name, false, nil
	}
	accounts, err := d.Store.Accounts(ctx)
	switch {
	case err != nil:
		return "", false, err
	case len(accounts) == 0:
		return "", false, errNoAccountYet
	case len(accounts) == 1:
		return accounts[0].Name, true, nil
	}
	named := r
	named.Account = accounts[0].Name
	return "", false, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("There are several accounts, and %s does not say whose message it is.", r.Short(false)),
		Hint:     fmt.Sprintf("Write the account before it, such as %s, as the lists show it; or name it with --account.", named.Short(true)),
		Examples: []string{discovery.JoinCommand([]string{"mail", "get", named.Short(true)})}}
}

func (d *Deps) resolveOne(ctx context.Context, call *discovery.Call, account string, r *mail.Ref) error {
	name, bare, err := d.accountOf(ctx, *r, account)
	if err != nil {
		return err
	}
	r.Account = name
	call.Account = r.Account
	a, err := d.Store.Account(ctx, r.Account)
	if err != nil {
		return err
	}
	t := d.shownTo(call.Principal)
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.Folders[shownKey(*r)]
	sole, soleChanged := t.Sole, t.SoleChanged
	if !known || bare && sole == "" { // another process may have shown it
		s, err := d.Store.Shown(ctx, call.Principal)
		if err != nil {
			return err
		}
		if !known {
			f, known = s.Folders[shownKey(*r)]
		}
		if sole == "" {
			sole, soleChanged = s.Sole, s.SoleChanged
		}
	}
	switch now := d.now(); {
	case !known || f.Mailbox != mailboxOf(&a) || bare && sole != r.Account:
		return staleID(r, bare, fmt.Sprintf("Which message %s is cannot be told: its folder was not listed here yet.", r.Short(!bare)))
	case bare && recent(soleChanged, now):
		return staleID(r, bare, fmt.Sprintf("Until %sZ an id without an account could be one of another account, which was the only one before.", minute(soleChanged.Add(shownMistrust))))
	case recent(f.Changed, now) && t.uids[shownKey(*r)] != f:
		refusal := staleID(r, bare, fmt.Sprintf("Since %sZ the folder of %s is another one than before, and ids shown earlier are void. Short ids of it are not taken until %sZ.",
			minute(f.Changed), r.Short(!bare), minute(f.Changed.Add(shownMistrust))))
		refusal.Hint += " Where it shows UIDs alone, name the message with --folder and --uid."
		return refusal
	}
	r.UIDValidity = f.UIDValidity
	return nil
}

// staleID refuses a short id; a bare one needs no account.
func staleID(r *mail.Ref, bare bool, message string) *discovery.Fault {
	tokens := []string{"mail", "list"}
	if !bare {
		tokens = append(tokens, "--account", r.Account)
	}
	if r.Folder != "INBOX" {
		tokens = append(tokens, "--folder", r.Folder)
	}
	list := next("", tokens...).Arguments.Command
	return &discovery.Fault{Code: discovery.Conflict, Message: message, Hint: fmt.Sprintf("Run '%s' and copy the id it shows.", list), Examples: []string{list}}
}

// refsOf are the messages of a page.
func refsOf(list []mailbox.Summary) []mail.Ref {
	refs := make([]mail.Ref, len(list))
	for i := range list {
		refs[i] = list[i].Ref
	}
	return refs
}
