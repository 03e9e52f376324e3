package mailbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
)

// maxGet bounds the messages of one GetEach.
const maxGet = 20

// Get returns one message. A Ref without UIDVALIDITY means the folder as it is now; one
// whose UIDVALIDITY is gone is KindConflict, and never the content of another message. A
// message that the inbound policy hides is answered exactly as one that does not exist.
// Numbers are brought into their bounds. Get fetches only the data it shows: of plain text
// as much as BodyChars needs, 512 KiB of each part at most, of HTML 2 MiB, and of an
// attachment nothing unless its text or content was asked for (the text of a PDF of up to 5
// MB, and 24 MiB of content). An attachment that cannot be read is an Issue. Calls at the
// same time share round trips.
func (m *Client) Get(ctx context.Context, ref mail.Ref, q GetQuery) (*Message, error) {
	all, err := m.GetEach(ctx, ref.Account, []mail.Ref{ref}, q)
	if err != nil {
		return nil, err
	}
	return all.Messages[0], nil
}

// GetEach returns 1 to 20 messages of an account as Get does, in the order named, each once.
// What their folders hold is fetched together. Their texts share BodyChars: each gets as
// many characters as the others, and the room that short texts leave goes to the longer
// ones; but every text gets 100. A message that cannot be read is an Issue; where that is
// so for all of them, it is the error of the first.
func (m *Client) GetEach(ctx context.Context, account string, refs []mail.Ref, q GetQuery) (*Messages, error) {
	b, err := m.open(ctx, "mail get", account)
	if err != nil {
		return nil, err
	}
	x := b.base()
	if len(refs) == 0 || len(refs) > maxGet {
		return nil, x.Invalid(fmt.Sprintf("A command reads 1 to %d messages.", maxGet), mail.AdviceSeveralCommands)
	}
	q.BodyChars, q.AttachmentChars, q.FromChar = BodyChars.of(q.BodyChars), AttachmentChars.of(q.AttachmentChars), FromChar.of(q.FromChar)
	if q.Headers == "" {
		q.Headers = HeadersCurated
	}
	var all []*reading.Reading
	for _, ref := range refs {
		if ref.Account != account {
			return nil, x.Invalid("The messages are not all of one account.", mail.AdviceSeveralCommands)
		}
		if !slices.ContainsFunc(all, func(r *reading.Reading) bool { return r.Ref == ref }) {
			all = append(all, &reading.Reading{Viewer: &x.Viewer, Ref: ref, Query: q})
		}
	}
	if err := b.get(ctx, all); err != nil {
		return nil, err
	}
	out := &Messages{}
	var lengths []int
	for _, r := range all {
		if r.Err != nil {
			out.Issues = append(out.Issues, r.Failed())
			continue
		}
		out.Messages, lengths = append(out.Messages, r.Message), append(lengths, r.Text.Runes())
	}
	if len(out.Messages) == 0 {
		return nil, all[0].Err
	}
	for _, r := range all {
		if r.Err == nil {
			r.Show(share(q.BodyChars, lengths))
			r.ReadPDFs(ctx, m.o.PDFText)
		}
	}
	shown := make([]*Summary, len(out.Messages))
	for i, g := range out.Messages {
		shown[i] = &g.Summary
	}
	out.Issues = append(out.Issues, x.Unjudged()...)
	return out, m.noteDrafts(ctx, shown)
}

// share is how many characters each text may have, so that texts of these lengths have all
// together no more than chars where each has 100.
func share(chars int, lengths []int) int {
	slices.Sort(lengths)
	left := chars
	for i, n := range lengths {
		if each := left / (len(lengths) - i); n > each {
			return max(each, BodyChars.Min)
		}
		left -= n
	}
	return chars
}

// get reads messages. The error is one that none of them escapes; else each reading has its
// own.
func (x *imapBox) get(ctx context.Context, all []*reading.Reading) error {
	var named []*reading.Reading
	for _, r := range all {
		if r.Ref, r.Err = x.named(r.Ref); r.Err == nil {
			r.Ready = x.findOwn
			named = append(named, r)
		}
	}
	if err := x.pool.reads.Read(ctx, named); err != nil {
		return x.wrap(ctx, err)
	}
	for i, r := range named {
		if i == 0 { // the error that counts where there is no message at all
			r.Err = x.inFolder(ctx, r.Ref.Folder, r.Err)
		} else {
			r.Err = x.wrap(ctx, r.Err)
		}
	}
	if ctx.Err() != nil {
		return nil // what was read is told
	}
	return x.findReturned(ctx, named)
}

// maxReturned is how many messages of one Message-ID are looked at.
const maxReturned = 5

// findReturned finds in the folder for sent mail the messages that bounces are about, of
// several with one Message-ID the newest that the policy shows. They stay unknown where that
// fails.
func (x *imapBox) findReturned(ctx context.Context, all []*reading.Reading) error {
	var bounces []*reading.Reading
	for _, r := range all {
		if r.Err == nil && r.Returned != "" {
			bounces = append(bounces, r)
		}
	}
	if len(bounces) == 0 {
		return nil
	}
	err := x.lend(ctx, "", func(s *imap.Session) error {
		sent, err := x.knownFor(s, "sent")
		if err != nil || sent == "" {
			return err
		}
		search := fetch.Visit{Folder: sent}
		for _, r := range bounces {
			search.Criteria = append(search.Criteria, imap.HeaderHolds("Message-ID", "<"+r.Returned+">"))
		}
		if err = (fetch.Visits{&search}).Start(s, nil); err != nil || search.Err != nil {
			return err
		}
		look := fetch.Visit{Folder: sent, UIDValidity: search.Box.UIDValidity}
		for i, r := range bounces {
			for _, uid := range search.Found[i].Newest(maxReturned).Numbers() {
				if look.Fetch(uid, fetch.Wanted{Header: true}.Items()); x.Policy.ShowsAll() {
					r.Message.Returned = x.RefTo(search.Box.Name, look.UIDValidity, uid)
				}
			}
		}
		if x.Policy.ShowsAll() || len(look.Requests) == 0 {
			return nil
		}
		return x.FetchFrom(s, fetch.Visits{&look}, mail.AdviceListAgain, func(_ int, _ *fetch.Visit, got []fetch.Message) {
			for _, g := range got {
				for i, r := range bounces {
					if x.Policy.Sees(&g) && search.Found[i].Contains(g.Ref.UID) {
						r.Message.Returned = g.Ref
					}
				}
			}
		})
	})
	if ctx.Err() != nil {
		return err
	}
	return nil
}

// named checks that a reference can name a message of this account.
func (x *imapBox) named(ref mail.Ref) (mail.Ref, error) {
	if ref.Protocol != mail.IMAP || ref.UID == 0 {
		return ref, x.NoMessage("")
	}
	var err error
	ref.Folder, err = x.folderName(ref.Folder)
	return ref, err
}
