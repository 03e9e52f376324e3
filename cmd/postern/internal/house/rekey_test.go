package house

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// fakeRing is a keyring in memory. With failing it fails to set what is already there, as
// one that is locked in the middle of vault rekey does.
type fakeRing struct {
	secrets map[string]string
	failing bool
}

var errLocked = errors.New("locked")

func (r *fakeRing) Secret(_ context.Context, name string) (mail.Secret, error) {
	text, ok := r.secrets[name]
	if !ok {
		return mail.Secret{}, mail.ErrNotInKeyring
	}
	return mail.NewSecret([]byte(text)), nil
}

func (r *fakeRing) Set(_ context.Context, name string, s mail.Secret) error {
	if _, there := r.secrets[name]; there && r.failing {
		return errLocked
	}
	r.secrets[name] = s.Reveal()
	return nil
}

func (r *fakeRing) Delete(_ context.Context, name string) error {
	delete(r.secrets, name)
	return nil
}

// adminKey is the administrator's key of the vaults here. Sealed with "correct horse" at the
// least cost that opens, it is sealedAdminKey.
const (
	adminKey       = "ojbGDc0fppi/Zt8dthNBFhQOsYCIIg7GsLGhVG6Zdps="
	sealedAdminKey = "passphrase:AQoIAajC6aUN3xRTIedo1c-qgSpoilW3UFKNiKjzwm_HL-6yzWi7YoOo8uJp0NFJsy1G3dlIHAVmmre5CVh6n6G5Dbx2N6O5VL89G0V8zDI"
)

