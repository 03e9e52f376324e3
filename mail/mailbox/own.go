package mailbox

import (
	"slices"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail/internal/imap"
)

// ownFolders are an account's folders for sent messages and for drafts: those with the role,
// else the one that File would use. INBOX is never among them. A nil or zero *ownFolders
// holds no folder. It is safe for concurrent use.
type ownFolders struct {
	mu    sync.Mutex
	names []string
	talk  []string  // the folders that conversations are in besides INBOX
	all   bool      // talk is the folder of all messages
	list  []Folder  // all of them
	asked time.Time // when the server listed the folders
}

// maxTalking bounds the folders that conversations are looked for in.
const maxTalking = 8

// ownFresh is how long a list of the folders counts.
const ownFresh = 10 * time.Minute

func (o *ownFolders) holds(folder string) bool {
	if o == nil || folder == inbox {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.names, folder)
}

func (o *ownFolders) note(folders []Folder, now time.Time) {
	sent, all := withRole(folders, "sent"), withRole(folders, "all")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names, o.list, o.asked, o.all = slices.Concat(sent, withRole(folders, "drafts")), folders, now, len(all) > 0
	if o.talk = slices.Concat(sent, withRole(folders, "archive")); o.all {
		o.talk = all
	}
	o.talk = o.talk[:min(len(o.talk), maxTalking)]
}

// talking returns the folders that conversations are in, besides INBOX: the one of all
// messages, else those for sent and archived mail.
func (o *ownFolders) talking() (folders []string, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.talk, o.all
}

// listFresh is how long a list of the folders counts as complete.
const listFresh = 30 * time.Second

// allFolders returns the account's folders, as the server listed them a short while ago. The
// caller may not change them.
func (x *imapBox) allFolders(s *imap.Session) ([]Folder, error) {
	o := &x.pool.own
	o.mu.Lock()
	list, asked := o.list, o.asked
	o.mu.Unlock()
	if !asked.IsZero() && x.m.o.Now().Sub(asked) < listFresh {
		return list, nil
	}
	return x.listAll(s)
}

// listAll lists the account's folders, and notes them unless hidden ones are among them.
func (x *imapBox) listAll(s *imap.Session) ([]Folder, error) {
	var all FolderList
	_, err := x.listFolders(s, FolderQuery{Pattern: "*", Limit: maxFoldersForRole}, &all)
	if err == nil && !s.Revealed() {
		x.pool.own.note(all.Folders, x.m.o.Now())
	}
	return all.Folders, err
}

// knownFor is folderFor, by the folders that the server listed a while ago.
func (x *imapBox) knownFor(s *imap.Session, role string) (string, error) {
	if o := &x.pool.own; o.known(x.m.o.Now()) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return firstWithRole(o.list, role), nil
	}
	return x.folderFor(s, role)
}

func (o *ownFolders) known(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.asked.IsZero() && now.Sub(o.asked) < ownFresh
}

// findOwn lists the account's folders where the policy hides messages and may be applied to
// a folder other than INBOX; an empty folder means several. A server that does not list
// them has no own folders.
func (x *imapBox) findOwn(s *imap.Session, folder string) error {
	if x.Policy.ShowsAll() || folder == inbox || x.pool.own.known(x.m.o.Now()) {
		return nil
	}
	_, err := x.folderFor(s, "sent")
	if imap.Refused(err) {
		x.pool.own.note(nil, x.m.o.Now())
		return nil
	}
	return err
}
