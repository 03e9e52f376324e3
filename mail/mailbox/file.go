package mailbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/folders"
)

// OwnMessage is a message written here, to be filed in a folder of the account.
type OwnMessage struct {
	Role        string // of the folder: sent or drafts
	Flags       []string
	Date        time.Time
	Source      []byte
	Once        string // Message-ID: do not file it if the folder already has it; empty: always file
	UnlessFiled bool   // do not file it where the server does so by itself
}

// Placed says where a message is now.
type Placed struct {
	Folder string
	Ref    mail.Ref // zero when the server did not say, or had the message already
	Change string   // what takes it back, see mail.Journal; empty where nothing was recorded
}

// The reasons why File had nothing to do: the account has no folder of this role, or the
// server files the message by itself.
var (
	ErrNoRole     = errors.New("no folder of this use")
	ErrSelfFiling = errors.New("the provider files it itself")
)

// gmailCapability is a capability that Gmail's IMAP offers under any host name.
const gmailCapability = "X-GM-EXT-1"

// File appends a message to the folder of a role, in one turn on a connection that may only
// append. ErrNoRole and ErrSelfFiling say that there was nothing to do.
func (m *Client) File(ctx context.Context, op, account string, own *OwnMessage) (*Placed, error) {
	x, err := m.openToChange(ctx, op, account)
	if err != nil {
		return nil, err
	}
	return x.file(ctx, own)
}

func (x *imapBox) file(ctx context.Context, own *OwnMessage) (*Placed, error) {
	var out Placed
	sent := false
	err := x.change(ctx, "", imap.AppendMessages, func(_ context.Context, s *imap.Session) (err error) {
		out, sent = Placed{}, false
		if own.UnlessFiled && s.Has(gmailCapability) {
			return ErrSelfFiling
		}
		if own.Role == "sent" && x.Policy.HidesFolders() {
			s.Reveal() // what is sent is kept, and told of in no answer
		}
		if out.Folder, err = x.folderFor(s, own.Role); err != nil {
			return err
		}
		if out.Folder == "" {
			return ErrNoRole
		}
		if own.Once != "" {
			there, err := x.holds(s, out.Folder, own.Once)
			if err != nil || there {
				return err
			}
		}
		if err := stepAside(s, out.Folder); err != nil {
			return err
		}
		s.Renew()
		c := &mail.Change{Kind: mail.ChangeAppend, Sent: own.Role == "sent", Folder: out.Folder, Messages: []mail.ChangeMessage{identity(&fetch.Message{
			Flags: own.Flags, Header: rfc5322.ParseHeader(message.HeaderOf(own.Source)), Internal: own.Date, Size: int64(len(own.Source))})}}
		return x.recorded(ctx, c, func() (bool, error) {
			sent = true
			placed, err := x.append(s, out.Folder, own.Flags, own.Date, own.Source)
			if err == nil {
				c.UIDValidity, c.Messages[0].UID, c.Messages[0].Done = placed.UIDValidity, placed.UID, true
				out.Ref, out.Change = x.told(placed), c.ID
			}
			if err == nil && own.Role == "drafts" {
				x.noteDraft(ctx, placed)
			}
			return decided(err), err
		})
	})
	if err == nil {
		return &out, nil
	}
	if errors.Is(err, ErrNoRole) || errors.Is(err, ErrSelfFiling) {
		return nil, err
	}
	answered := imap.Refused(err)
	if err = x.wrap(ctx, err); sent && !answered {
		err = x.undecided(err, "Whether the message arrived in the folder is not known.", mail.AdviceLookIntoFolder)
	}
	return nil, err
}

// noteDraft remembers a draft as the caller's own. One of which the server did not send the UID
// (RFC 4315), or that could not be remembered, is one that agents leave alone.
func (x *imapBox) noteDraft(ctx context.Context, placed mail.Ref) {
	if placed.UID == 0 || x.m.o.Drafts == nil {
		return
	}
	if err := x.m.o.Drafts.NoteDraft(ctx, placed); err != nil {
		x.m.o.Logger.LogAttrs(ctx, slog.LevelWarn, "who wrote a draft could not be recorded", slog.String("account", x.Account))
	}
}

// told is where a message was put, zero where the policy hides messages: it tells how many
// have come.
func (x *access) told(placed mail.Ref) mail.Ref {
	if !x.Policy.ShowsAll() {
		return mail.Ref{}
	}
	return placed
}

// append puts a message into a folder. The Ref is zero where the server does not send the
// UID (RFC 4315).
func (x *imapBox) append(s *imap.Session, folder string, flags []string, date time.Time, source []byte) (mail.Ref, error) {
	validity, uid, err := s.Append(folder, flags, date, source)
	if err != nil || validity == 0 || uid == 0 {
		return mail.Ref{}, err
	}
	return x.RefTo(folder, validity, uid), nil
}

const inbox = "INBOX"

// stepAside closes a folder before an append to it: Courier refuses to append to one that
// the session has open to read, and not every server knows UNSELECT.
func stepAside(s *imap.Session, folder string) error {
	if box, ok := s.Selected(); ok && box.Name == folder && !box.Writable && folder != inbox {
		_, err := s.Examine(inbox).Wait()
		return err
	}
	return nil
}

// holds reports whether the folder has a message of this Message-ID.
func (x *imapBox) holds(s *imap.Session, folder, messageID string) (bool, error) {
	if _, err := s.Examine(folder).Wait(); err != nil {
		return false, err
	}
	found, err := s.Search(imap.HeaderHolds("Message-ID", messageID)).Wait()
	return len(found) > 0, err
}

// folderFor finds the folder of a role: the first that the server marks with it, else the
// first with a usual name, at the top or directly below INBOX. It is empty when no folder
// fits.
func (x *imapBox) folderFor(s *imap.Session, role string) (string, error) {
	all, err := x.listAll(s)
	return folders.FirstWithRole(all, role), err
}

// maxFoldersForRole bounds the folders that are looked at.
const maxFoldersForRole = 10_000
