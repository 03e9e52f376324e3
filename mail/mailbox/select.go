package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// Selection is messages that something is to be done to.
type Selection struct {
	Messages []Selected   // of one folder after the other, each by ascending UID
	Issues   []mail.Issue // the folders that could not be searched
}

// Selected is what a plan shows of a message, or counts.
type Selected struct {
	Ref               mail.Ref
	Date              time.Time // as in a list
	From              mail.Address
	Subject           string
	Flagged, Answered bool
	Attachments       bool
	Known             bool // a message in Sent is addressed to whom it comes from
	Bulk              bool // it has List-Id, List-Unsubscribe or Precedence
}

// sentLooked is how many messages of Sent are looked at, the newest, for Selected.Known.
const sentLooked = 1000

// Select finds every message of an account that a search matches and the policy shows, and that
// an action would change: with one into another folder none that is there. It is all of them, or
// an error: more than mail.MaxPlanned are KindInvalid, and no match at all is KindNotFound. The
// mode and the folder that they would go to are checked as for a direct change. Limit, Cursor and
// Snippet of the query do not count.
func (m *Client) Select(ctx context.Context, account string, q SearchQuery, do mail.Action) (*Selection, error) {
	x, err := m.openToChange(ctx, "mail plan", account)
	if err != nil {
		return nil, err
	}
	q.Cursor, q.MaxMatches = "", min(cmp.Or(q.MaxMatches, mail.MaxPlanned), mail.MaxPlanned)
	f := &finding{m: m, op: x.base().Operation, accounts: []string{account}, q: q}
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	f.q.Limit, f.q.Snippet = 0, 0
	if !q.Selects() && !q.Attachments && !q.Invitations && len(q.Folders) == 0 {
		return nil, f.op.Invalid("Nothing says which messages are meant.", mail.AdviceNarrow)
	}
	return x.matching(ctx, &f.q, do)
}

// SelectThese is Select for messages of one folder that are named. One that does not exist is an
// error that names it.
func (m *Client) SelectThese(ctx context.Context, of Batch) (*Selection, error) {
	b, err := m.begin(ctx, of)
	if err != nil {
		return nil, err
	}
	return b.selected(ctx)
}

// among are messages of one folder.
type among struct {
	folder string
	valid  uint32
	uids   imap.UIDSet
}

func (x *imapBox) matching(ctx context.Context, q *SearchQuery, do mail.Action) (*Selection, error) {
	var to string
	err := x.lend(ctx, "", func(s *imap.Session) (err error) {
		to, err = x.destination(s, do)
		return err
	})
	if err != nil {
		return nil, x.inFolder(ctx, to, err)
	}
	a := &accountSearch{imapBox: x, q: q, out: &matches{access: x.access}, want: x.Policy.Headers(false), all: true}
	a.want.Dates = true
	err = fetch.WithStructure(ctx, func(structure bool) error {
		a.want.Structure = structure
		return a.search(ctx)
	})
	if err = cmp.Or(err, a.cut); err != nil {
		return nil, err
	}
	var found []among
	n, there := uint64(0), false
	for _, f := range a.folders {
		switch {
		case !f.answered() || len(f.found) == 0:
		case f.name == to:
			there = true
		default:
			found, n = append(found, among{f.name, f.valid, f.found}), n+f.found.Count()
		}
	}
	switch {
	case n > uint64(q.MaxMatches):
		return nil, x.Invalid(tooMany(q), mail.AdviceNarrow)
	case n == 0 && there:
		return nil, x.there(do.Do)
	case n == 0:
		return nil, x.Failure(mail.KindNotFound, imap.StageSearch, "No message matches.", mail.AdviceOtherCriteria)
	}
	out := &Selection{Issues: a.issues()}
	out.Messages, err = x.facts(ctx, found)
	return out, err
}

func (b *batch) selected(ctx context.Context) (*Selection, error) {
	var validity uint32
	for _, r := range b.refs {
		if r.UIDValidity != 0 && validity != 0 && r.UIDValidity != validity {
			return nil, b.MadeAnew(mail.AdviceListAgain)
		}
		validity = max(validity, r.UIDValidity)
	}
	all, err := b.facts(ctx, []among{{b.folder, validity, imap.UIDs(b.uids...)}})
	if err != nil || len(all) == len(b.uids) {
		return &Selection{Messages: all}, err
	}
	l := &located{found: map[uint32]*fetch.Message{}}
	for _, s := range all {
		l.found[s.Ref.UID] = &fetch.Message{}
	}
	return nil, b.missing(l, "None was changed.")
}