// rekeying is a system whose administrator's key is in the keyring and whose agent's key
// is in a file beside the vault.
func rekeying(t *testing.T) (s *System, ring *fakeRing, agent string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postern.db")
	ring = &fakeRing{secrets: map[string]string{}}
	agent = AgentKeyFile(path)
	if err := settleKey(agent); err != nil {
		t.Fatal(err)
	}
	ring.secrets["key:main"] = adminKey
	env := map[string]string{"POSTERN_DB": path, "POSTERN_ADMIN_KEY": "keyring:main"}
	s = &System{Getenv: func(name string) string { return env[name] }, Keyring: ring, Own: &OwnKeys{}}
	keys, err := s.FindKeys(t.Context(), path)
	if err == nil {
		_, err = vault.Init(t.Context(), path, keys)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, ring, agent
}

func TestAKeyTakesThePlaceOfTheFormerOneOrDoesNot(t *testing.T) {
	s, ring, agent := rekeying(t)
	read := func() (string, string) {
		t.Helper()
		b, err := os.ReadFile(agent)
		if err != nil {
			t.Fatal(err)
		}
		return ring.secrets["key:main"], string(b)
	}
	owner, agents := newStore(s.Opener(false)), newStore(s.Opener(true))
	both := admin.Rekeying{Admin: true, Agent: true}
	works := func(what string) {
		t.Helper()
		for _, st := range []*store{owner, agents, newStore(s.Opener(false)), newStore(s.Opener(true))} {
			if _, err := st.Config(t.Context()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		keys, err := s.FindKeys(t.Context(), s.Getenv("POSTERN_DB"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := vault.Init(t.Context(), s.Getenv("POSTERN_DB"), keys); err != nil {
			t.Errorf("%s: with the keys that init finds: %v", what, err)
		}
	}
	works("before")
	adminBefore, agentBefore := read()
	done, err := s.rekey(t.Context(), owner, both)
	if err != nil || len(done) != 2 || done[0] != (admin.NewKey{Key: "admin", In: "the system keyring"}) || done[1] != (admin.NewKey{Key: "agent", In: agent}) {
		t.Fatalf("%+v, %v", done, err)
	}
	works("after")
	if a, b := read(); a == adminBefore || b == agentBefore || len(ring.secrets) != 1 {
		t.Errorf("the former keys are still in their places; %d entries", len(ring.secrets))
	}

	// The process ends after the vault was rekeyed and before the keys took their places.
	ring.failing = true
	adminBefore, _ = read()
	if _, err := s.rekey(t.Context(), owner, both); !errors.Is(err, errLocked) {
		t.Fatalf("a keyring that is locked meanwhile: %v", err)
	}
	if a, _ := read(); a != adminBefore || len(ring.secrets) != 2 {
		t.Fatal("the keyring has only the new key")
	}
	if err := os.Rename(agent, agent+".new"); err != nil { // as it was before the last step
		t.Fatal(err)
	}
	if err := os.WriteFile(agent, []byte(agentBefore), 0o600); err != nil {
		t.Fatal(err)
	}
	works("with both new keys beside the former ones")
	ring.failing = false
	if _, err := s.rekey(t.Context(), owner, admin.Rekeying{Agent: true}); err != nil {
		t.Fatal(err)
	}
	works("after the next one")
	if a, _ := read(); a == adminBefore || len(ring.secrets) != 1 {
		t.Error("the administrator's key did not take its place")
	}

	// It ends before the vault was rekeyed: what it left is removed.
	adminBefore, agentBefore = read()
	stray, err := vault.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	ring.secrets["key:main-new"] = stray
	if err := os.WriteFile(agent+".new", []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	works("with new keys that were never used")
	places, err := s.settled(t.Context(), s.Getenv("POSTERN_DB"))
	if err != nil || places[1].file != agent {
		t.Fatalf("%+v, %v", places, err)
	}
	if a, b := read(); a != adminBefore || b != agentBefore || len(ring.secrets) != 1 || isFile(agent+".new") {
		t.Error("what was left is still there, or took another's place")
	}
	works("after that")
}

func TestRekeyNeedsAVaultThatStays(t *testing.T) {
	s, _, _ := rekeying(t)
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = remove() }()
	if _, err := s.rekey(t.Context(), newStore(func(context.Context) (*vault.Vault, error) { return v, nil }), admin.Rekeying{Admin: true, Agent: true}); err == nil {
		t.Error("a vault that ends with the process gets new keys")
	}
	if _, err := s.rekey(t.Context(), newStore(s.Opener(true)), admin.Rekeying{Agent: true}); !errors.Is(err, vault.ErrAdminRequired) {
		t.Errorf("an agent: %v", err)
	}
}

// A sealed key is opened by asking once, at most three times; what takes its place is sealed
// with the same passphrase, and what a killed process left beside it is judged without asking.
func TestASealedKeyIsReplacedByASealedOne(t *testing.T) {
	t.Parallel()
	s, _, _ := rekeying(t)
	file, path := filepath.Join(t.TempDir(), "admin.key"), s.Getenv("POSTERN_DB")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, sealedAdminKey+"\n")
	env := map[string]string{"POSTERN_DB": path, "POSTERN_ADMIN_KEY_FILE": file}
	s.Getenv = func(name string) string { return env[name] }
	var answers []string
	s.Passphrase = func(_ context.Context, again bool) (mail.Secret, error) {
		if len(answers) == 0 {
			t.Error("it is asked again")
			return mail.Secret{}, context.Canceled
		}
		answer := answers[0]
		answers = answers[1:]
		return mail.NewSecret([]byte(answer)), nil
	}
	owner := newStore(s.Opener(false))
	if _, err := owner.Config(dispensable(t.Context())); !errors.Is(err, vault.ErrNoKey) {
		t.Errorf("help: %v", err)
	}
	if _, err := newStore(s.Opener(true)).Config(t.Context()); err != nil {
		t.Errorf("an agent: %v", err)
	}
	answers = make([]string, 3)
	if _, err := owner.Config(t.Context()); !errors.Is(err, vault.ErrPassphrase) || len(answers) > 0 {
		t.Errorf("three wrong ones: %v, %d not asked", err, len(answers))
	}
	answers = []string{"", "", "correct horse"}
	for range testmain.Rounds(1, 2) { // the second opens what the first has sealed
		before, err := os.ReadFile(file)
		if err == nil {
			_, err = s.rekey(t.Context(), owner, admin.Rekeying{Admin: true})
		}
		after, failed := os.ReadFile(file)
		if err != nil || failed != nil || len(answers) > 0 || string(after) == string(before) || !strings.HasPrefix(string(after), vault.PassphrasePrefix) || isFile(file+".new") {
			t.Fatalf("%q, %v, %v", after, err, failed)
		}
	}
	// A key of no vault, sealed with the same passphrase at the least cost that opens.
	const stray = "passphrase:AQoIAY47ON-XLkAf5hBjMRhVlXJKmAoR4VAqqU7z69obx9fbpPoKUxooO-N4uLyeW3yLHkXCVy3mFrsj2EZKsuiqiahvC2u4OsiMPY6Mvmk\n"
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, left := range map[string]string{"half": stray[:40], "of no vault": stray} {
		write(file+".new", left)
		if _, err := s.settled(t.Context(), path); err != nil || isFile(file+".new") {
			t.Errorf("%s: %v", what, err)
		}
	}
	write(file+".new", string(kept)) // as before the last step
	write(file, stray)
	if _, err := s.settled(t.Context(), path); err != nil || isFile(file+".new") {
		t.Errorf("the one that opens: %v", err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(kept) {
		t.Errorf("it did not take its place: %v", err)
	}
}
