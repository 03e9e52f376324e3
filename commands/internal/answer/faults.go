package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/vault"
)

// rule gives one sentinel its public form. An empty message means the error's
// own text, which the packages below promise to keep free of secrets.
type rule struct {
	is            error
	code          discovery.Code
	message, hint string
	reason        string
}

var rules = []rule{
	{is: mail.ErrNoAccount, code: discovery.NotFound, message: "There is no such account.", hint: "Run 'mail accounts' to list the accounts."},
	{is: mail.ErrNoOutgoing, code: discovery.NotFound, message: "There is no such entry in the outbox.", hint: "Run 'outbox list' to list the messages."},
	{is: mail.ErrOutboxFull, code: discovery.StoreError, message: "The outbox is full: too many messages wait in it or could not be sent.",
		hint: "See them with 'outbox list'; 'outbox cancel' takes back what waits, and the administrator approves or rejects the rest."},
	{is: vault.ErrNoVault, code: discovery.ConfigError, message: "There is no vault yet.", hint: "Make one with 'postern init', or point POSTERN_DB at its file or database."},
	{is: vault.ErrNoKey, code: discovery.ConfigError, message: "No vault key is set.", hint: "Set POSTERN_KEY (or POSTERN_KEY_FILE, POSTERN_KEY_COMMAND) to the agent key that 'postern init' was given."},
	{is: vault.ErrPassphrase, code: discovery.ConfigError, message: "The passphrase does not open the administrator's key.",
		hint: "It is the one that 'postern init' was given; nobody can recover it. Check Caps Lock and the keyboard's layout."},
	{is: vault.ErrSealed, code: discovery.ConfigError, message: "The administrator's key is sealed with a passphrase, and there is no terminal to ask for it.",
		hint: "Run it on a terminal, with input and errors not redirected; or set POSTERN_ADMIN_KEY_COMMAND to a program that prints the key."},
	{is: vault.ErrBadKey, code: discovery.ConfigError, hint: "A key is the base64 of 32 bytes. Check that what the variable names is there and can be read; a newly made key cannot open an existing vault."},
	{is: vault.ErrRekeyed, code: discovery.ConfigError, message: "The vault was given new keys, and this process has a former one.",
		hint: "Start it again with the key that 'vault rekey' made, in POSTERN_KEY, POSTERN_KEY_FILE or POSTERN_KEY_COMMAND."},
	{is: vault.ErrWrongKey, code: discovery.ConfigError, message: "The key does not open this vault.", hint: "Set the key the vault was made with, or the one that 'vault rekey' made since, or point POSTERN_DB at the vault that belongs to it."},
	{is: vault.ErrPermissions, code: discovery.ConfigError, hint: "Take the permissions of others away: chmod 600 on a file, chmod go-w on a directory."},
	{is: vault.ErrFutureFormat, code: discovery.StoreError, hint: "Use the version of postern that wrote it, or a newer one."},
	{is: vault.ErrUntrustedPolicy, code: discovery.StoreError, message: "The policy in the vault is not what the administrator signed.", hint: "Do not use this vault. Restore the file from a backup, or make a new one with 'postern init'."},
	{is: vault.ErrPolicyPin, code: discovery.StoreError, message: "The vault's policy was signed by another key than POSTERN_POLICY_PIN names.", hint: "Check that POSTERN_DB is the right vault; if it is, set the pin to the fingerprint 'postern init' prints."},
	{is: vault.ErrDamaged, code: discovery.StoreError, message: "The vault is damaged, or what is there is not one.", hint: "Restore it from a backup, or point POSTERN_DB at the right one."},
	{is: vault.ErrAdminRequired, code: discovery.PermissionDenied, message: "This command requires POSTERN_ADMIN_KEY (admin privilege).", hint: "Run it where POSTERN_ADMIN_KEY is set.", reason: "role"},
	{is: vault.ErrExists, code: discovery.Conflict, message: "There is an account of that name already.", hint: "Change it with 'account edit', or choose another name."},
	{is: vault.ErrGrantExists, code: discovery.Conflict, message: "There is a grant of that name already.", hint: "Remove it first with 'grant remove', or choose another name."},
	{is: vault.ErrNoGrant, code: discovery.NotFound, message: "There is no such grant.", hint: "Run 'grant list' to list the grants."},
	{is: vault.ErrNoSecret, code: discovery.ConfigError, message: "The vault keeps no password for the account.", hint: "The administrator gives one with 'account edit NAME --password-from stdin'."},
	{is: vault.ErrInvalid, code: discovery.ValidationError, hint: "Run 'config list' for the settings and what they take."},
	{is: vault.ErrMoved, code: discovery.ConfigError, hint: "Point POSTERN_DB at where it is, for every process and client."},
	{is: vault.ErrAddress, code: discovery.ConfigError, hint: "POSTERN_DB is a file's path, or an address such as postgres://user@host/database."},
	{is: vault.ErrUnreachable, code: discovery.StoreError,
		hint: "Try again in a minute. If it fails again, check that it runs and takes writes, and that POSTERN_DB, its password file and its certificates are right."},
	{is: vault.ErrWentBack, code: discovery.StoreError, hint: "If a backup was restored on purpose, remove the file that it names, if it names one, and start this process again; else ask who administers the database."},
	{is: vault.ErrBusy, code: discovery.StoreError, message: "Another program holds the vault.", hint: "Try again; if it fails again, find the process that has it open."},
	{is: context.DeadlineExceeded, code: discovery.Timeout, message: "It took too long.", hint: "Allow more time with --timeout SECONDS (at most 300)."},
}

