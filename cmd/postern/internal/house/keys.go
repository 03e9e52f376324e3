package house

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/vault"
)

// AgentKeyFile and AdminKeyFile are where init puts the keys that it makes.
//
// The agent's key, or the line that names it in the keyring, is in a file beside the
// vault, where a process without any key in its environment looks. The administrator's
// is in a directory of its own, and only what asks a person looks there: nothing else becomes the
// administrator because of a file that lies somewhere.
func AgentKeyFile(place string) string { return vault.Beside(place) + MailboxKey }

// AdminKeyFile is the administrator's, see AgentKeyFile.
func AdminKeyFile(place string) string {
	path := vault.Beside(place)
	return filepath.Join(filepath.Dir(path)+"-admin", filepath.Base(path)+mailboxAdminKey)
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
// key from beside the vault. An agent does without an administrator's key that is sealed.
func (s *System) Keys(ctx context.Context, path string, asAgent bool) (vault.Keys, error) {
	unseal := s.unseal
	if asAgent {
		unseal = vault.LeaveSealed
	}
	keys, err := s.keysFrom(ctx, unasked{s.Keyring}, unseal)
	if err == nil && keys.Admin.IsZero() && keys.Agent.IsZero() {
		keys.Agent, err = s.keyIn(ctx, vault.AgentKeyVar, AgentKeyFile(path))
	}
	return keys, err
}

// keysFrom returns the keys of the environment.
func (s *System) keysFrom(ctx context.Context, keyring Keyring, unseal vault.Unseal) (vault.Keys, error) {
	if !s.successors {
		return vault.KeysFrom(ctx, s.Getenv, keyring, unseal)
	}
	return vault.KeysFrom(ctx, func(name string) string {
		value := s.Getenv(name)
		if value != "" && (name == vault.AdminKeyVar+"_FILE" || name == vault.AgentKeyVar+"_FILE") {
			value = s.keyFile(value)
		}
		return value
	}, successorRing{keyring}, unseal)
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

// passphraseTries is how often a person may type a passphrase.
const passphraseTries = 3

// unseal opens an administrator's key that is sealed with a passphrase, which the process
// asks a person for once.
func (s *System) unseal(ctx context.Context, text string) (mail.Secret, error) {
	if optional(ctx) {
		return mail.Secret{}, vault.ErrNoKey
	}
	o := s.Own
	if o == nil || s.Passphrase == nil {
		return mail.Secret{}, vault.ErrSealed
	}
	o.asking.Lock()
	defer o.asking.Unlock()
	if key, there := o.unsealed[text]; there {
		return key.Clone(), nil
	}
	err := vault.ErrPassphrase
	var key mail.Secret
	if !o.passphrase.IsZero() { // vault rekey seals with the same
		key, err = vault.OpenKey(text, o.passphrase)
	}
	for try := 0; errors.Is(err, vault.ErrPassphrase) && try < passphraseTries; try++ {
		typed, failed := s.Passphrase(ctx, try > 0)
		if failed != nil {
			return mail.Secret{}, failed
		}
		if key, err = vault.OpenKey(text, typed); err == nil {
			o.passphrase = typed
		} else {
			typed.Wipe()
		}
	}
	if err == nil {
		o.holds(text, key)
	}
	return key, err
}

// Unseal asks for the passphrase of an administrator's key that is sealed in a variable or
// the file that one names, before the time of a command begins. It does nothing for any other
// key, and leaves what else is wrong with one to the command.
func (s *System) Unseal(ctx context.Context) error {
	text := s.sealed()
	if text == "" {
		return nil
	}
	_, err := s.unseal(ctx, text)
	return err
}

// sealed is the administrator's key that is sealed in a variable or the file that one names;
// empty for any other.
func (s *System) sealed() string {
	text := s.Getenv(vault.AdminKeyVar)
	if file := s.Getenv(vault.AdminKeyVar + "_FILE"); text == "" && file != "" {
		b, err := ReadFile(file, 4096)
		if text = string(b); err != nil {
			return ""
		}
	}
	if !strings.HasPrefix(text, vault.PassphrasePrefix) {
		return ""
	}
	return strings.TrimRight(text, "\r\n")
}

// keyIn reads the key of a variable from a file that init made. It is zero for a missing file.
func (s *System) keyIn(ctx context.Context, variable, file string) (mail.Secret, error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return mail.Secret{}, nil
	}
	only := *s
	only.Getenv = func(name string) string {
		if name == variable+"_FILE" {
			return file
		}
		return ""
	}
	keys, err := only.keysFrom(ctx, unasked{s.Keyring}, s.unseal)
	if err != nil {
		err = fmt.Errorf("the key file %s: %w", file, err)
	}
	return *keyOf(&keys, variable), err
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
		return s.open(ctx, path, &vault.Options{PolicyPin: s.Getenv("POSTERN_POLICY_PIN"), Marks: marksOf(path)}, func(from *System) (vault.Keys, error) {
			keys, err := from.findKeys(ctx, path)
			return vault.Keys{Admin: keys.Admin}, err
		})
	}, whose
}

// adminHint tells a person how to become the administrator.
func (s *System) adminHint() string {
	const alone = ", in a shell of your own from which no agent is started."
	path, err := vault.DefaultPath(s.Getenv)
	address, _ := vault.IsAddress(path)
	switch {
	case err == nil && !address && !isFile(path):
		return "There is no vault yet: make one with 'postern init'."
	case err == nil && isFile(AdminKeyFile(path)):
		given := "put POSTERN_ADMIN_KEY_FILE=" + discovery.Quote(AdminKeyFile(path)) + " before 'postern'"
		if runtime.GOOS == "windows" {
			given = "set POSTERN_ADMIN_KEY_FILE=" + discovery.Quote(AdminKeyFile(path))
		}
		return "It takes the administrator's key: " + given + alone + " On a terminal 'postern approve' and what changes nothing find the key by themselves, and ask."
	}
	return "It takes the administrator's key: set POSTERN_ADMIN_KEY_FILE or POSTERN_ADMIN_KEY, as 'postern init' told" + alone
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
	keys, err := s.keysFrom(ctx, s.Keyring, s.unseal)
	if err != nil {
		return keys, err
	}
	if keys.Agent.IsZero() {
		if keys.Agent, err = s.keyIn(ctx, vault.AgentKeyVar, AgentKeyFile(path)); err != nil {
			return keys, err
		}
	}
	if keys.Admin.IsZero() {
		keys.Admin, err = s.keyIn(ctx, vault.AdminKeyVar, AdminKeyFile(path))
	}
	return keys, err
}
