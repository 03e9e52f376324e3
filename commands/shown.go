package commands

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
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

// shownTo is what this process showed to one principal, by answer.FolderKey.
type shownTo struct {
	mu      sync.Mutex // held while the store is asked, too
	folders map[string]shownFolder
}

// shownFolder is what the store has too, but for UIDs: that it was shown in a full answer,
// such as that of a person's screen, where what is typed then is a UID of the folder as it
// is now.
type shownFolder struct {
	vault.ShownFolder
	uids bool
}

// onlyAccount stands among the folders for the only account, which ids need not name: another
// one is noticed as another folder of the same name is. Its Mailbox is the account's name.
const onlyAccount = ""

// shownTo is what a principal was shown. The caller locks it.
func (d *Deps) shownTo(principal string) *shownTo {
	m := &d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.to[principal]
	if t == nil {
		t = &shownTo{folders: map[string]shownFolder{}}
		if m.to == nil {
			m.to = map[string]*shownTo{}
		}
		m.to[principal] = t
	}
	return t
}

// recent reports whether what was shown before an instant may still be in use. The zero
// instant is never.
func recent(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) < shownMistrust }

// sameUIDs reports whether the UIDs of both mean the same messages.
func sameUIDs(a, b vault.ShownFolder) bool {
	return a.Mailbox == b.Mailbox && a.UIDValidity == b.UIDValidity
}

// shown notes that the caller is about to be shown these messages, of any folders and
// accounts, and returns what writes their ids. A command whose answer has ids or UIDs
// calls it once, for full answers too. Nothing fails because of it.
func (d *Deps) shown(ctx context.Context, call *discovery.Call, refs ...mail.Ref) *answer.IDs {
	w := &answer.IDs{Short: map[string]uint32{}}
	accounts, err := d.Store.Accounts(ctx)
	if err != nil {
		return w
	}
	now := d.now().UTC().Truncate(time.Second)
	shown := map[string]vault.ShownFolder{}
	for _, r := range refs {
		i := slices.IndexFunc(accounts, func(a mail.Account) bool { return a.Name == r.Account })
		if r.Protocol == mail.IMAP && r.UIDValidity != 0 && i >= 0 {
			shown[answer.FolderKey(r)] = vault.ShownFolder{Mailbox: accounts[i].Mailbox(), UIDValidity: r.UIDValidity, Time: now}
		}
	}
	if len(shown) == 0 {
		return w
	}
	if w.Account = len(accounts) != 1; !w.Account {
		shown[onlyAccount] = vault.ShownFolder{Mailbox: accounts[0].Name, Time: now}
	}
	t := d.shownTo(call.Principal)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.knows(shown, now) {
		if err := d.Store.UpdateShown(ctx, call.Principal, func(record *vault.Shown) bool { return t.note(record, shown, now) }); err != nil {
			return w // what is in memory from before is refused by the server, or by the store's record
		}
	}
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		f, ok := t.folders[key]
		changed := ok && recent(f.Changed, now)
		if ok && call.Full {
			f.uids = true
			t.folders[key] = f
		}
		switch account, folder, _ := strings.Cut(key, ":"); {
		case key == onlyAccount:
			w.Account = !ok || changed
		case changed:
			w.Issues = append(w.Issues, mail.Issue{Kind: mail.KindConflict, Stage: "examine",
				Message: fmt.Sprintf("Since %s the folder %s of %s is another one than before: ids shown earlier are void.", answer.Minute(f.Changed), folder, account)})
		case ok:
			w.Short[key] = f.UIDValidity
		}
	}
	return w
}

// knows reports whether this process has shown all of it before, not long ago.
func (t *shownTo) knows(shown map[string]vault.ShownFolder, now time.Time) bool {
	for key, s := range shown {
		if f, ok := t.folders[key]; !ok || !sameUIDs(f.ShownFolder, s) || now.Sub(f.Time) >= shownRenewed {
			return false
		}
	}
	return true
}

// note puts what is about to be shown into the record of the store and into memory. It
// reports whether it changed the record.
func (t *shownTo) note(record *vault.Shown, shown map[string]vault.ShownFolder, now time.Time) (changed bool) {
	for key, s := range shown {
		changed = t.put(record, key, s, now) || changed
	}
	maps.DeleteFunc(t.folders, func(key string, _ shownFolder) bool { return record.Folders[key] == vault.ShownFolder{} })
	for key := range shown {
		if f, ok := record.Folders[key]; ok && t.folders[key].ShownFolder != f {
			t.folders[key] = shownFolder{ShownFolder: f}
		}
	}
	return changed
}

