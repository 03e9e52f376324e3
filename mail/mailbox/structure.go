package mailbox

import (
	"context"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
)

// withStructure runs ask, which also fetches the messages' structures, and again without
// them if the answer cannot be read: one message's BODYSTRUCTURE can make the answer for
// all of them unreadable. Then their headers say roughly whether they have attachments.
func withStructure(ctx context.Context, ask func(structure bool) error) error {
	err := ask(true)
	if ctx.Err() == nil && imap.Unreadable(err) {
		err = ask(false)
	}
	return err
}

// structures fetches the structures of messages in the open folder. If the server refuses,
// they stay unknown.
func structures(s *imap.Session, messages []*fetch.Message) error {
	if len(messages) == 0 {
		return nil
	}
	var uids []uint32
	for _, g := range messages {
		uids = append(uids, g.Ref.UID)
	}
	s.Renew()
	data, err := s.Fetch(imap.UIDs(uids...), goimap.FetchOptions{BodyStructure: &goimap.FetchItemBodyStructure{Extended: true}}).Wait()
	if err != nil && !imap.Refused(err) {
		return err
	}
	for _, g := range messages {
		if d := fetch.DataOf(data, g.Ref.UID); d != nil && d.BodyStructure != nil {
			g.Root = fetch.PartsOf(d.BodyStructure)
		}
	}
	return nil
}