// destination is the folder that an action puts messages into, empty where it has none, when they
// may be put there.
func (x *imapBox) destination(s *imap.Session, do mail.Action) (folder string, err error) {
	switch do.Do {
	case mail.DoMove, mail.DoCopy:
		folder, err = x.folderName(do.To)
	case mail.DoTrash, mail.DoArchive:
		folder, err = x.byRole(s, do.Do)
	case mail.DoFlags:
		_, err := (&batch{imapBox: x, asked: Batch{Action: do}}).flagSteps()
		return "", err
	default:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	all, err := x.allFolders(s) // mayPut takes the roles from there
	if err != nil {
		return folder, err
	}
	spaces, err := s.Namespaces().Wait()
	if err = cmp.Or(err, x.mayPut(spaces, folder)); err == nil && len(all) < maxFoldersForRole && !slices.ContainsFunc(all, func(f Folder) bool { return f.Name == folder && !f.NoSelect() }) {
		e := x.Failure(mail.KindNotFound, imap.StageList, fmt.Sprintf("There is no folder %q to put the messages in.", folder), mail.AdviceFolders)
		e.Missing, err = folder, e
	}
	return folder, err
}

// facts looks at messages, in windows; those that are gone by now are left out.
func (x *imapBox) facts(ctx context.Context, found []among) (all []Selected, err error) {
	w := fetch.Wanted{Header: !x.Policy.ShowsAll(), Dates: true, Bulk: true}
	err = fetch.WithStructure(ctx, func(structure bool) error {
		w.Structure = structure
		return x.lend(ctx, found[0].folder, func(s *imap.Session) error {
			all = nil
			written, err := x.writtenTo(s)
			if err != nil {
				return err
			}
			for _, f := range found {
				box, err := s.Examine(f.folder).Wait()
				if err != nil {
					return err
				}
				if f.valid != 0 && box.UIDValidity != f.valid {
					return x.MadeAnew(mail.AdviceListAgain)
				}
				if err := x.Walk(s, fetch.Source{UIDs: f.uids}, true, w, func() int { return maxWindow }, func(got []fetch.Message) bool {
					for i := range got {
						if x.Policy.Sees(&got[i]) {
							all = append(all, x.factsOf(&got[i], written))
						}
					}
					return true
				}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return all, err
}

func (x *imapBox) factsOf(g *fetch.Message, written map[string]bool) Selected {
	s := x.Summary(g, false)
	out := Selected{Ref: g.Ref, Date: s.Date, Subject: s.Subject, Flagged: fetch.HasFlag(g.Flags, `\Flagged`), Answered: fetch.HasFlag(g.Flags, `\Answered`),
		Attachments: s.HasAttachments, Bulk: slices.ContainsFunc(fetch.BulkFields, func(name string) bool { return len(g.Header.Values(name)) > 0 })}
	if len(s.From) > 0 {
		out.From = s.From[0]
	}
	out.Known = slices.ContainsFunc(s.From, func(a mail.Address) bool { return written[addressed(a)] })
	return out
}

// addressed is an address as it is compared.
func addressed(a mail.Address) string {
	normal, _ := mail.NormalAddress(a.Addr)
	return cmp.Or(normal, strings.ToLower(a.Addr))
}

// writtenTo are those to whom the newest messages of Sent are addressed. Where the account has no
// such folder, or the server does not open it, they are none.
func (x *imapBox) writtenTo(s *imap.Session) (map[string]bool, error) {
	written := map[string]bool{}
	folder, err := x.knownFor(s, "sent")
	if err != nil || folder == "" {
		return written, err
	}
	box, err := s.Examine(folder).Wait()
	if err != nil || box.Exists == 0 {
		if imap.Refused(err) {
			err = nil
		}
		return written, err
	}
	newest := fetch.Source{Low: max(sentLooked, box.Exists) - sentLooked + 1, High: box.Exists}
	err = x.Walk(s, newest, false, fetch.Wanted{Full: true}, func() int { return maxWindow }, func(got []fetch.Message) bool {
		for _, g := range got {
			for _, a := range slices.Concat(g.Header.Addresses("To"), g.Header.Addresses("Cc")) {
				written[addressed(a)] = true
			}
		}
		return true
	})
	return written, err
}
