package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/child"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/bolt"
)

// The environment variables keys come from. Each also has a _FILE and a
// _COMMAND form.
const (
	AdminKeyVar = "POSTERN_ADMIN_KEY"
	AgentKeyVar = "POSTERN_KEY"
	pathVar     = "POSTERN_DB"
)

const (
	keySize        = 32
	commandTimeout = 30 * time.Second
	maxKeySource   = 4096 // bytes read from a key file or a key command
)

// KeyringPrefix begins the name of a key in the system keyring, where the text
// of a key is expected: "keyring:NAME". A file with such a line is not secret.
const KeyringPrefix = "keyring:"

// Keyring looks up a key by its name; *login.SystemKeyring implements it.
type Keyring interface {
	// Secret returns the secret kept under the name. The error matches mail.ErrNotInKeyring
	// when it does not exist.
	Secret(ctx context.Context, name string) (mail.Secret, error)
}

// KeyringName returns the name of a key in the keyring. No account has such a name,
// so a key and a password are never confused.
func KeyringName(name string) string { return "key:" + name }

// Keys are the two keys of a vault, each the base64 form of 32 bytes. A zero key means
// that it is not given.
type Keys struct{ Admin, Agent mail.Secret }

// NewKey returns a fresh random key in the form of the environment variables.
func NewKey() (string, error) {
	k := make([]byte, keySize)
	if _, err := rand.Read(k); err != nil {
		return "", fmt.Errorf("the system gave no randomness for a key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(k), nil
}

// SameOwner gives a file the owner of another that it is to take the place of, where this
// process may: only root can give files away.
func SameOwner(file string, of fs.FileInfo) { bolt.SameOwner(file, of) }

// DefaultPath returns where the vault is: POSTERN_DB, which is a file's path or the address of
// a database, else postern/postern.db in the user's configuration directory. See Shared and
// Beside.
func DefaultPath(getenv func(string) string) (string, error) {
	if p := getenv(pathVar); p != "" {
		return p, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("%w: it has no default place, set %s: %w", ErrNoVault, pathVar, err)
	}
	return filepath.Join(dir, "postern", "postern.db"), nil
}

// KeysFrom reads both keys from POSTERN_ADMIN_KEY and POSTERN_KEY or their other forms:
// NAME_FILE is the path of a file that only its owner can read, NAME_COMMAND a program
// and its arguments, split at spaces and started without a shell, whose first line of
// output is the key. A key with no form set stays zero; one with two forms set is an
// error. It runs key commands for at most 30 s each. Where the process has a terminal a
// command can ask there; elsewhere its children are killed with it then. In place of the
// key each form can hold "keyring:NAME", which is looked up in keyring; nil means no
// keyring. An administrator's key in a variable or a file can be sealed, see
// PassphrasePrefix, and is opened by unseal; nil makes one an error that matches ErrSealed.
// Other errors match ErrBadKey, or ErrPermissions for a key file that others can read, or
// are unseal's. They name the variable, never its value.
func KeysFrom(ctx context.Context, getenv func(string) string, keyring Keyring, unseal Unseal) (Keys, error) {
	if unseal == nil {
		unseal = func(context.Context, string) (mail.Secret, error) { return mail.Secret{}, ErrSealed }
	}
	admin, err := keyFromEnv(ctx, getenv, AdminKeyVar, keyring, unseal)
	if err != nil {
		return Keys{}, err
	}
	agent, err := keyFromEnv(ctx, getenv, AgentKeyVar, keyring, nil)
	if err != nil {
		return Keys{}, err
	}
	return Keys{Admin: admin, Agent: agent}, nil
}

// keyFromEnv reads one key. With a nil unseal it cannot be a sealed one.
func keyFromEnv(ctx context.Context, getenv func(string) string, name string, keyring Keyring, unseal Unseal) (mail.Secret, error) {
	sources := []struct {
		name string
		read func(string) ([]byte, error)
	}{
		{name, func(s string) ([]byte, error) { return []byte(s), nil }},
		{name + "_FILE", keyFile},
		{name + "_COMMAND", func(s string) ([]byte, error) { return keyCommand(ctx, s, hasTerminal()) }},
	}
	set := -1
	for i, s := range sources {
		if getenv(s.name) == "" {
			continue
		}
		if set >= 0 {
			return mail.Secret{}, fmt.Errorf("%w: %s and %s are both set, set one", ErrBadKey, sources[set].name, s.name)
		}
		set = i
	}
	if set < 0 {
		return mail.Secret{}, nil
	}
	src := sources[set]
	text, err := src.read(getenv(src.name))
	if err != nil {
		return mail.Secret{}, fmt.Errorf("%s: %w", src.name, err)
	}
	defer clear(text)
	secret := mail.NewSecret(bytes.TrimRight(text, "\r\n"))
	if secret.IsZero() {
		return mail.Secret{}, fmt.Errorf("%s: %w: it is empty", src.name, ErrBadKey)
	}
	if named, ok := strings.CutPrefix(secret.Reveal(), KeyringPrefix); ok {
		if secret, err = keyFromKeyring(ctx, keyring, named); err != nil {
			return mail.Secret{}, fmt.Errorf("%s: %w", src.name, err)
		}
	} else if unseal != nil && set < 2 && strings.HasPrefix(secret.Reveal(), PassphrasePrefix) {
		if secret, err = unseal(ctx, secret.Reveal()); err != nil {
			return mail.Secret{}, fmt.Errorf("%s: %w", src.name, err)
		}
		if secret.IsZero() {
			return secret, nil
		}
	}
	if _, err := decodeKey(secret, src.name); err != nil {
		return mail.Secret{}, err
	}
	return secret, nil
}

// keyFromKeyring fetches a named key. The keyring's errors are about passwords of
// accounts, so only their kind is passed on.
func keyFromKeyring(ctx context.Context, keyring Keyring, name string) (mail.Secret, error) {
	if !mail.ValidAccountName(name) {
		return mail.Secret{}, fmt.Errorf("%w: %s must be followed by the name of a key, of letters, digits, - and _", ErrBadKey, KeyringPrefix)
	}
	if keyring == nil {
		return mail.Secret{}, fmt.Errorf("%w: there is no keyring here to look %s up in", ErrBadKey, name)
	}
	secret, err := keyring.Secret(ctx, KeyringName(name))
	switch {
	case err == nil:
		return secret, nil
	case ctx.Err() != nil:
		return mail.Secret{}, fmt.Errorf("%w: the system keyring did not answer in time, it may be locked: %w", ErrBadKey, ctx.Err())
	case errors.Is(err, mail.ErrNotInKeyring):
		return mail.Secret{}, fmt.Errorf("%w: the system keyring has no key %s", ErrBadKey, name)
	}
	return mail.Secret{}, fmt.Errorf("%w: the system keyring cannot be used now, so the key %s is out of reach", ErrBadKey, name)
}

// decodeKey returns the 32 bytes of a key. what names the key in the error.
func decodeKey(s mail.Secret, what string) ([]byte, error) {
	text := s.Reveal()
	// The decoder skips line ends inside the text; a key has none.
	if !strings.ContainsAny(text, "\r\n") {
		if k, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(k) == keySize {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s: %w: it must be 32 bytes in base64, as keygen prints them", what, ErrBadKey)
}

func keyFile(path string) ([]byte, error) {
	// Opening a pipe would wait for its writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrBadKey, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	if !bolt.PrivateMode(info.Mode()) {
		return nil, fmt.Errorf("%w: %s has mode %04o, want 0600", ErrPermissions, path, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKeySource))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	return b, nil
}

// hasTerminal reports whether the process has a terminal on which its children can ask
// a person.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// keyCommand runs a key command. One that may ask on the terminal stays in our own
// process group, which has the terminal, and is killed without its children.
func keyCommand(ctx context.Context, command string, asks bool) ([]byte, error) {
	argv := strings.Fields(command)
	if len(argv) == 0 {
		return nil, fmt.Errorf("%w: the command is empty", ErrBadKey)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	// The command needs only the key it fetches.
	out, err := child.Run(ctx, child.Program{Args: argv, Env: child.Without(os.Environ(), "POSTERN_", "MAIL_IMAP_"), MaxOutput: maxKeySource,
		Trusted: true, Terminal: asks})
	if err != nil {
		clear(out)
		if errors.Is(err, child.ErrOutput) {
			err = errors.New("it prints more than a key")
		}
		// Arguments can be confidential; the program's name is enough to find it.
		return nil, fmt.Errorf("%w: %s: %w", ErrBadKey, argv[0], withoutPath(err))
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return line, nil
}

func withoutPath(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
