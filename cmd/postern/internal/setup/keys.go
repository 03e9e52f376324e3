package setup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/vault"
)

// Keyring is the system's store of secrets; *login.SystemKeyring implements it.
type Keyring interface {
	login.Keyring
	Set(ctx context.Context, name string, s mail.Secret) error
	Delete(ctx context.Context, name string) error
}

// KeyPlace is where a new key is kept.
type KeyPlace string

const (
	InKeyring KeyPlace = "keyring"
	InFile    KeyPlace = "file"
	Sealed    KeyPlace = "passphrase" // in its file, sealed with a passphrase; the administrator's only, and only where a person is asked
	ShownOnce KeyPlace = "show"       // printed, and kept by the person; the administrator's only
)

// newKey is a new key that is not kept yet.
type newKey struct {
	role   string // agent or admin: the beginning of its name in the keyring
	secret mail.Secret
	place  KeyPlace
	file   string
}

// keyChain is the keys of a vault, and the new keys still to be kept.
type keyChain struct {
	vault.Keys
	fresh []newKey
}

// makeKeys makes the keys that are missing. They are not kept yet.
func (s *setup) makeKeys(c *keyChain) error {
	for _, k := range []struct {
		to    *mail.Secret
		fresh newKey
	}{
		{&c.Admin, newKey{role: "admin", place: s.AdminKey, file: s.AdminKeyFile}},
		{&c.Agent, newKey{role: "agent", place: s.AgentKey, file: s.AgentKeyFile}},
	} {
		if !k.to.IsZero() {
			continue
		}
		text, err := vault.NewKey()
		if err != nil {
			return err
		}
		*k.to = mail.NewSecret([]byte(text))
		k.fresh.secret = *k.to
		c.fresh = append(c.fresh, k.fresh)
	}
	return nil
}

// askPassphrase asks twice for the passphrase of the administrator's key.
func (w *wizard) askPassphrase(ctx context.Context) error {
	for {
		first, err := w.ask.Secret(ctx, "Passphrase", fmt.Sprintf("At least %d characters. You are asked for it when you approve something or change "+
			"accounts and rules. Nobody can recover it: keep it where you keep your passwords.", vault.MinPassphrase))
		if err != nil {
			return err
		}
		if utf8.RuneCountInString(first.Reveal()) < vault.MinPassphrase {
			w.ask.Say(fmt.Sprintf("That is too short: a passphrase has at least %d characters.", vault.MinPassphrase))
			continue
		}
		second, err := w.ask.Secret(ctx, "The same again", "")
		if err != nil {
			return err
		}
		same := first.Equal(second)
		second.Wipe()
		if same {
			w.passphrase = first
			return nil
		}
		w.ask.Say("The two are different. Please type both again.")
	}
}

// keyringTime bounds one call to the keyring, within which a person may have to
// unlock it.
const keyringTime = 60 * time.Second

// keep stores a key in its place. undo can undo that.
func (s *setup) keep(ctx context.Context, k *newKey, undo *undoing) error {
	line := k.secret.Reveal()
	switch k.place {
	case ShownOnce:
		return nil
	case Sealed:
		var err error
		if line, err = s.Seal(k.secret, s.passphrase); err != nil {
			return err
		}
	case InKeyring:
		// No key had that name before: writing over one would close a vault for good.
		name := k.role + "-" + strings.ToLower(rand.Text()[:12])
		ctx, cancel := context.WithTimeout(ctx, keyringTime)
		defer cancel()
		perhaps := true // after a timeout the key may still be kept
		undo.add("the key "+vault.KeyringName(name)+" in the system keyring", func(ctx context.Context) error {
			if err := s.Keyring.Delete(ctx, vault.KeyringName(name)); perhaps && !errors.Is(err, mail.ErrNotInKeyring) {
				return err
			}
			return nil
		})
		if err := s.Keyring.Set(ctx, vault.KeyringName(name), k.secret); err != nil {
			perhaps = ctx.Err() != nil
			return keyringFault(ctx, err)
		}
		// A vault whose key cannot be read back is lost.
		back, err := s.Keyring.Secret(ctx, vault.KeyringName(name))
		defer back.Wipe()
		if err != nil || back.Reveal() != k.secret.Reveal() {
			return keyringFault(ctx, err)
		}
		line = vault.KeyringPrefix + name
	}
	if err := undo.makeDir(filepath.Dir(k.file)); err != nil {
		return err
	}
	return undo.writeNew(k.file, []byte(line+"\n"))
}

func keyringFault(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return ctx.Err()
	}
	return &discovery.Fault{Code: discovery.ConfigError, Message: "The system keyring does not keep the key.",
		Hint: "Check that it runs and is unlocked, or keep the keys in files: --agent-key file --admin-key file.", Err: err}
}

// keyringWorks tries whether the keyring answers. A person unlocks a locked one
// now, rather than in the middle.
func (s *setup) keyringWorks(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	_, err := s.Keyring.Secret(ctx, vault.KeyringName("none"))
	return err == nil || errors.Is(err, mail.ErrNotInKeyring)
}