// shareHints say what makes room in a principal's share.
var shareHints = map[string]string{
	vault.ShareOutbox:  "Those that wait or could not be sent count. See them with 'outbox list'; 'outbox cancel' takes back what waits, and the administrator approves or rejects the rest.",
	vault.ShareMailbox: "Messages end after 24 hours. Keep long texts in files, and name those with --refs.",
	vault.ShareJournal: "What was changed within a day is kept, so that it can be taken back. Wait, or ask the administrator.",
	vault.ShareFiles:   "The files that were saved and are still there count. A person removes those that are not needed; to read one, 'mail attachment' with --as-text saves nothing.",
}

// Faults is FaultsWhere every command exists.
func Faults(err error) *discovery.Fault { return faultOf(err, func(string) bool { return true }) }

// FaultsWhere is the one place where errors of mail and vault become public codes
// and hints. A hint sends the reader only to commands that exist, or that the
// administrator runs elsewhere. The function it returns gives nil for an error it
// does not know, whose text is then not shown.
func FaultsWhere(exists func(path string) bool) func(error) *discovery.Fault {
	return func(err error) *discovery.Fault { return faultOf(err, exists) }
}

func faultOf(err error, exists func(path string) bool) *discovery.Fault {
	if f := discovery.AsFault(err); f != nil {
		return f
	}
	if f := SendRefusal(err); f != nil {
		return f
	}
	if share := (*vault.ShareFull)(nil); errors.As(err, &share) {
		return &discovery.Fault{Code: discovery.StoreError, Hint: shareHints[share.Of], Err: err,
			Message: fmt.Sprintf("The share of '%s' in the %s is full: %d, or %d MiB together. Nothing was done; others go on.", share.Principal, share.Of, share.Count, share.Bytes>>20)}
	}
	if held := (*vault.Held)(nil); errors.As(err, &held) {
		return &discovery.Fault{Code: discovery.StoreError, Message: fmt.Sprintf("Another program holds the vault's lock, %s, and did not let go of it in time.", held.Lock),
			Hint: "Find the program, with 'fuser -v' or 'lsof' and that path, and end it. Postern holds the lock for moments, or as long as 'vault check' and 'vault rekey' take.", Err: err}
	}
	var limited *outbox.Limited
	if errors.As(err, &limited) {
		return &discovery.Fault{Code: discovery.RateLimited, Message: "More messages were sent within an hour than the administrator allows. Nothing was sent.",
			Hint: fmt.Sprintf("Wait %d s before the next one.", int64((limited.Wait+time.Second-1)/time.Second)), Reason: "rate", Err: err}
	}
	var account *mail.NoAccount
	if errors.As(err, &account) {
		f := &discovery.Fault{Code: discovery.NotFound, Message: "There is no such account.", Hint: "Run 'mail accounts' to list the accounts.", Err: err}
		if account.Name == argument.AllAccounts {
			f.Message = "This command works on one account, not on all."
		} else if near := nearNames(account.Name, account.Known); near != "" {
			f.Hint = near + " " + f.Hint
		}
		return f
	}
	var m *mail.Error
	known := errors.As(err, &m)
	if away := (*vault.Away)(nil); errors.As(err, &away) && !(known && m.Unknown) {
		err, known = away, false // that a mail server was not asked, or not in time, comes of it
		if away.Unknown {
			return &discovery.Fault{Code: discovery.StoreError, Message: Capital(err.Error()) + ".", Err: err,
				Hint: "Look before you try again: it may have been done. What is to be sent is in 'outbox list'."}
		}
	}
	var stopped *mail.Stopped
	if errors.As(err, &stopped) && !(known && m.Unknown) {
		whose := "in any session"
		if stopped.Only != nil {
			whose = "in any session of yours"
		}
		return &discovery.Fault{Code: discovery.PermissionDenied, Message: Capital(stopped.Error()) + ". Nothing that reads, changes or sends mail begins, " + whose + ".",
			Hint: "The person who administers this mailbox can go on with 'resume'; until then leave it.", Reason: "stopped", Err: err}
	}
	if known {
		return &discovery.Fault{Code: CodeOf(m.Kind), Message: m.Message, Hint: hint(m, exists), Reason: m.Reason, Foreign: m.Foreign, Err: err}
	}
	for _, r := range rules {
		if errors.Is(err, r.is) {
			f := &discovery.Fault{Code: r.code, Message: r.message, Hint: r.hint, Reason: r.reason, Err: err}
			if f.Message == "" {
				f.Message = fmt.Sprintf("%s.", Capital(err.Error()))
			}
			return f
		}
	}
	return fileFault(err)
}

