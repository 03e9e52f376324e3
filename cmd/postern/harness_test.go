package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/mail/login"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// slow leaves a test out where tests are to be short; quicker shows the main of it.
func slow(t testing.TB, quicker string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes its time; " + quicker + " shows the main of it")
	}
}

// testVault is a vault with both of its keys.
type testVault struct {
	path string
	keys vault.Keys
	text [2]string // admin and agent, as the environment has them
}

func newVault(t testing.TB) testVault {
	t.Helper()
	return newVaultAt(t, vaulttest.New(t))
}

func newVaultAt(t testing.TB, place string) testVault {
	t.Helper()
	v := testVault{path: place}
	for i, k := range []*mail.Secret{&v.keys.Admin, &v.keys.Agent} {
		v.text[i] = newKey(t)
		*k = mail.NewSecret([]byte(v.text[i]))
	}
	if _, err := vault.Init(t.Context(), v.path, v.keys); err != nil {
		t.Fatal(err)
	}
	return v
}

func newKey(t testing.TB) string {
	t.Helper()
	key, err := vault.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (v testVault) open(ctx context.Context) (*vault.Vault, error) {
	return vault.Open(ctx, v.path, v.keys, nil)
}

// opened is the vault with both of its keys, at a time that is so far ahead.
func (v testVault) opened(t testing.TB, ahead time.Duration) *vault.Vault {
	t.Helper()
	opened, err := vault.Open(t.Context(), v.path, v.keys, &vault.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func (v testVault) add(t testing.TB, a mail.Account, password string) {
	t.Helper()
	if err := v.opened(t, 0).AddAccount(t.Context(), a, mail.NewSecret([]byte(password))); err != nil {
		t.Fatal(err)
	}
}

// environment is what a process needs to act with the vault's keys.
func (v testVault) environment(admin bool) []string {
	env := []string{"POSTERN_DB=" + v.path, "POSTERN_KEY=" + v.text[1]}
	if admin {
		env = append(env, "POSTERN_ADMIN_KEY="+v.text[0])
	}
	return env
}

// newProcess is a process with these variables and no other, NAME=value.
func newProcess(t testing.TB, environ ...string) *process {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	getenv := func(name string) string {
		for _, v := range slices.Backward(environ) { // the last one holds
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
	return &process{getenv: getenv, environ: environ, stdin: null, stdout: io.Discard, stderr: io.Discard, log: slog.New(slog.DiscardHandler), ring: &login.SystemKeyring{}}
}

// newHouse wires a whole house around the vault, as the administrator.
func newHouse(t testing.TB, v testVault) *testHouse {
	t.Helper()
	files := t.TempDir()
	h := houseOf(t, newProcess(t, "POSTERN_ATTACHMENTS="+files), v)
	h.files = files
	return h
}

// houseOf is newHouse for a process of the test's own.
func houseOf(t testing.TB, p *process, v testVault) *testHouse {
	t.Helper()
	return wired(t)(p.house(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true}, Open: v.open}))
}

// testHouse is a house to run commands in.
type testHouse struct {
	*house.House
	files string       // where attachments are saved and sent from
	vault *vault.Vault // of demoHouse
}

// wired is a house that is closed when the test ends.
func wired(t testing.TB) func(*house.House, error) *testHouse {
	return func(h *house.House, err error) *testHouse {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		return &testHouse{House: h}
	}
}

// dovecotAccount is an account on the server for a user.
func dovecotAccount(s *servertest.DovecotServer, user string) mail.Account {
	return mail.Account{Name: "work", Email: user + "@example.org", Protocol: mail.IMAP, Username: user, Auth: mail.AuthPassword, Mode: mail.ReadOnly,
		IMAP: mail.Endpoint{Host: s.Host, Port: s.IMAPSPort, Security: mail.TLS}, CAPEM: s.CAPEM, AllowOut: mail.AllowList{Enabled: true}}
}

type answer struct {
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data"`
	Error   struct {
		Code    discovery.Code `json:"code"`
		Message string         `json:"message"`
		Hint    string         `json:"hint"`
	} `json:"error"`
	raw []byte
}

// answerOf takes an envelope apart.
func answerOf(t testing.TB, command string, envelope []byte) answer {
	t.Helper()
	a := answer{raw: envelope}
	if err := json.Unmarshal(envelope, &a); err != nil {
		t.Fatalf("%s: %v: %s", command, err, envelope)
	}
	return a
}

// as runs a command for a principal.
func (h *testHouse) as(t testing.TB, p gateway.Principal, line string) answer {
	t.Helper()
	return answerOf(t, line, h.Gateway.Do(t.Context(), gateway.Request{Principal: p, Line: line, Full: true}).JSON)
}

// entries is how many entries the audit log has, whose chain must be whole.
func (h *testHouse) entries(t testing.TB) int {
	t.Helper()
	var report struct {
		OK      bool `json:"ok"`
		Entries int  `json:"entries"`
	}
	if h.do(t, "audit verify", &report); !report.OK {
		t.Errorf("the audit log is not whole: %+v", report)
	}
	return report.Entries
}

// sampleServers are the demo's mail servers, which no vault knows yet.
func sampleServers(t testing.TB) *demo.Servers { return sampleServersAt(t, nil) }

// sampleServersAt are sampleServers with a clock of their own.
func sampleServersAt(t testing.TB, now func() time.Time) *demo.Servers {
	t.Helper()
	servers, err := demo.Start(demo.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	return servers
}

// written is a log that can be looked at while it is written.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// do runs a command; data, unless nil, takes what a success carries.
func (h *testHouse) do(t testing.TB, line string, data any) answer {
	t.Helper()
	a := h.as(t, h.Principal, line)
	if data != nil {
		if !a.Success {
			t.Fatalf("%s: %s", line, a.raw)
		}
		if err := json.NewDecoder(bytes.NewReader(a.Data)).Decode(data); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return a
}

// eventually waits for something that a process does soon.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}
