package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// Where init puts the keys that it makes.
//
// The agent's key, or the line that names it in the keyring, is in a file beside the
// vault, where a process without any key in its environment looks. The
// administrator's is in a directory of its own and is looked for by init alone, while it asks a person: no
// other verb becomes the administrator because of a file that lies somewhere.
func agentKeyFile(vaultPath string) string { return vaultPath + mailboxKey }

func adminKeyFile(vaultPath string) string {
	return filepath.Join(filepath.Dir(vaultPath)+"-admin", filepath.Base(vaultPath)+mailboxAdminKey)
}

// keyring is where the system keeps secrets; *mail.SystemKeyring implements it.
type keyring interface {
	mail.Keyring
	Set(ctx context.Context, name string, s mail.Secret) error
	Delete(ctx context.Context, name string) error
}

func (p *process) systemKeyring() keyring {
	if p.ring != nil {
		return p.ring
	}
	return &mail.SystemKeyring{}
}

// unasked is a keyring that is not disturbed on behalf of help: the system may ask a
// person to unlock it.
type unasked struct{ keyring }

func (k unasked) Secret(ctx context.Context, name string) (mail.Secret, error) {
	if optional(ctx) {
		return mail.Secret{}, vault.ErrNoKey
	}
	return k.keyring.Secret(ctx, name)
}

// keysFor returns the keys of the environment, or where that has none the agent's
// key from beside the vault.
func (p *process) keysFor(ctx context.Context, path string) (vault.Keys, error) {
	keys, err := vault.KeysFrom(ctx, p.getenv, unasked{p.systemKeyring()})
	if err == nil && keys.Admin.IsZero() && keys.Agent.IsZero() {
		keys.Agent, err = p.keyFrom(ctx, agentKeyFile(path))
	}
	return keys, err
}

// keyFrom reads a key file that init made. It is zero where there is no file.
func (p *process) keyFrom(ctx context.Context, file string) (mail.Secret, error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return mail.Secret{}, nil
	}
	keys, err := vault.KeysFrom(ctx, func(name string) string {
		if name == vault.AgentKeyVar+"_FILE" {
			return file
		}
		return ""
	}, unasked{p.systemKeyring()})
	if err != nil {
		err = fmt.Errorf("the key file %s: %w", file, err)
	}
	return keys.Agent, err
}

// keyPlace is where a new key is kept.
type keyPlace string

const (
	inKeyring keyPlace = "keyring"
	inFile    keyPlace = "file"
	shownOnce keyPlace = "show" // printed, and kept by the person; the administrator's only
)

// newKey is a key that is made and not kept yet.
type newKey struct {
	variable string
	role     string // agent or admin: the beginning of its name in the keyring
	secret   mail.Secret
	place    keyPlace
	file     string
}

// keyChain is the keys of a vault, and those of them that are still to be kept.
type keyChain struct {
	vault.Keys
	fresh []newKey
}

// findKeys returns the keys that there are already: those of the environment, else
// those of the files that init makes.
func (p *process) findKeys(ctx context.Context, path string) (vault.Keys, error) {
	keys, err := vault.KeysFrom(ctx, p.getenv, p.systemKeyring())
	if err != nil {
		return keys, err
	}
	if keys.Agent.IsZero() {
		if keys.Agent, err = p.keyFrom(ctx, agentKeyFile(path)); err != nil {
			return keys, err
		}
	}
	if keys.Admin.IsZero() {
		keys.Admin, err = p.keyFrom(ctx, adminKeyFile(path))
	}
	return keys, err
}

// complete makes the keys that are missing.
func (c *keyChain) complete(path string, admin, agent keyPlace) error {
	for _, k := range []struct {
		to    *mail.Secret
		fresh newKey
	}{
		{&c.Admin, newKey{variable: vault.AdminKeyVar, role: "admin", place: admin, file: adminKeyFile(path)}},
		{&c.Agent, newKey{variable: vault.AgentKeyVar, role: "agent", place: agent, file: agentKeyFile(path)}},
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

// keyringTime bounds one question to the keyring, within which a person may have to
// unlock it.
const keyringTime = 60 * time.Second

// keep puts a key where it belongs. What it did is undone by undo.
func (p *process) keep(ctx context.Context, k *newKey, undo *undoing) error {
	line := k.secret.Reveal()
	switch k.place {
	case shownOnce:
		return nil
	case inKeyring:
		name, err := keyName(k.role)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, keyringTime)
		defer cancel()
		ring := p.systemKeyring()
		perhaps := true // what took too long may be kept later
		undo.add("the key "+vault.KeyringName(name)+" in the system keyring", func(ctx context.Context) error {
			if err := ring.Delete(ctx, vault.KeyringName(name)); perhaps && !errors.Is(err, mail.ErrNotInKeyring) {
				return err
			}
			return nil
		})
		if err := ring.Set(ctx, vault.KeyringName(name), k.secret); err != nil {
			perhaps = ctx.Err() != nil
			return keyringFault(ctx, err)
		}
		// A key that cannot be had again is a vault that nobody opens.
		back, err := ring.Secret(ctx, vault.KeyringName(name))
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

// keyName is a name that no key had before: writing over one would close a vault for
// good.
func keyName(role string) (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return role + "-" + hex.EncodeToString(b[:]), nil
}

// keyringWorks tries whether there is a keyring that can be asked. A locked one is
// unlocked by the person now, rather than in the middle.
func (p *process) keyringWorks(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	_, err := p.systemKeyring().Secret(ctx, vault.KeyringName("none"))
	return err == nil || errors.Is(err, mail.ErrNotInKeyring)
}

// undoing takes back what a set-up made that did not come to its end.
type undoing struct{ steps []undoStep }

type undoStep struct {
	what string
	do   func(context.Context) error
}

func (u *undoing) add(what string, do func(context.Context) error) {
	u.steps = append(u.steps, undoStep{what, do})
}

// run takes everything back, the last first, and names what it could not.
func (u *undoing) run(ctx context.Context) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyringTime)
	defer cancel()
	for i := len(u.steps) - 1; i >= 0; i-- {
		if err := u.steps[i].do(ctx); err != nil {
			left = append(left, u.steps[i].what)
		}
	}
	u.steps = nil
	return left
}

// makeDir makes a directory with those above it, for the user alone.
func (u *undoing) makeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if above := filepath.Dir(dir); above != dir {
		if err := u.makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	u.add(dir, func(context.Context) error {
		// Somebody else may have begun to use it.
		if err := os.Remove(dir); err != nil && !isNotEmpty(dir) {
			return err
		}
		return nil
	})
	return nil
}

func isNotEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// writeNew writes a file that must not be there yet, for the user alone. It is whole
// on the disk when it returns.
func (u *undoing) writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	u.add(file, func(context.Context) error { return os.Remove(file) })
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keyNote says where a key is, for the person who has to find it again.
func (k *newKey) keyNote() string {
	text, err := os.ReadFile(k.file)
	switch {
	case k.place == shownOnce || err != nil:
		return "with you alone"
	case strings.HasPrefix(string(text), vault.KeyringPrefix):
		return "in the system keyring; " + k.file + " names it"
	}
	return "in " + k.file
}
