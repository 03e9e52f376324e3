package vault

import (
	"errors"
	"fmt"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// The errors on which callers branch, tested with errors.Is. Errors that wrap them name
// paths, variables and records, never a value.
var (
	ErrNoVault         = kv.ErrNone
	ErrPermissions     = kv.ErrPermissions
	ErrDamaged         = kv.ErrDamaged
	ErrFutureFormat    = kv.ErrNewer
	ErrNoKey           = errors.New("no vault key is set")
	ErrBadKey          = errors.New("not a vault key")
	ErrWrongKey        = errors.New("the key does not open the vault")
	ErrRekeyed         = errors.New("the vault was given new keys, and this process has the former one")
	ErrAdminRequired   = errors.New("this requires POSTERN_ADMIN_KEY (admin privilege)")
	ErrUntrustedPolicy = errors.New("the policy in the vault is not what the admin signed")
	ErrPolicyPin       = errors.New("the vault's policy key is not the pinned one")
	ErrExists          = errors.New("the account exists already")
	ErrGrantExists     = errors.New("the grant exists already")
	ErrNoSecret        = errors.New("the vault keeps no secret for the account")
	ErrMoved           = errors.New("the vault is not here any more")
	ErrTaken           = errors.New("there is a vault already")
	ErrInvalid         = errors.New("invalid value")
	ErrBusy            = kv.ErrBusy
	ErrAddress         = kv.ErrAddress
	ErrUnreachable     = kv.ErrUnreachable
	ErrWentBack        = kv.ErrWentBack
)

// Held is a lock's that could not be had in time.
type Held = kv.Held

// Away says why the vault's database cannot be used.
type Away = kv.Away

// ShareFull says that a principal has filled its share of something, and that nothing more is
// kept for it. Others have shares of their own.
type ShareFull struct {
	Of        string // what it is a share of: ShareOutbox, ShareMailbox, ShareFiles or ShareJournal
	Principal string
	Count     int   // what it may keep: messages, files or changes
	Bytes     int64 // and their length together
}

// What has shares.
const (
	ShareOutbox  = "outbox"
	ShareMailbox = "agent mailbox"
	ShareFiles   = "saved attachments"
	ShareJournal = "journal of changes"
)

func (e *ShareFull) Error() string {
	return fmt.Sprintf("the share of %s in the %s is full: %d, or %d MiB", e.Principal, e.Of, e.Count, e.Bytes>>20)
}

// Is makes a full share of the outbox match mail.ErrOutboxFull.
func (e *ShareFull) Is(target error) bool {
	return e.Of == ShareOutbox && target == mail.ErrOutboxFull
}