// put writes what is shown into a record, unless that is full, and reports whether it did.
func (t *shownTo) put(record *vault.Shown, key string, s vault.ShownFolder, now time.Time) bool {
	old, known := record.Folders[key]
	own, shown := t.folders[key]
	if s.Changed = old.Changed; own.Changed.After(s.Changed) {
		s.Changed = own.Changed
	}
	switch {
	case known && !sameUIDs(old, s), shown && !sameUIDs(own.ShownFolder, s):
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
	record.Folders[key] = s
	return true
}

// resolve makes whole references of those that argument.ParseID read from short ids. It leaves long
// ones as they are, and zero ones. account is that of --account. A command resolves all its
// ids before it asks a server for anything, so that one that is refused stops all of it.
func (d *Deps) resolve(ctx context.Context, call *discovery.Call, account string, refs []mail.Ref) ([]mail.Ref, error) {
	refs = slices.Clone(refs)
	accounts := map[string]meant{} // by the account that an id names
	for i, r := range refs {
		if account != "" && r.Account != "" && r.Account != account {
			return nil, &discovery.Fault{Code: discovery.ValidationError, Message: "The message id belongs to another account than --account.",
				Hint: "Leave --account out: the id names its account."}
		}
		if r.Protocol != mail.IMAP || refs[i].UIDValidity != 0 {
			continue
		}
		of, ok := accounts[r.Account]
		if !ok {
			var err error
			if of, err = d.accountMeant(ctx, call, r, account); err != nil {
				return nil, err
			}
			accounts[r.Account] = of
		}
		if err := d.resolveOne(ctx, call, of, &refs[i]); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// meant is the account of an id.
type meant struct {
	mail.Account
	bare bool // nothing names it: it is the only one
}

// accountMeant looks up the account of an id, and notes it for the audit entry.
func (d *Deps) accountMeant(ctx context.Context, call *discovery.Call, r mail.Ref, account string) (m meant, err error) {
	name, bare, err := d.accountOf(ctx, r, account)
	if err != nil {
		return m, err
	}
	call.Account = name
	a, err := d.Store.Account(ctx, name)
	return meant{a, bare}, err
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
		return "", false, argument.ErrNoAccountYet
	case len(accounts) == 1:
		return accounts[0].Name, true, nil
	}
	named := r
	named.Account = accounts[0].Name
	return "", false, &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("There are several accounts, and %s does not say whose message it is.", r.Short(false)),
		Hint:     fmt.Sprintf("Write the account before it, such as %s, as the lists show it; or name it with --account.", named.Short(true)),
		Examples: []string{discovery.JoinCommand([]string{"mail", "get", named.Short(true)})}}
}

func (d *Deps) resolveOne(ctx context.Context, call *discovery.Call, a meant, r *mail.Ref) error {
	bare := a.bare
	r.Account, call.Account = a.Name, a.Name
	if a.Protocol == mail.POP3 {
		return staleID(r, bare, fmt.Sprintf("Over POP3 there are no short ids, such as %s.", r.Short(!bare)))
	}
	t := d.shownTo(call.Principal)
	t.mu.Lock()
	defer t.mu.Unlock()
	key := answer.FolderKey(*r)
	f, known := t.folders[key]
	sole, soleKnown := t.folders[onlyAccount]
	if !known || bare && !soleKnown { // another process may have shown it
		s, err := d.Store.Shown(ctx, call.Principal)
		if err != nil {
			return err
		}
		if !known {
			f.ShownFolder, known = s.Folders[key]
		}
		if !soleKnown {
			sole.ShownFolder = s.Folders[onlyAccount]
		}
	}
	switch now := d.now(); {
	case !known || f.Mailbox != a.Account.Mailbox() || bare && sole.Mailbox != r.Account:
		return staleID(r, bare, fmt.Sprintf("Which message %s is cannot be told: its folder was not listed here yet.", r.Short(!bare)))
	case bare && recent(sole.Changed, now):
		return staleID(r, bare, fmt.Sprintf("Until %s an id without an account could be one of another account, which was the only one before.", answer.Minute(sole.Changed.Add(shownMistrust))))
	case recent(f.Changed, now) && !f.uids:
		refusal := staleID(r, bare, fmt.Sprintf("Since %s the folder of %s is another one than before, and ids shown earlier are void. Short ids of it are not taken until %s.",
			answer.Minute(f.Changed), r.Short(!bare), answer.Minute(f.Changed.Add(shownMistrust))))
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
	list := answer.Next("", tokens...).Arguments.Command
	return &discovery.Fault{Code: discovery.Conflict, Message: message, Hint: fmt.Sprintf("Run '%s' and copy the id it shows.", list), Examples: []string{list}}
}

// refsOf are the messages of a page.
func refsOf(list []mailbox.Summary) []mail.Ref {
	return answer.Each(list, func(s *mailbox.Summary) mail.Ref { return s.Ref })
}
