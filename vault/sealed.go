package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/scrypt"

	"github.com/postern-mail/postern/mail"
)

// PassphrasePrefix begins the text of an administrator's key that is sealed with a
// passphrase, where the text of a key is expected. The rest is base64url of a version, the
// cost of scrypt (RFC 7914) as the logarithm of N, r and p, a salt, and the key sealed
// with AES-256-GCM, which also binds what stands before it.
const PassphrasePrefix = "passphrase:"

// MinPassphrase is how many characters a new passphrase must have.
const MinPassphrase = 8

var (
	// ErrPassphrase says that a passphrase does not open a sealed key.
	ErrPassphrase = errors.New("the passphrase does not open the administrator's key")
	// ErrSealed says that a key is sealed and nobody can be asked for its passphrase.
	ErrSealed = errors.New("the administrator's key is sealed with a passphrase, and there is no terminal to ask for it")
)

const (
	sealedVersion = 1
	sealedCost    = 17 // 128 MiB and some tenths of a second; fewer or more when read, within these:
	minSealedCost = 10
	maxSealedCost = 20
	scryptR       = 8
	scryptP       = 1
	saltSize      = 16
	sealedHead    = 4 + saltSize
	sealedSize    = sealedHead + 12 + keySize + 16 // with the nonce and the tag of GCM
)

// Unseal opens a sealed key for KeysFrom. A zero key counts as none.
type Unseal func(ctx context.Context, text string) (mail.Secret, error)

// LeaveSealed is the Unseal of who can do without the administrator's key.
func LeaveSealed(context.Context, string) (mail.Secret, error) { return mail.Secret{}, nil }

// SealKey returns the text of a key sealed with a passphrase, one line that begins with
// PassphrasePrefix. It takes some tenths of a second.
func SealKey(key, passphrase mail.Secret) (string, error) {
	return sealKey(key, passphrase, sealedCost)
}

func sealKey(key, passphrase mail.Secret, cost byte) (string, error) {
	plain, err := decodeKey(key, "the key to seal")
	if err != nil {
		return "", err
	}
	defer clear(plain)
	if passphrase.IsZero() {
		return "", errors.New("the passphrase is empty")
	}
	head := append([]byte{sealedVersion, cost, scryptR, scryptP}, make([]byte, saltSize)...)
	if _, err := rand.Read(head[4:]); err != nil {
		return "", fmt.Errorf("the system gave no randomness for a salt: %w", err)
	}
	aead, err := passphraseSealer(passphrase, head)
	if err != nil {
		return "", err
	}
	return PassphrasePrefix + base64.RawURLEncoding.EncodeToString(aead.Seal(head, nil, plain, head)), nil
}

// OpenKey returns the key in a text that SealKey made. The error matches ErrPassphrase for
// another passphrase, or where the text was altered, and ErrBadKey for any other text. It
// uses at most 1 GiB of memory.
func OpenKey(text string, passphrase mail.Secret) (mail.Secret, error) {
	encoded, ok := strings.CutPrefix(text, PassphrasePrefix)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || strings.ContainsAny(encoded, "\r\n") || len(sealed) != sealedSize || sealed[0] != sealedVersion ||
		sealed[1] < minSealedCost || sealed[1] > maxSealedCost || sealed[2] != scryptR || sealed[3] != scryptP {
		return mail.Secret{}, fmt.Errorf("%w: what follows %s is not a key that this version sealed", ErrBadKey, PassphrasePrefix)
	}
	if passphrase.IsZero() { // no key is sealed with nothing
		return mail.Secret{}, ErrPassphrase
	}
	aead, err := passphraseSealer(passphrase, sealed[:sealedHead])
	if err != nil {
		return mail.Secret{}, err
	}
	plain, err := aead.Open(nil, nil, sealed[sealedHead:], sealed[:sealedHead])
	if err != nil {
		return mail.Secret{}, ErrPassphrase
	}
	defer clear(plain)
	key := base64.StdEncoding.AppendEncode(nil, plain)
	defer clear(key)
	return mail.NewSecret(key), nil
}

// passphraseSealer seals with the key that a passphrase makes by the parameters of a head.
func passphraseSealer(passphrase mail.Secret, head []byte) (cipher.AEAD, error) {
	typed := []byte(passphrase.Reveal())
	defer clear(typed)
	key, err := scrypt.Key(typed, head[4:], 1<<head[1], int(head[2]), int(head[3]), keySize)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
