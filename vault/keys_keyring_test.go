package vault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail"
)

type fakeKeyring map[string]string

func (r fakeKeyring) Secret(ctx context.Context, name string) (mail.Secret, error) {
	if err := ctx.Err(); err != nil {
		return mail.Secret{}, err
	}
	if name == "key:broken" {
		return mail.Secret{}, &mail.Error{Kind: mail.KindConfig, Message: "words of the keyring about an account"}
	}
	s, ok := r[name]
	if !ok {
		return mail.Secret{}, mail.ErrNotInKeyring
	}
	return mail.NewSecret([]byte(s)), nil
}

// Every form that can hold a key can hold the name of one in the keyring instead; a
// name that the keyring does not have is an error.
func TestKeysNamedInTheKeyring(t *testing.T) {
	key := newKey(t).Reveal()
	ring := fakeKeyring{"key:agent-1": key, "key:short": "c2hvcnQ=", "key:chain": "keyring:agent-1", "plain": key}
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, []byte("keyring:agent-1\n"), 0o600))
	for name, c := range map[string]struct {
		variable, value string
		ring            Keyring
		ok              bool
		said            string
	}{
		"value":             {"POSTERN_KEY", "keyring:agent-1", ring, true, ""},
		"file":              {"POSTERN_KEY_FILE", file, ring, true, ""},
		"unknown":           {"POSTERN_KEY", "keyring:agent-2", ring, false, "has no key agent-2"},
		"an account's name": {"POSTERN_KEY", "keyring:plain", ring, false, "has no key plain"},
		"no name":           {"POSTERN_KEY", "keyring:", ring, false, "followed by the name"},
		"bad name":          {"POSTERN_KEY", "keyring:a b", ring, false, "followed by the name"},
		"no key in it":      {"POSTERN_KEY", "keyring:short", ring, false, "32 bytes"},
		"not twice":         {"POSTERN_KEY", "keyring:chain", ring, false, "32 bytes"},
		"keyring out":       {"POSTERN_KEY", "keyring:broken", ring, false, "cannot be used now"},
		"no keyring":        {"POSTERN_KEY", "keyring:agent-1", nil, false, "no keyring here"},
	} {
		k, err := KeysFrom(t.Context(), env(map[string]string{c.variable: c.value}), c.ring, nil)
		switch {
		case c.ok && (err != nil || k.Agent.Reveal() != key || !k.Admin.IsZero()):
			t.Errorf("%s: %v", name, err)
		case !c.ok && (!errors.Is(err, ErrBadKey) || !k.Agent.IsZero() || !strings.Contains(err.Error(), c.said) || strings.Contains(err.Error(), "words of the keyring") || strings.Contains(err.Error(), "c2hvcnQ")):
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, second(KeysFrom(ctx, env(map[string]string{"POSTERN_KEY": "keyring:agent-1"}), ring, nil)), context.Canceled, "stopped")
}
