package admin

import (
	"context"
	"slices"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/vault"
)

// Store is what the administrator's commands keep and change: a vault.
type Store interface {
	mail.Directory
	AddAccount(ctx context.Context, a mail.Account, s mail.Secret) error
	UpdateAccount(ctx context.Context, name string, change func(*mail.Account) error, s *mail.Secret) error
	RemoveAccount(ctx context.Context, name string) error
	ClientSecret(ctx context.Context, account string) (mail.Secret, error)
	SetConsent(ctx context.Context, account string, refresh mail.Secret) error
	AllSettings(ctx context.Context) ([]vault.Setting, error)
	SetSetting(ctx context.Context, name, value string) error
	Audit(ctx context.Context, q vault.AuditQuery) ([]vault.AuditRecord, error)
	VerifyAudit(ctx context.Context) (vault.AuditReport, error)
	Check(ctx context.Context) error
	Stop(ctx context.Context, by string) (stopped *mail.Stopped, again bool, err error)
	Resume(ctx context.Context) (*mail.Stopped, error)
	Stopped(ctx context.Context, age time.Duration) (*mail.Stopped, error)
	Grants
}

// Mailboxes is what is asked of mailboxes here; *mailbox.Client implements it.
type Mailboxes interface {
	Verify(ctx context.Context, account string) (*mail.Verification, error)
	Folders(ctx context.Context, account string, q mailbox.FolderQuery) (*mailbox.FolderList, error)
	JudgeSender(ctx context.Context, account, entry string) (map[mail.Verdict]int, error)
	AuthServID(ctx context.Context, account string) (string, error)
}

// Outbox is what is asked of the outbox here; *outbox.Outbox implements it.
type Outbox interface {
	Verify(ctx context.Context, account string) (*mail.Verification, error)
	List(ctx context.Context, q mail.OutboxQuery) (entries []mail.Outgoing, more bool, err error)
}

// Keyring keeps the passwords of accounts with mail.AuthKeyring;
// *login.SystemKeyring implements it.
type Keyring interface {
	Set(ctx context.Context, account string, s mail.Secret) error
	// Delete forgets a password. The error matches mail.ErrNotInKeyring when the
	// keyring has none for the account.
	Delete(ctx context.Context, account string) error
}

// Deps is what the commands work on. Those above Keyring are what other commands work on,
// too: commands.All sets them.
type Deps struct {
	Store     Store
	Mailboxes Mailboxes
	Outbox    Outbox

	// Exists reports whether a path names a command or a group, so that a list of
	// denied commands cannot hold a misspelt one.
	Exists func(path string) bool

	// Now is the clock.
	Now func() time.Time

	// Keyring is where passwords of accounts are kept that the vault does not keep.
	Keyring Keyring

	// ReadSecret reads a password from where --password-from says: "stdin",
	// "env:NAME" or "file:PATH". The process decides how.
	ReadSecret func(ctx context.Context, source string) (mail.Secret, error)

	// Tokenize splits a helper's command as a command string is split. Its error
	// repeats nothing of it.
	Tokenize func(line string) ([]string, error)

	// Tell says something to the person who runs a command while it runs, where
	// there is one; nil says it to nobody.
	Tell func(text string)

	// Authorize asks an account's owner for consent; nil means mail.Authorize.
	Authorize func(ctx context.Context, a *mail.Account, clientSecret mail.Secret, o login.AuthorizeOptions) (refresh mail.Secret, err error)

	// Rekey gives the vault new keys and puts them where the former ones came from.
	Rekey func(ctx context.Context, r Rekeying) ([]NewKey, error)

	// ReadFile reads a file of the administrator's choice, such as a CA.
	ReadFile func(path string) ([]byte, error)

	// Checks are further checks for doctor, of the process itself; nil for none.
	Checks func(ctx context.Context) []Check
}

// Commands lists the commands but that of PolicyShow, which agents have.
func Commands(d *Deps) []*discovery.Command {
	return slices.Concat([]*discovery.Command{
		stop(d),
		resume(d),
		doctor(d),
		accountAdd(d),
		accountEdit(d),
		accountAuthorize(d),
		accountRemove(d),
		accountList(d),
		accountShow(d),
	},
		[]*discovery.Command{allowInAdd(d)}, ruleCommands(d, inbound, addressesNamed)[1:], ruleCommands(d, outbound, addressesNamed),
		ruleCommands(d, allowed, foldersNamed), ruleCommands(d, hidden, foldersNamed),
		[]*discovery.Command{
			configGet(d),
			configSet(d),
			configList(d),
			auditList(d),
			auditVerify(d),
			vaultCheck(d),
			vaultRekey(d),
			grantAdd(d),
			grantList(d),
			grantRemove(d),
		})
}
