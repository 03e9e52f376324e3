package mailbox

import (
	"context"
	"sync"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// withStructure runs ask, which also fetches the messages' structures, and again without
// them if the answer cannot be read: one message's BODYSTRUCTURE can make the answer for
// all of them unreadable. Then their headers say roughly whether they have attachments.
func withStructure(ctx context.Context, ask func(structure bool) error) error {
	err := ask(true)
	if ctx.Err() == nil && unreadable(err) {
		err = ask(false)
	}
	return err
}

// structures fetches the structures of messages in the open folder. If the server refuses,
// they stay unknown.
func structures(s *imap.Session, messages []*fetched) error {
	if len(messages) == 0 {
		return nil
	}
	var uids []uint32
	for _, g := range messages {
		uids = append(uids, g.ref.UID)
	}
	s.Renew()
	data, err := s.Fetch(imap.UIDs(uids...), goimap.FetchOptions{BodyStructure: &goimap.FetchItemBodyStructure{Extended: true}}).Wait()
	if err != nil && !refusedByServer(err) {
		return err
	}
	for _, g := range messages {
		if d := dataOf(data, g.ref.UID); d != nil && d.BodyStructure != nil {
			g.root = partsOf(d.BodyStructure)
		}
	}
	return nil
}

// maxPartFacts bounds the messages of one account to remember.
const maxPartFacts = 100_000

// parts is what a list says of the parts of a message.
type parts struct {
	attachments bool
	invitation  bool
}

// partFacts remembers the parts of messages: a message never changes under its UID. It is
// safe for concurrent use; its zero value is empty.
type partFacts struct {
	mu  sync.Mutex
	has map[mail.Ref]parts // a Ref of a folder alone stands for any message of it
}

// begun reports whether any message of a folder is known.
func (f *partFacts) begun(folder string) bool {
	_, known := f.known(mail.Ref{Folder: folder})
	return known
}

func (f *partFacts) known(ref mail.Ref) (has parts, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	has, known = f.has[ref]
	return has, known
}

// note remembers one message. When there are too many, it forgets all: learning them again
// costs a list a few bytes.
func (f *partFacts) note(ref mail.Ref, has parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.has == nil || len(f.has) >= maxPartFacts {
		f.has = make(map[mail.Ref]parts)
	}
	f.has[ref], f.has[mail.Ref{Folder: ref.Folder}] = has, parts{}
}
