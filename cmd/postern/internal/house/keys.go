package house

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

// AgentKeyFile and AdminKeyFile are where init puts the keys that it makes.
//
// The agent's key, or the line that names it in the keyring, is in a file beside the
// vault, where a process without any key in its environment looks. The administrator's
// is in a directory of its own, and only init and approve look there, which ask a person: no
// other verb becomes the administrator because of a file that lies somewhere.
func AgentKeyFile(vaultPath string) string { return vaultPath + MailboxKey }

// AdminKeyFile is the administrator's, see AgentKeyFile.
func AdminKeyFile(vaultPath string) string {
	return filepath.Join(filepath.Dir(vaultPath)+"-admin", filepath.Base(vaultPath)+mailboxAdminKey)
}

// hasKey reports whether the environment has the key of this variable in any form.
func (s *System) hasKey(variable string) bool {
	return s.Getenv(variable) != "" || s.Getenv(variable+"_FILE") != "" || s.Getenv(variable+"_COMMAND") != ""
}

// Principal is the administrator where the environment has the key, else the person at a
// terminal, else an agent. The person may do what an agent may, with limits of their own.
func (s *System) Principal() gateway.Principal {
	switch {
	case s.hasKey(vault.AdminKeyVar):
		return gateway.Principal{Name: "admin", Admin: true}
	case s.Person:
		return gateway.Principal{Name: mail.PersonPrincipal}
	}
	return gateway.Principal{Name: mail.AgentPrincipal}
}

// Keyring is the system's store of secrets; *login.SystemKeyring implements it.
type Keyring interface {
	login.Keyring
	Set(ctx context.Context, name string, s mail.Secret) error
	Delete(ctx context.Context, name string) error
}

// unasked is a keyring that help does not open: the system may ask a person to unlock it.
type unasked struct{ Keyring }

func (k unasked) Secret(ctx context.Context, name string) (mail.Secret, error) {
	if optional(ctx) {
		return mail.Secret{}, vault.ErrNoKey
	}
	return k.Keyring.Secret(ctx, name)
}

// Keys returns the keys of the environment, or where that has none the agent's
// key from beside the vault.
func (s *System) Keys(ctx context.Context, path string) (vault.Keys, error) {
	keys, err := s.keysFrom(ctx, unasked{s.Keyring})
	if err == nil && keys.Admin.IsZero() && keys.Agent.IsZero() {
		keys.Agent, err = s.keyIn(ctx, AgentKeyFile(path))
	}
	return keys, err
}

// keysFrom returns the keys of the environment.
func (s *System) keysFrom(ctx context.Context, keyring Keyring) (vault.Keys, error) {
	if !s.successors {
		return vault.KeysFrom(ctx, s.Getenv, keyring)
	}
	return vault.KeysFrom(ctx, func(name string) string {
		value := s.Getenv(name)
		if value != "" && (name == vault.AdminKeyVar+"_FILE" || name == vault.AgentKeyVar+"_FILE") {
			value = s.keyFile(value)
		}
		return value
	}, successorRing{keyring})
}

// keyFile is the key file to read in the place of another.
func (s *System) keyFile(file string) string {
	if s.successors {
		if next := successorOf(file); isFile(next) {
			return next
		}
	}
	return file
}

func isFile(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// asks reports whether reading the keys runs a program that may ask a person.
func (s *System) asks() bool {
	return s.Getenv(vault.AdminKeyVar+"_COMMAND") != "" || s.Getenv(vault.AgentKeyVar+"_COMMAND") != ""
}

// keyIn reads a key file that init made. It is zero for a missing file.
func (s *System) keyIn(ctx context.Context, file string) (mail.Secret, error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return mail.Secret{}, nil
	}
	only := *s
	only.Getenv = func(name string) string {
		if name == vault.AgentKeyVar+"_FILE" {
			return file
		}
		return ""
	}
	keys, err := only.keysFrom(ctx, unasked{s.Keyring})
	if err != nil {
		err = fmt.Errorf("the key file %s: %w", file, err)
	}
	return keys.Agent, err
}

// AdminOpener opens the vault with the administrator's key: that of the environment, else the
// one that init put into a file, or into the keyring that the file names. whose says which it
// is. open is nil where there is none. Only a verb that asks a person on a terminal about each
// thing that it does may use it.
func (s *System) AdminOpener() (open func(context.Context) (*vault.Vault, error), whose string) {
	path, err := vault.DefaultPath(s.Getenv)
	if err != nil {
		return nil, ""
	}
	whose = "the one of the environment"
	if file := AdminKeyFile(path); !s.hasKey(vault.AdminKeyVar) {
		if whose = "the one of " + file; !isFile(file) {
			return nil, ""
		}
	}
	return func(ctx context.Context) (*vault.Vault, error) {
		return s.open(ctx, path, &vault.Options{PolicyPin: s.Getenv("POSTERN_POLICY_PIN")}, func(from *System) (vault.Keys, error) {
			keys, err := from.findKeys(ctx, path)
			return vault.Keys{Admin: keys.Admin}, err
		})
	}, whose
}

// FindKeys returns the keys that there are already: those of the environment, else
// those of the files that init makes.
func (s *System) FindKeys(ctx context.Context, path string) (keys vault.Keys, err error) {
	from := *s
	for range 2 {
		if keys, err = from.findKeys(ctx, path); err != nil {
			return keys, err
		}
		_, wrongAdmin := vault.Open(ctx, path, vault.Keys{Admin: keys.Admin}, nil)
		_, wrongAgent := vault.Open(ctx, path, vault.Keys{Agent: keys.Agent}, nil)
		if s.asks() || !errors.Is(wrongAdmin, vault.ErrWrongKey) && !errors.Is(wrongAgent, vault.ErrWrongKey) {
			break
		}
		from.successors = true
	}
	return keys, nil
}

func (s *System) findKeys(ctx context.Context, path string) (vault.Keys, error) {
	keys, err := s.keysFrom(ctx, s.Keyring)
	if err != nil {
		return keys, err
	}
	if keys.Agent.IsZero() {
		if keys.Agent, err = s.keyIn(ctx, AgentKeyFile(path)); err != nil {
			return keys, err
		}
	}
	if keys.Admin.IsZero() {
		keys.Admin, err = s.keyIn(ctx, AdminKeyFile(path))
	}
	return keys, err
}