// fileFault is what a person can mend of the file system: who may do what, and
// room. The path is the vault's or one the administrator named.
func fileFault(err error) *discovery.Fault {
	var path *fs.PathError
	if errors.As(err, &path) {
		return &discovery.Fault{Code: discovery.StoreError, Message: fmt.Sprintf("The file %s cannot be used: %s.", path.Path, path.Err),
			Hint: "Check who owns it and its directory, their permissions, and the space on the disk.", Err: err}
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return &discovery.Fault{Code: discovery.StoreError, Message: fmt.Sprintf("The vault's file cannot be used: %s.", number.Error()),
			Hint: "Check who owns it and its directory, their permissions, and the space on the disk.", Err: err}
	}
	return nil
}

// CodeOf is the public code of a kind of failure.
func CodeOf(k mail.Kind) discovery.Code {
	switch k {
	case mail.KindNotFound:
		return discovery.NotFound
	case mail.KindConflict:
		return discovery.Conflict
	case mail.KindAuth:
		return discovery.AuthFailed
	case mail.KindConnection, mail.KindCertificate, mail.KindLimit:
		return discovery.ConnectionFailed
	case mail.KindTimeout:
		return discovery.Timeout
	case mail.KindConfig:
		return discovery.ConfigError
	case mail.KindStore:
		return discovery.StoreError
	case mail.KindReadOnly, mail.KindStopped, mail.KindAsks:
		return discovery.PermissionDenied
	case mail.KindInvalid:
		return discovery.ValidationError
	}
	return discovery.ExecutionError
}

// SendRefusal is the outbound policy's refusal, or nil for another error.
func SendRefusal(err error) *discovery.Fault {
	var refused *mail.SendRefused
	if !errors.As(err, &refused) {
		return nil
	}
	f := &discovery.Fault{Code: discovery.PermissionDenied, Message: fmt.Sprintf("%s.", Capital(err.Error())), Reason: refused.Reason,
		Hint: "'policy show' tells what the account allows."}
	switch refused.Reason {
	case mail.ReasonAllowList:
		f.Hint = fmt.Sprintf("'policy show' lists the recipients you may write to; the administrator adds one with 'allow out add ADDRESS --account %s'.", cmp.Or(refused.Account, "NAME"))
	case mail.ReasonReadOnly, mail.ReasonDraft:
		f.Hint = fmt.Sprintf("The administrator allows sending with 'account edit %s --mode approve' or '--mode RW'.", cmp.Or(refused.Account, "NAME"))
		if refused.Reason == mail.ReasonDraft {
			f.Hint = "'mail draft' leaves it in the folder for drafts. " + f.Hint
		}
	case mail.ReasonAddress:
		f.Code, f.Hint = discovery.ValidationError, "Name recipients such as ann@example.org."
	}
	if refused.Fixed {
		f.Hint = "An account of the environment has no server to send with, and writes to nobody: the administrator adds one that does with 'account add'."
	}
	if len(refused.Recipients) > 0 {
		f.Message = strings.TrimSuffix(f.Message, ".") + ": " + plain.Clip(strings.Join(refused.Recipients, ", "), 500) + "."
	}
	return f
}
