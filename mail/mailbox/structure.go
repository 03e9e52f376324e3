package mailbox

import (
	"cmp"
	"context"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
)

// maxBroken is how many connections are given up to find the messages whose
// BODYSTRUCTURE cannot be read. With the halving below it is enough for two of
// them among 500.
const maxBroken = 18

// structures asks what messages are made of where the answer for all at once could
// not be read: an answer that cannot be read costs the connection, so the half
// that holds it is asked for again in halves, until the messages at fault stand
// alone. got is called for each of the others, and for those at fault with nil.
// Beyond maxBroken the rest is left out. Where the folder was made anew meanwhile,
// or the server fails otherwise, it ends early: what messages are made of is worth
// no failure of a list that is complete but for it.
func (x *imapBox) structures(ctx context.Context, folder string, uidValidity uint32, uids []uint32, got func(uid uint32, root *message.Part)) {
	broken := 0
	pending := [][]uint32{uids}
	for len(pending) > 0 && broken < maxBroken {
		set := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if len(set) == 0 {
			continue
		}
		var answer map[uint32]*message.Part
		err := x.lend(ctx, folder, func(s *imap.Session) (err error) {
			answer, err = structuresOf(s, folder, uidValidity, set)
			return err
		})
		switch {
		case err == nil:
			for _, uid := range set {
				if root := answer[uid]; root != nil {
					got(uid, root)
				}
			}
		case ctx.Err() != nil || !unreadable(err):
			return
		case len(set) == 1:
			broken++
			got(set[0], nil)
		default:
			broken++
			pending = append(pending, set[len(set)/2:], set[:len(set)/2])
		}
	}
}

// structuresOf fetches the BODYSTRUCTURE of messages in a folder that is still the
// one they were found in; it finds nothing in any other.
func structuresOf(s *imap.Session, folder string, uidValidity uint32, uids []uint32) (map[uint32]*message.Part, error) {
	s.Renew()
	box, data, err, fetchErr := visit(s, folder, func() *imap.Fetching { return startStructures(s, uids) })
	if err = cmp.Or(err, fetchErr); err != nil || box.UIDValidity != uidValidity {
		return nil, err
	}
	roots := make(map[uint32]*message.Part, len(uids))
	for _, uid := range uids {
		if d := dataOf(data, uid); d != nil && d.BodyStructure != nil {
			roots[uid] = partsOf(d.BodyStructure)
		}
	}
	return roots, nil
}

func startStructures(s *imap.Session, uids []uint32) *imap.Fetching {
	return s.Fetch(imap.UIDs(uids...), goimap.FetchOptions{BodyStructure: &goimap.FetchItemBodyStructure{Extended: true}})
}
