package vault

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
)

func secret(s string) mail.Secret { return mail.NewSecret([]byte(s)) }

func TestASealedKeyOpensWithItsPassphraseAlone(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	if dear := size(1, 0) == 1; dear { // no vault is in it
		text, err := SealKey(key, secret("correct horse"))
		if b, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, PassphrasePrefix)); err != nil || b[1] != sealedCost {
			t.Errorf("the program seals with another cost: %x, %v", b, err)
		}
	}
	text, err := sealKey(key, secret("correct horse"), minSealedCost)
	must(t, err)
	if !strings.HasPrefix(text, PassphrasePrefix) || strings.ContainsAny(text, "\r\n ") || len(text) > 256 || strings.Contains(text, "horse") || strings.Contains(text, key.Reveal()) {
		t.Errorf("the text is %q", text)
	}
	if got, err := OpenKey(text, secret("correct horse")); err != nil || !got.Equal(key) {
		t.Errorf("it does not open: %v", err)
	}
	for _, p := range []string{"", "correct hors", "correct horse ", "Correct horse"} {
		if got, err := OpenKey(text, secret(p)); !errors.Is(err, ErrPassphrase) || errors.Is(err, ErrBadKey) || !got.IsZero() {
			t.Errorf("%q: %v", p, err)
		}
	}
	again, err := sealKey(key, secret("correct horse"), minSealedCost)
	must(t, err)
	if again == text {
		t.Error("the same key is sealed twice in the same way")
	}
	wantErr(t, second(SealKey(secret("c2hvcnQ="), secret("correct horse"))), ErrBadKey, "what is no key")
	if _, err := SealKey(key, mail.Secret{}); err == nil {
		t.Error("a key is sealed with nothing")
	}
}

// Each part of the text is bound, and what asks for another cost than the allowed is refused
// before any work.
func TestAnAlteredSealedKeyIsRefused(t *testing.T) {
	t.Parallel()
	text, err := sealKey(newKey(t), secret("correct horse"), minSealedCost)
	must(t, err)
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, PassphrasePrefix))
	must(t, err)
	with := func(at int, value byte) string {
		other := bytes.Clone(sealed)
		other[at] = value
		return PassphrasePrefix + base64.RawURLEncoding.EncodeToString(other)
	}
	for at := sealedHead - saltSize; at < len(sealed); at++ {
		wantErr(t, second(OpenKey(with(at, sealed[at]^1), secret("correct horse"))), ErrPassphrase, "byte %d", at)
	}
	wantErr(t, second(OpenKey(with(1, minSealedCost+1), secret("correct horse"))), ErrPassphrase, "another cost")
	for name, bad := range map[string]string{
		"version": with(0, 2), "too cheap": with(1, minSealedCost-1), "too dear": with(1, maxSealedCost+1), "r": with(2, 16), "p": with(3, 2),
		"short": text[:len(text)-4], "long": text + "AAAA", "empty": PassphrasePrefix, "no prefix": strings.TrimPrefix(text, PassphrasePrefix),
		"line end": text + "\n", "line end inside": text[:40] + "\n" + text[40:], "padded": text + "=", "other alphabet": text[:len(text)-2] + "+/",
	} {
		if got, err := OpenKey(bad, secret("correct horse")); !errors.Is(err, ErrBadKey) || !got.IsZero() || strings.Contains(err.Error(), text[20:40]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only the administrator's key may be sealed, and only in a variable or a file; it is opened
// by whoever reads it.
func TestKeysFromOpensASealedKey(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	text, err := sealKey(key, secret("correct horse"), minSealedCost)
	must(t, err)
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	open := func(_ context.Context, text string) (mail.Secret, error) {
		return OpenKey(text, secret("correct horse"))
	}
	failing := errors.New("nobody is there")
	for name, c := range map[string]struct {
		variable, value string
		unseal          Unseal
		want            error
		there           bool
	}{
		"variable":         {AdminKeyVar, text, open, nil, true},
		"file":             {AdminKeyVar + "_FILE", file, open, nil, true},
		"agent":            {AgentKeyVar, text, open, ErrBadKey, false},
		"nobody":           {AdminKeyVar, text, nil, ErrSealed, false},
		"refused":          {AdminKeyVar, text, func(context.Context, string) (mail.Secret, error) { return mail.Secret{}, failing }, failing, false},
		"left closed":      {AdminKeyVar, text, LeaveSealed, nil, false},
		"opened to no key": {AdminKeyVar, text, func(context.Context, string) (mail.Secret, error) { return secret("c2hvcnQ="), nil }, ErrBadKey, false},
	} {
		k, err := KeysFrom(t.Context(), env(map[string]string{c.variable: c.value}), nil, c.unseal)
		if !errors.Is(err, c.want) || c.there != k.Admin.Equal(key) || !c.there && !k.Admin.IsZero() || !k.Agent.IsZero() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOpenKey(f *testing.F) {
	key := secret(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), keySize))) // the same in each process of the fuzzer
	for _, cost := range []byte{minSealedCost, minSealedCost + 1} {
		text, err := sealKey(key, secret("correct horse"), cost)
		must(f, err)
		f.Add(text, "correct horse")
		f.Add(text, "")
		f.Add(text[:30], "correct horse")
	}
	f.Add(PassphrasePrefix+strings.Repeat("A", 107), "x")
	f.Fuzz(func(t *testing.T, text, passphrase string) {
		if b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, PassphrasePrefix)); err == nil && len(b) > 1 && b[1] > minSealedCost+2 && b[1] <= maxSealedCost {
			t.Skip("it would only take long")
		}
		got, err := OpenKey(text, secret(passphrase))
		switch {
		case err == nil && (!got.Equal(key) || strings.TrimRight(passphrase, "\x00") != "correct horse"): // HMAC fills a key up with zeros
			t.Errorf("%q opens with %q", text, passphrase)
		case err != nil && (!got.IsZero() || !errors.Is(err, ErrBadKey) && !errors.Is(err, ErrPassphrase)):
			t.Errorf("%q: %v", text, err)
		case err != nil && passphrase != "" && len(passphrase) > 8 && strings.Contains(err.Error(), passphrase):
			t.Errorf("the passphrase is in %v", err)
		}
	})
}
