package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
	"github.com/postern-mail/postern/mail/mailbox/internal/search"
)

const defaultFolders = 200 // 001 section 3

// Folders lists the account's folders: INBOX, those with a role, and the others by name. A
// folder whose counts are not available is an Issue; it is listed without them. If the
// folder of q.After is gone, the error is KindConflict.
func (m *Client) Folders(ctx context.Context, account string, q FolderQuery) (*FolderList, error) {
	b, err := m.open(ctx, "mail folders", account)
	if err != nil {
		return nil, err
	}
	return b.folders(ctx, q)
}

func (x *imapBox) folders(ctx context.Context, q FolderQuery) (*FolderList, error) {
	if q.Pattern == "" {
		q.Pattern = "*"
	}
	if q.Limit <= 0 {
		q.Limit = defaultFolders
	}
	var list *FolderList
	err := x.lend(ctx, "", func(s *imap.Session) error {
		list = &FolderList{}
		statuses, err := x.listFolders(s, q, list)
		if err != nil || !q.Counts {
			return err
		}
		return x.count(s, list, statuses)
	})
	if err != nil {
		if list == nil || len(list.Folders) == 0 || !partial(ctx, err) {
			return nil, err
		}
		list.Issues = append(list.Issues, x.AsError(err).Issue()) // the folders are known, but not all counts
	}
	return list, nil
}

// listFolders fills in the folders, and returns the statuses that came with them.
func (x *imapBox) listFolders(s *imap.Session, q FolderQuery, list *FolderList) (map[string]*imap.Status, error) {
	return x.startList(s, q)(list)
}

// startList starts what listFolders needs of the server; listed is the rest of it.
func (x *imapBox) startList(s *imap.Session, q FolderQuery) (listed func(list *FolderList) (map[string]*imap.Status, error)) {
	s.Capabilities() // what a LIST may ask for has to be known by then
	var listing *imap.Listing
	var telling *imap.Pending[imap.Namespaces]
	s.Together(func() { telling, listing = s.Namespaces(), s.List(q.Pattern, q.Counts && x.Policy.ShowsAll()) })
	return func(list *FolderList) (map[string]*imap.Status, error) {
		data, err := listing.Wait()
		spaces, spacesErr := telling.Wait()
		if err = cmp.Or(err, spacesErr); err != nil {
			return nil, err
		}
		return x.takeList(q, list, data, listing.Skipped(), spaces, s.Revealed())
	}
}

// takeList fills in the folders that the server listed, hidden ones only where they are
// revealed.
func (x *imapBox) takeList(q FolderQuery, list *FolderList, data []imap.Listed, skipped int, spaces imap.Namespaces, revealed bool) (map[string]*imap.Status, error) {
	unusable := mail.Issue{Kind: mail.KindRefused, Stage: imap.StageList, Message: "A folder whose name cannot be used was left out."}
	list.Issues = slices.Repeat([]mail.Issue{unusable}, skipped)
	statuses := make(map[string]*imap.Status)
	seen := make(map[string]bool)
	for _, d := range data {
		if seen[d.Name] || !revealed && x.Policy.HidesFolder(d.Name) {
			continue
		}
		seen[d.Name] = true
		if mail.CheckFolder(d.Name) != nil {
			list.Issues = append(list.Issues, unusable)
			continue
		}
		f := folders.Of(d.Name, d.Delimiter, d.Attributes)
		f.Others = !spaces.Own(f.Name)
		list.Folders = append(list.Folders, f)
		if d.Status != nil {
			statuses[d.Name] = d.Status
		}
	}
	if q.Pattern == "*" {
		folders.Assume(list.Folders)
	} else {
		x.pool.own.Assumed(list.Folders)
	}
	if x.Policy.HidesFolders() && !revealed {
		list.Folders = folders.ForgetHidden(list.Folders, x.Policy.AboveHidden)
	}
	slices.SortStableFunc(list.Folders, Folder.Compare)
	return statuses, x.cutFolders(q, list)
}

