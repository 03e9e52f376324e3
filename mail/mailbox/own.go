package mailbox

import (
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
)

// allFolders returns the account's folders, as the server listed them a short while ago. The
// caller may not change them.
func (x *imapBox) allFolders(s *imap.Session) ([]Folder, error) {
	if list, complete := x.pool.own.Listed(x.m.o.Now()); complete {
		return list, nil
	}
	return x.listAll(s)
}

// listAll lists the account's folders, and notes them unless hidden ones are among them.
func (x *imapBox) listAll(s *imap.Session) ([]Folder, error) {
	var all FolderList
	_, err := x.listFolders(s, FolderQuery{Pattern: "*", Limit: maxFoldersForRole}, &all)
	if err == nil && !s.Revealed() {
		x.pool.own.Note(all.Folders, x.m.o.Now())
	}
	return all.Folders, err
}

// knownFor is folderFor, by the folders that the server listed a while ago.
func (x *imapBox) knownFor(s *imap.Session, role string) (string, error) {
	if o := &x.pool.own; o.Fresh(x.m.o.Now()) {
		list, _ := o.Listed(x.m.o.Now())
		return folders.FirstWithRole(list, role), nil
	}
	return x.folderFor(s, role)
}

// findOwn lists the account's folders where the policy hides messages and may be applied to
// a folder other than INBOX; an empty folder means several. A server that does not list
// them has no own folders.
func (x *imapBox) findOwn(s *imap.Session, folder string) error {
	if x.Policy.ShowsAll() || folder == inbox || x.pool.own.Fresh(x.m.o.Now()) {
		return nil
	}
	_, err := x.folderFor(s, "sent")
	if imap.Refused(err) {
		x.pool.own.Note(nil, x.m.o.Now())
		return nil
	}
	return err
}
