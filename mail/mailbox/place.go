package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
)

// beforeRoles is called before the write that learnRoles goes into: what a LIST may ask for
// has to be known by then.
func (x *imapBox) beforeRoles(s *imap.Session) {
	if !x.pool.own.Fresh(x.m.o.Now()) {
		s.Capabilities()
	}
}

// learnRoles starts a LIST in the write of other commands, unless the roles of the folders
// are known from a while ago; learned takes its answer. A server that refuses to list them
// has none.
func (x *imapBox) learnRoles(s *imap.Session) (learned func() error) {
	if x.pool.own.Fresh(x.m.o.Now()) {
		return func() error { return nil }
	}
	listed := x.startList(s, FolderQuery{Pattern: "*", Limit: maxFoldersForRole})
	return func() error {
		list := &FolderList{}
		_, err := listed(list)
		if err == nil || imap.Refused(err) {
			x.pool.own.Note(list.Folders, x.m.o.Now())
			err = nil
		}
		return err
	}
}

// notThere refuses a change that a folder does not take.
func (x *access) notThere(folder, message string, advice mail.Advice) *mail.Error {
	e := x.Failure(mail.KindReadOnly, "", message, advice).About(folder)
	e.Reason = "folder"
	return e
}

// mayTouch refuses to change messages of a folder that is not the user's own: others may read
// what is written there, flags too.
func (x *imapBox) mayTouch(spaces imap.Namespaces, folder string) error {
	if spaces.Own(folder) || x.Policy.AllowsFolder(folder) {
		return nil
	}
	return x.notThere(folder, fmt.Sprintf("Folder %q is shared or somebody else's, so nothing is changed in it.", folder), mail.AdviceAllowFolder)
}

// mayPut is mayTouch for a folder that messages would be put into, whose role is known. What
// is sent stands in Sent, and drafts in Drafts, so that a person can rely on that.
func (x *imapBox) mayPut(spaces imap.Namespaces, folder string) error {
	if err := x.mayTouch(spaces, folder); err != nil {
		return err
	}
	own, key := &x.pool.own, mail.FolderKey(folder) // a person takes a usual name for the role, whatever the server marks
	switch last := path.Base(strings.NewReplacer(".", "/", `\`, "/").Replace(folder)); {
	case own.Is(folder, "sent"), folders.Usual(key, "sent"):
		return x.notThere(folder, "Only what is sent is put into the folder for sent mail.", mail.AdviceOtherFolder)
	case own.Is(folder, "drafts"), folders.Usual(key, "drafts"):
		return x.notThere(folder, "Only what is written as a draft is put into the folder for drafts.", mail.AdviceOtherFolder)
	case strings.EqualFold(last, "outbox") && !x.Policy.AllowsFolder(folder):
		return x.notThere(folder, fmt.Sprintf("A server may send what is put into folder %q, so nothing is put there.", folder), mail.AdviceAllowFolder)
	}
	return nil
}

// mayLeave refuses to file drafts anywhere but in the trash, where they still are drafts:
// among other messages they would look received, or sent; and there only the caller's own. An
// empty folder is one of another account.
func (b *batch) mayLeave(ctx context.Context, l *located, uids []uint32, folder string) error {
	own := &b.pool.own
	draft := own.Is(b.folder, "drafts") || slices.ContainsFunc(uids, func(u uint32) bool { return fetch.HasFlag(l.found[u].Flags, fetch.FlagDraft) })
	switch {
	case !draft:
		return nil
	case folder != "" && own.Is(folder, "trash"):
		return b.mayDrop(ctx, l, uids)
	}
	return b.notThere(b.folder, "A draft can be moved to the trash, and nowhere else.", mail.AdviceFileDraft)
}

// mayDrop refuses to throw away drafts that are not the caller's own.
func (b *batch) mayDrop(ctx context.Context, l *located, uids []uint32) error {
	var refs []mail.Ref
	for _, u := range uids {
		refs = append(refs, b.ref(l, u))
	}
	all, err := b.m.draftOrigins(ctx, refs)
	if err == nil && slices.ContainsFunc(all, func(o mail.DraftOrigin) bool { return !o.Own }) {
		err = b.notThere(b.folder, "An agent throws away the drafts that it wrote, and no others.", mail.AdviceOthersDraft)
	}
	return err
}

// draftOrigins is mail.DraftStore.Drafts.
func (m *Client) draftOrigins(ctx context.Context, refs []mail.Ref) ([]mail.DraftOrigin, error) {
	if m.o.Drafts == nil {
		return slices.Repeat([]mail.DraftOrigin{{Own: true}}, len(refs)), nil
	}
	return m.o.Drafts.Drafts(ctx, refs)
}

// noteDrafts says of the drafts of some summaries which an agent wrote.
func (m *Client) noteDrafts(ctx context.Context, all []*Summary) error {
	all = slices.DeleteFunc(all, func(s *Summary) bool {
		return s.Ref.UIDValidity == 0 || !fetch.HasFlag(s.Flags, fetch.FlagDraft)
	})
	if len(all) == 0 || m.o.Drafts == nil {
		return nil
	}
	var refs []mail.Ref
	for _, s := range all {
		refs = append(refs, s.Ref)
	}
	ctx, done := afterwards(ctx)
	defer done()
	origins, err := m.o.Drafts.Drafts(ctx, refs)
	for i := range origins {
		all[i].ByAgent = origins[i].ByAgent
	}
	return err
}

// mayFile is all that is asked before messages are put into another folder of the account.
func (b *batch) mayFile(ctx context.Context, s *imap.Session, l *located, uids []uint32, folder string) error {
	if err := b.mayPut(l.spaces, folder); err != nil {
		return err
	}
	if err := b.mayLeave(ctx, l, uids, folder); err != nil {
		return err
	}
	return b.mayTell(s, l, uids, folder)
}

// mayTake is mayPut for messages that come from another account.
func (x *imapBox) mayTake(ctx context.Context, folder string) error {
	err := x.pool.Lend(ctx, "", func(_ context.Context, s *imap.Session) error {
		var telling *imap.Pending[imap.Namespaces]
		var learned func() error
		x.beforeRoles(s)
		s.Together(func() { telling, learned = s.Namespaces(), x.learnRoles(s) })
		spaces, err := telling.Wait()
		if err = cmp.Or(err, learned()); err != nil {
			return err
		}
		return x.mayPut(spaces, folder)
	})
	return x.wrap(ctx, err)
}

// mayTell refuses to put codes and links that are masked here where others read them.
func (b *batch) mayTell(s *imap.Session, l *located, uids []uint32, folder string) error {
	if l.spaces.Own(folder) || !b.Policy.MasksCodes() {
		return nil
	}
	var all []*fetch.Message
	for _, u := range uids {
		all = append(all, l.found[u])
	}
	texts, err := b.ReadTexts(s, all, false)
	for _, r := range texts {
		if err == nil && (r.Err != nil || r.Masked.Any()) {
			err = cmp.Or(r.Err, b.Withheld("it is not put where others read it"))
		}
	}
	return err
}

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
