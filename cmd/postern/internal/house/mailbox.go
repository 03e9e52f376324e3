package house

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
)

// Where the keys of a mailbox lie that was made without any in the environment. Both
// files have the form that POSTERN_KEY_FILE and POSTERN_ADMIN_KEY_FILE take.
const (
	MailboxKey      = ".key"
	mailboxAdminKey = ".admin.key"
)

// correspondence is the store as the agent mailbox uses it. In a vault that ends with the
// process nobody would find a message, so it takes and gives none.
type correspondence struct{ *store }

func (c correspondence) View(ctx context.Context, fn func(kv.Tx) error) error {
	if c.temporary {
		return errPassing
	}
	return c.store.View(ctx, fn)
}

func (c correspondence) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if c.temporary {
		return errPassing
	}
	return c.store.Update(ctx, fn)
}

var errPassing = &discovery.Fault{Code: discovery.ConfigError, Message: "There is no vault here that would keep messages between agents: the accounts come from the environment.",
	Hint: "A person makes one with 'postern init'. In a shell, 'postern agent' has a mailbox of its own."}

// OpenMailbox opens the vault at path, and makes a missing one (003 NFR4).
// With a key in the environment it uses that and no other, so that a wrong key fails;
// with none it uses those beside the file. POSTERN_POLICY_PIN speaks of the vault with
// the accounts, and is not asked for here.
func (s *System) OpenMailbox(ctx context.Context, path string) (*vault.Vault, error) {
	return s.open(ctx, path, nil, func(from *System) (vault.Keys, error) { return from.mailboxKeys(ctx, path) })
}

// mailboxKeys returns the keys of the vault at path, which it makes where it is missing.
func (s *System) mailboxKeys(ctx context.Context, path string) (vault.Keys, error) {
	if address, err := vault.IsAddress(path); address || err != nil {
		return vault.Keys{}, &discovery.Fault{Code: discovery.ConfigError, Message: "The agent mailbox of its own is a file.", Hint: "For a vault in a database set POSTERN_DB, and leave AGENT_MAIL_DB out."}
	}
	keys, err := s.keysFrom(ctx, s.Keyring, s.unseal)
	if err != nil {
		return keys, err
	}
	_, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if optional(ctx) {
			return keys, fmt.Errorf("%w at %s", vault.ErrNoVault, path) // describe makes nothing
		}
		return s.makeMailbox(ctx, path, keys)
	}
	if keys.Admin.IsZero() && keys.Agent.IsZero() {
		keys.Agent, err = s.keyIn(ctx, vault.AgentKeyVar, path+MailboxKey)
		return keys, err
	}
	return keys, nil
}

// makeMailbox makes a vault with the keys there are, and with random ones beside it
// in place of those that are missing. Of several processes that do so at once all end
// up with the same keys and the same vault. It returns the keys to open it with.
func (s *System) makeMailbox(ctx context.Context, path string, given vault.Keys) (vault.Keys, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return vault.Keys{}, err
	}
	all := given
	for _, k := range []struct {
		secret *mail.Secret
		file   string
	}{{&all.Agent, path + MailboxKey}, {&all.Admin, path + mailboxAdminKey}} {
		if !k.secret.IsZero() {
			continue
		}
		if err := settleKey(k.file); err != nil {
			return vault.Keys{}, err
		}
		var err error
		if *k.secret, err = s.keyIn(ctx, vault.AgentKeyVar, k.file); err != nil {
			return vault.Keys{}, err
		}
	}
	if _, err := vault.Init(ctx, path, all); err != nil {
		return vault.Keys{}, err
	}
	if given.Admin.IsZero() {
		return vault.Keys{Agent: all.Agent}, nil
	}
	return given, nil
}

var link = os.Link // fails in a test, as on exFAT

// settleKey makes a key file unless there is one. It appears whole or not at all.
func settleKey(file string) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := vault.NewKey()
	if err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(file), ".postern-*.key") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(aside.Name()) }()
	_, err = io.WriteString(aside, key+"\n")
	if err == nil {
		err = aside.Sync()
	}
	if err := errors.Join(err, aside.Close()); err != nil {
		return err
	}
	// Of several processes the first makes the link, and all use its key.
	err = link(aside.Name(), file)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// Where the file system has no links, the first makes the file and then fills
		// it: a process that reads it in between fails, and can be started again.
		var claim *os.File
		if claim, err = os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = errors.Join(claim.Close(), os.Rename(aside.Name(), file))
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