// cutFolders keeps the folders behind q.After, as many as q.Limit says.
func (x *access) cutFolders(q FolderQuery, list *FolderList) error {
	if q.After != "" {
		i := slices.IndexFunc(list.Folders, func(f Folder) bool { return f.Name == imap.FolderName(q.After) })
		if i < 0 {
			list.Folders = nil
			return x.Failure(mail.KindConflict, imap.StageList, "The folder that the list should continue from is not there.", mail.AdviceFolders)
		}
		list.Folders = list.Folders[i+1:]
	}
	if list.Truncated = len(list.Folders) > q.Limit; list.Truncated {
		list.Folders = list.Folders[:q.Limit]
	}
	return nil
}

// count fills in the counts: those that came with the list, and the others, all requested
// at once. Where the policy hides messages, count checks each that can be visible, so that
// a count never reveals a hidden message.
func (x *imapBox) count(s *imap.Session, list *FolderList, statuses map[string]*imap.Status) error {
	asked := make(map[string]*imap.Stating)
	s.Together(func() {
		for _, f := range list.Folders {
			if statuses[f.Name] == nil && !f.NoSelect() && x.Policy.ShowsAll() {
				asked[f.Name] = s.Status(f.Name)
			}
		}
	})
	var broken error
	for i := range list.Folders {
		f := &list.Folders[i]
		if f.NoSelect() {
			continue
		}
		var err error
		st := statuses[f.Name]
		if !x.Policy.ShowsAll() {
			f.Counts, err = x.visibleCounts(s, f.Name)
		} else if w := asked[f.Name]; w != nil {
			st, err = w.Wait()
		}
		switch {
		case err != nil && !imap.Refused(err):
			broken = err // the others fail too, and are waited for
		case err == nil && st != nil && st.Counted:
			f.Counts = &Counts{Messages: st.Messages, Unread: st.Unseen, UIDNext: st.UIDNext, UIDValidity: st.UIDValidity}
		case f.Counts == nil:
			list.Issues = append(list.Issues, mail.Issue{Kind: mail.KindRefused, Stage: imap.StageStatus, Retryable: true,
				Message: fmt.Sprintf("The messages of folder %q were not counted: the server did not give the numbers.", f.Name)})
		}
	}
	return broken
}

func (x *imapBox) visibleCounts(s *imap.Session, folder string) (*Counts, error) {
	box, err := s.Examine(folder).Wait()
	if err != nil {
		return nil, err
	}
	// UIDNEXT would tell that a hidden message has come.
	counts := &Counts{UIDValidity: box.UIDValidity}
	err = x.eachVisible(s, box, nil, func(g *fetch.Message) {
		counts.Messages++
		if !fetch.HasFlag(g.Flags, fetch.FlagSeen) {
			counts.Unread++
		}
	})
	return counts, err
}

// eachVisible calls fn with the messages of the open folder that the policy shows, newest
// first. found are the messages to check; nil means all. In a folder too large to check
// each message, it first asks the server which can be visible.
func (x *imapBox) eachVisible(s *imap.Session, box imap.Folder, found imap.UIDSet, fn func(*fetch.Message)) error {
	from := fetch.Source{UIDs: found}
	if found == nil {
		from = fetch.Source{Low: 1, High: box.Exists}
		if senders := search.Senders(x.Policy); senders != nil && int(box.Exists) > x.m.bounds.judged {
			uids, err := s.Search(imap.Criteria{AnyOf: [][]imap.Criteria{senders}}).Wait()
			if err != nil {
				return err
			}
			from = fetch.Source{UIDs: uids}
		}
	}
	return x.Walk(s, from, false, fetch.Wanted{Header: true}, func() int { return maxWindow }, func(got []fetch.Message) bool {
		for i := range got {
			if x.Policy.Sees(&got[i]) {
				fn(&got[i])
			}
		}
		return true
	})
}
