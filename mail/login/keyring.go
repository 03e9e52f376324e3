package login

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/postern-mail/postern/mail"
	"github.com/zalando/go-keyring"
	"golang.org/x/sync/singleflight"
)

// Keyring is the system's store of its user's passwords. Implementations are safe
// for concurrent use.
type Keyring interface {
	// Secret returns the password of an account, fetched at each call. The error matches
	// ErrNotInKeyring when there is no password.
	Secret(ctx context.Context, account string) (mail.Secret, error)
}

// KeyringService is the name under which the system keyring keeps our passwords;
// the user of each is the account's name.
const KeyringService = "postern"

// SystemKeyring is the keyring of the user's session: the Secret Service on Linux
// and the BSDs, the Keychain on macOS, the Credential Manager on Windows. The zero
// SystemKeyring is ready. It is safe for concurrent use and must not be copied.
//
// The system may ask a person to unlock it, for as long as that takes, and cannot
// be told to stop: a call returns when its context ends, the call of the system goes on,
// and the next Secret of the same account joins it instead of asking again. Failures are
// *Error.
type SystemKeyring struct {
	get func(account string) (string, error) // nil means the library's

	fetching singleflight.Group
}

var _ Keyring = (*SystemKeyring)(nil)

// Secret implements Keyring.
func (k *SystemKeyring) Secret(ctx context.Context, account string) (mail.Secret, error) {
	fetched := k.fetching.DoChan(account, func() (any, error) {
		var value string
		err := guarded(func() (err error) {
			value, err = k.fetch(account)
			return err
		})
		return value, err
	})
	select {
	case r := <-fetched:
		value, _ := r.Val.(string)
		return mail.NewSecret([]byte(value)), keyringError(ctx, account, r.Err)
	case <-ctx.Done():
		return mail.Secret{}, keyringError(ctx, account, ctx.Err())
	}
}

func (k *SystemKeyring) fetch(account string) (value string, err error) {
	if k.get != nil {
		return k.get(account)
	}
	value, err = keyring.Get(KeyringService, account)
	if err == nil && value == "" {
		err = keyring.ErrNotFound
	}
	return value, err
}

// Set keeps the password of an account, in place of the one it had. When ctx ends
// first, it may still be kept later.
func (k *SystemKeyring) Set(ctx context.Context, account string, s mail.Secret) error {
	value := s.Reveal()
	return keyringDo(ctx, account, func() error { return keyring.Set(KeyringService, account, value) })
}

// Delete forgets the password of an account. The error matches ErrNotInKeyring when there
// is no password. When ctx ends first, it may still be forgotten later.
func (k *SystemKeyring) Delete(ctx context.Context, account string) error {
	return keyringDo(ctx, account, func() error { return keyring.Delete(KeyringService, account) })
}

func keyringDo(ctx context.Context, account string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- guarded(do) }()
	select {
	case err := <-done:
		return keyringError(ctx, account, err)
	case <-ctx.Done():
		return keyringError(ctx, account, ctx.Err())
	}
}

var errNoSessionBus = errors.New("there is no session bus")

// guarded calls the library. The library would start a session bus of its own where none
// runs, and it panics when the bus goes away while a person is being asked.
func guarded(do func() error) (err error) {
	if !sessionBus(os.Getenv, fmt.Sprintf("/run/user/%d", os.Getuid())) {
		return errNoSessionBus
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the keyring's answer cannot be used: %T", v)
		}
	}()
	return do()
}

// sessionBus reports whether there is a session bus, on systems whose keyring needs one.
func sessionBus(getenv func(string) string, runtimeDir string) bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return true
	}
	if a := getenv("DBUS_SESSION_BUS_ADDRESS"); a != "" && a != "autolaunch:" {
		return true
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(runtimeDir, name)); err == nil {
			return true
		}
	}
	return false
}

// keyringError gives a failure its form. The keyring's own words stay out of the
// message.
func keyringError(ctx context.Context, account string, err error) error {
	const instead = mail.AdviceNoKeyring
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return credentialError(account, mail.KindConfig, "The system keyring has no password for the account.",
			mail.AdviceStorePassword, mail.ErrNotInKeyring)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return credentialError(account, mail.KindTimeout, "The system keyring did not answer in time; it may be locked.",
			mail.AdviceUnlockKeyring, err)
	case errors.Is(err, errNoSessionBus):
		return credentialError(account, mail.KindConfig, "The system keyring cannot be reached: there is no session bus.", instead, err)
	case errors.Is(err, keyring.ErrUnsupportedPlatform):
		return credentialError(account, mail.KindConfig, "This system has no keyring that can be used.", instead, err)
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return credentialError(account, mail.KindInvalid, "The password is longer than the system keyring takes.", mail.AdviceNotInKeyring, err)
	}
	return credentialError(account, mail.KindConfig, "The system keyring cannot be used now.", "Check that it runs and is unlocked. "+instead, err)
}
