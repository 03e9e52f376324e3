package mailbox

import (
	"context"
	"time"

	"github.com/postern-mail/postern/mail"
)

// UndoQuery selects the changes that are to be taken back: those of an ID, those since a moment, or
// the last.
type UndoQuery struct {
	ID      string    // of a change, or of what changes are Of: a plan, a command, an undo
	Since   time.Time // begun at or after
	Last    bool      // what the newest command changed that took nothing back itself and of which something is left to take back
	By      string    // only of this principal; empty means everybody's that the caller may know of
	Account string    // empty means any
	Owner   bool      // for the person whose mail it is, who is not held to modes and folders
}

// Undone is what came of an undo. A message is in Restored, in Left, or in neither where it is as it
// was already.
type Undone struct {
	Change   string // takes the undo back; empty where it changed nothing
	Restored []Restored
	Left     []LeftAsItIs
	Err      *mail.Error // why it ended before its end; nil where it did not. Undo goes on where it is called again
}

// Restored is a message that was taken back.
type Restored struct {
	From    mail.Ref // where the change had left it
	Ref     mail.Ref // where it is now: From where it was not moved; without a UID where the server did not say
	Trashed bool     // it was made by the change, a copy or a draft, and is in the trash now
	Added   []string // flags that it had before
	Removed []string // flags that the change had added
	Kept    []string // flags that others set or removed since: those are left
}

// LeftAsItIs is a message that an undo left.
type LeftAsItIs struct {
	Ref    mail.Ref // where the change had left it; without a UID where the server did not say
	Change string   // the newest of the changes that it is about
	Why    LeftWhy
	Said   string // the server's words, with LeftRefused; else empty
}

// LeftWhy is why an undo left a message.
type LeftWhy string

// The reasons.
const (
	LeftGone       LeftWhy = "gone"        // others moved or deleted it since, or the policy hides it
	LeftChanged    LeftWhy = "changed"     // others changed since all that the change did: its flags
	LeftFolderGone LeftWhy = "folder_gone" // its folder, or the one that it was in, is gone
	LeftMadeAnew   LeftWhy = "made_anew"   // its folder is another one of this name, or the server counts it anew
	LeftNotCertain LeftWhy = "not_certain" // the server did not say where it went, and not exactly one message fits
	LeftSent       LeftWhy = "sent"        // it is part of a sending
	LeftRefused    LeftWhy = "refused"     // by the server, see Said
	LeftTakenBack  LeftWhy = "taken_back"  // already
	LeftNotAllowed LeftWhy = "not_allowed" // the account's mode or folder rules do not let the caller
	LeftNoTrash    LeftWhy = "no_trash"    // it was made by the change, and the account has no trash to put it into
	LeftUnknown    LeftWhy = "unknown"     // the connection was lost: it is taken back or not
	LeftUnreached  LeftWhy = "unreached"   // its account could not be reached, or the undo ended before; call it again
)

// Undo takes changes back, see UndoQuery. Per message it is all of the changes together that are
// taken back, newest first. A message that is not where the changes left it is not touched, and flags
// are set and removed only as far as the changes removed and set them. Nothing is deleted: what was
// made is put into the trash. An undo is a change like any other, so that it can be taken back. The
// error is KindInvalid where nothing is selected and KindNotFound where nothing fits; where some was
// taken back it is in Undone.
func (m *Client) Undo(ctx context.Context, q UndoQuery) (*Undone, error) {
	return nil, nil
}
