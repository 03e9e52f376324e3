package vault

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
)

func env(m map[string]string) func(string) string { return func(name string) string { return m[name] } }

func TestKeysFromEnv(t *testing.T) {
	t.Parallel()
	if newKey(t).Equal(newKey(t)) {
		t.Error("two new keys are the same")
	}
	const admin, agent = fixtureAdminKey, fixtureAgentKey
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), mode))
		must(t, os.Chmod(path, mode))
		return path
	}
	write("private", agent+"\n", 0o600)
	write("empty", "", 0o600)
	fill := strings.NewReplacer("ADMIN", admin, "AGENT", agent, "DIR", dir)
	for _, c := range testmain.Table[struct {
		Name                string
		Admin, Agent, Fails bool
		Environ             []string
	}](t, "testdata/cases/keys.txt") {
		vars := map[string]string{}
		for _, v := range c.Environ {
			name, value, _ := strings.Cut(v, "=")
			vars[name] = fill.Replace(value)
		}
		k, err := KeysFrom(t.Context(), env(vars), nil, nil)
		if errors.Is(err, ErrBadKey) != c.Fails || err != nil && !c.Fails || k.Admin.Equal(secret(admin)) != c.Admin || k.Agent.Equal(secret(agent)) != c.Agent || !c.Admin && !k.Admin.IsZero() || !c.Agent && !k.Agent.IsZero() {
			t.Errorf("%s: %v, want a failure %v", c.Name, err, c.Fails)
		}
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "POSTERN_") {
			t.Errorf("%s: %v names no variable", c.Name, err)
		}
		for _, secret := range []string{admin, agent, agent[:20], "c2hvcnQ=", strings.Repeat("!", 44)} {
			if c.Name != "no shell in here" && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v shows a value", c.Name, err)
			}
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		path := write("open", agent, mode)
		wantErr(t, second(KeysFrom(t.Context(), env(map[string]string{"POSTERN_KEY_FILE": path}), nil, nil)), ErrPermissions, "a key file of mode %o", mode)
	}
}

// The test binary itself is the key command; see runRole. A program that it leaves running, such
// as an agent that remembers a passphrase, may keep its output open. One that hangs is killed with
// its children.
func TestKeyCommand(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	t.Setenv(pathEnv, l.Addr().String())
	// child waits for a child of the command, whose connection ends when it does.
	child := func() net.Conn {
		conn, err := l.Accept()
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for role, want := range map[string]error{"print-key": nil, "print-key-and-fail": ErrBadKey, "leave-a-child": nil} {
		t.Setenv(roleVar, role)
		k, err := KeysFrom(t.Context(), env(map[string]string{"POSTERN_KEY_COMMAND": self + "  ignored   arguments"}), nil, nil)
		if !errors.Is(err, want) || want == nil && k.Agent.Reveal() != fixtureAgentKey || want != nil && (!k.Agent.IsZero() || strings.Contains(err.Error(), fixtureAgentKey)) || !k.Admin.IsZero() {
			t.Errorf("%s: %v", role, err)
		}
	}
	_ = child()
	if runtime.GOOS == "windows" {
		return // there are no process groups here
	}
	t.Setenv(roleVar, "hang-with-a-child")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := keyCommand(ctx, self, false)
		ended <- err
	}()
	conn := child()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrBadKey) {
		t.Errorf("%v, want Canceled", err)
	}
	must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what the command had started lives on")
	}
}

func TestDefaultPath(t *testing.T) {
	if p, err := DefaultPath(env(map[string]string{"POSTERN_DB": "/somewhere/x.db"})); err != nil || p != "/somewhere/x.db" {
		t.Errorf("DefaultPath = %q, %v", p, err)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AppData", t.TempDir())
	p, err := DefaultPath(env(nil))
	if err != nil || !strings.HasSuffix(p, filepath.Join("postern", "postern.db")) || !filepath.IsAbs(p) {
		t.Errorf("DefaultPath = %q, %v", p, err)
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, "")
	}
	if p, err := DefaultPath(env(nil)); !errors.Is(err, ErrNoVault) {
		t.Errorf("without a home DefaultPath = %q, %v", p, err)
	}
}

type fakeKeyring map[string]string

func (r fakeKeyring) Secret(ctx context.Context, name string) (mail.Secret, error) {
	s, ok := r[name]
	switch {
	case ctx.Err() != nil:
		return mail.Secret{}, ctx.Err()
	case name == "key:broken":
		return mail.Secret{}, &mail.Error{Kind: mail.KindConfig, Message: "words of the keyring about an account"}
	case !ok:
		return mail.Secret{}, mail.ErrNotInKeyring
	}
	return mail.NewSecret([]byte(s)), nil
}

// Every form that can hold a key can hold the name of one in the keyring instead; a
// name that the keyring does not have is an error.
func TestKeysNamedInTheKeyring(t *testing.T) {
	t.Parallel()
	key := newKey(t).Reveal()
	ring := fakeKeyring{"key:agent-1": key, "key:short": "c2hvcnQ=", "key:chain": "keyring:agent-1", "plain": key}
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, []byte("keyring:agent-1\n"), 0o600))
	for _, c := range testmain.Table[struct {
		Variable, Value string
		There           bool
		Said            string
	}](t, "testdata/cases/keyring.txt") {
		var keyring Keyring
		if c.There {
			keyring = ring
		}
		k, err := KeysFrom(t.Context(), env(map[string]string{c.Variable: strings.Replace(c.Value, "FILE", file, 1)}), keyring, nil)
		switch {
		case c.Said == "" && (err != nil || k.Agent.Reveal() != key || !k.Admin.IsZero()):
			t.Errorf("%s: %v", c.Value, err)
		case c.Said != "" && (!errors.Is(err, ErrBadKey) || !k.Agent.IsZero() || !strings.Contains(err.Error(), c.Said) || strings.Contains(err.Error(), "words of the keyring") || strings.Contains(err.Error(), "c2hvcnQ")):
			t.Errorf("%s: %v", c.Value, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, second(KeysFrom(ctx, env(map[string]string{"POSTERN_KEY": "keyring:agent-1"}), ring, nil)), context.Canceled, "stopped")
}
