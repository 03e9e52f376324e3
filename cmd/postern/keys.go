package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/vault"
)

// Where init puts the keys that it makes.
//
// The agent's key, or the line that names it in the keyring, is in a file beside the
// vault, where a process without any key in its environment looks. The administrator's
// is in a directory of its own, and only init looks there, while it asks a person: no
// other verb becomes the administrator because of a file that lies somewhere.
func agentKeyFile(vaultPath string) string { return vaultPath + mailboxKey }

func adminKeyFile(vaultPath string) string {
	return filepath.Join(filepath.Dir(vaultPath)+"-admin", filepath.Base(vaultPath)+mailboxAdminKey)
}

// hasKey reports whether the environment has the key of this variable in any form.
func (s *system) hasKey(variable string) bool {
	return s.getenv(variable) != "" || s.getenv(variable+"_FILE") != "" || s.getenv(variable+"_COMMAND") != ""
}

// principal is the administrator where the environment has the key, else an agent.
func (s *system) principal() gateway.Principal {
	if s.hasKey(vault.AdminKeyVar) {
		return gateway.Principal{Name: "admin", Admin: true}
	}
	return gateway.Principal{Name: "agent"}
}

// keyring is where the system keeps secrets; *login.SystemKeyring implements it.
type keyring interface {
	login.Keyring
	Set(ctx context.Context, name string, s mail.Secret) error
	Delete(ctx context.Context, name string) error
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
func (s *system) keysFor(ctx context.Context, path string) (vault.Keys, error) {
	keys, err := vault.KeysFrom(ctx, s.getenv, unasked{s.keyring})
	if err == nil && keys.Admin.IsZero() && keys.Agent.IsZero() {
		keys.Agent, err = s.keyFrom(ctx, agentKeyFile(path))
	}
	return keys, err
}

// keyFrom reads a key file that init made. It is zero where there is no file.
func (s *system) keyFrom(ctx context.Context, file string) (mail.Secret, error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return mail.Secret{}, nil
	}
	keys, err := vault.KeysFrom(ctx, func(name string) string {
		if name == vault.AgentKeyVar+"_FILE" {
			return file
		}
		return ""
	}, unasked{s.keyring})
	if err != nil {
		err = fmt.Errorf("the key file %s: %w", file, err)
	}
	return keys.Agent, err
}

// findKeys returns the keys that there are already: those of the environment, else
// those of the files that init makes.
func (s *system) findKeys(ctx context.Context, path string) (vault.Keys, error) {
	keys, err := vault.KeysFrom(ctx, s.getenv, s.keyring)
	if err != nil {
		return keys, err
	}
	if keys.Agent.IsZero() {
		if keys.Agent, err = s.keyFrom(ctx, agentKeyFile(path)); err != nil {
			return keys, err
		}
	}
	if keys.Admin.IsZero() {
		keys.Admin, err = s.keyFrom(ctx, adminKeyFile(path))
	}
	return keys, err
}
