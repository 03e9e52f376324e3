package main

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"testing"

	"golang.org/x/crypto/scrypt"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// cheaplyVar has a machine's process seal a key at the least cost. In a full run
// person/passphrase.txtar seals as the program does, and person/passphrase_rekey.txtar;
// with -short no process of this package does, but a test of house, where a key is replaced.
const cheaplyVar = "POSTERN_TEST_SEAL_CHEAPLY"

// sealCheaply is vault.SealKey at the least cost that opens: most tests open the key again and
// again.
func sealCheaply(key, passphrase mail.Secret) (string, error) {
	plain, err := base64.StdEncoding.DecodeString(key.Reveal())
	if err != nil {
		return "", err
	}
	head := append([]byte{1, 10, 8, 1}, make([]byte, 16)...) // version, log N, r, p, salt
	made, err := scrypt.Key([]byte(passphrase.Reveal()), head[4:], 1<<10, 8, 1, 32)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(made)
	if err != nil {
		return "", err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return "", err
	}
	return vault.PassphrasePrefix + base64.RawURLEncoding.EncodeToString(aead.Seal(head, nil, plain, head)), nil
}

// sealedCheaply is the line of a key that is sealed with the passphrase.
func sealedCheaply(t testing.TB, key string) string {
	t.Helper()
	text, err := sealCheaply(mail.NewSecret([]byte(key)), mail.NewSecret([]byte(passphrase)))
	if err != nil {
		t.Fatal(err)
	}
	return text + "\n"
}
