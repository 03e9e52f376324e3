package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// A door is one way into the agent mailbox. Every test below goes through both.
type door struct {
	testing.TB
	// run returns what a success says and how it goes on, or the text and the status of a failure.
	run  func(args ...string) (data []byte, text string, status int)
	file func(name, content string) string // makes a body file and says how to name it
	open func(now func() time.Time) *vault.Vault
	bare bool
}

// throughBothDoors runs a test against the bare process on a fresh AGENT_MAIL_DB, and
// against the gateway on a fresh vault.
func throughBothDoors(t *testing.T, test func(*door)) {
	t.Run("process", func(t *testing.T) { test(processDoor(t)) })
	t.Run("gateway", func(t *testing.T) { test(gatewayDoor(t)) })
}

// inThisProcess runs the program's own code with these variables, which costs a
// hundredth of a process of its own.
func inThisProcess(t testing.TB, env, args []string) (status int, stdout, stderr []byte) {
	var out, failure bytes.Buffer
	p := newProcess(t, env...)
	p.args, p.stdout, p.stderr = args, &out, &failure
	return p.run(t.Context()), out.Bytes(), failure.Bytes()
}

// asProcess runs the program.
func asProcess(t testing.TB, env, args []string) (status int, stdout, stderr []byte) {
	var out, failure bytes.Buffer
	c := program(t, env, args...)
	c.Stdout, c.Stderr = &out, &failure
	if err := c.Run(); err != nil && c.ProcessState.ExitCode() <= 0 {
		t.Errorf("%q: %v", args, err)
	}
	return c.ProcessState.ExitCode(), out.Bytes(), failure.Bytes()
}

func processDoor(t testing.TB, env ...string) *door { return doorOf(t, inThisProcess, env...) }

// doorOf is the bare process on a fresh AGENT_MAIL_DB, run in one of the two ways.
func doorOf(t testing.TB, start func(t testing.TB, env, args []string) (int, []byte, []byte), env ...string) *door {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "mail.db")
	env = append([]string{agentDBVar + "=" + path, "HOME=" + dir, "XDG_CONFIG_HOME=" + dir}, env...)
	d := &door{TB: t, bare: true}
	d.run = func(args ...string) ([]byte, string, int) {
		status, stdout, stderr := start(t, env, append([]string{"agent"}, args...))
		var e map[string]string
		if status == 0 {
			if len(stderr) > 0 && (json.Unmarshal(stderr, &e) != nil || len(e) != 1 || e["note"] == "") || !json.Valid(stdout) {
				t.Errorf("%q: success says %q and %q", args, stdout, stderr)
			}
			return stdout, e["note"], 0
		}
		if err := json.Unmarshal(stderr, &e); err != nil || len(e) != 1 || e["error"] == "" || len(stdout) > 0 {
			t.Errorf("%q: failure says %q and %q", args, stdout, stderr)
		}
		return nil, e["error"], status
	}
	d.file = func(name, content string) string { return writeFile(t, filepath.Join(dir, name), content) }
	d.open = func(now func() time.Time) *vault.Vault {
		p := &process{getenv: func(name string) string { return "" }}
		if _, err := p.system().OpenMailbox(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(path + house.MailboxKey)
		if err != nil {
			t.Fatal(err)
		}
		v, err := vault.Open(t.Context(), path, vault.Keys{Agent: mail.NewSecret(bytes.TrimSpace(key))}, &vault.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return d
}

func gatewayDoor(t testing.TB) *door {
	v, dir := newVault(t), t.TempDir()
	h := houseOf(t, newProcess(t, "POSTERN_ATTACHMENTS="+dir), v)
	d := &door{TB: t}
	d.run = func(args ...string) ([]byte, string, int) {
		a := h.Gateway.Do(t.Context(), gateway.Request{Principal: h.Principal, Tokens: append([]string{"agent"}, args...)})
		out, err := bareAnswer(a)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Success() {
			return nil, string(out), a.ExitStatus()
		}
		a.Delivered()
		return out, toldBy(t, a), 0
	}
	d.file = func(name, content string) string {
		writeFile(t, filepath.Join(dir, name), content)
		return name
	}
	d.open = func(now func() time.Time) *vault.Vault {
		opened, err := vault.Open(t.Context(), v.path, v.keys, &vault.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	return d
}

// toldBy is how the answer in an envelope goes on; empty where it does not.
func toldBy(t testing.TB, a gateway.Answer) string {
	var e struct{ Message string }
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(e.Message, "there may be more") {
		return ""
	}
	return e.Message
}

func writeFile(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ok runs a command that must succeed, and reads its answer into data.
func (d *door) ok(data any, args ...string) []byte {
	d.Helper()
	out, failure, status := d.run(args...)
	if status != 0 {
		d.Fatalf("%q: status %d: %s", args, status, failure)
	}
	if data != nil {
		if err := json.Unmarshal(out, data); err != nil {
			d.Fatalf("%q: %v", args, err)
		}
	}
	return out
}

// fails runs a command that must fail, and returns what it says.
func (d *door) fails(status int, args ...string) string {
	d.Helper()
	out, failure, got := d.run(args...)
	if got != status || failure == "" {
		d.Errorf("%q: status %d, want %d: %s%s", args, got, status, failure, out)
	}
	return failure
}

type letter map[string]any

func (l letter) id() string { return l["id"].(string) }

func (d *door) send(from, to, subject string, more ...string) letter {
	d.Helper()
	var m letter
	d.ok(&m, append([]string{"send", "--from", from, "--to", to, "--subject", subject}, more...)...)
	return m
}

func (d *door) read(args ...string) []letter {
	d.Helper()
	var list []letter
	d.ok(&list, append([]string{"read"}, args...)...)
	return list
}

// reads checks the subjects of what is read, in order.
func (d *door) reads(want string, args ...string) []letter {
	d.Helper()
	list := d.read(args...)
	var got []string
	for _, m := range list {
		got = append(got, m["subject"].(string))
	}
	if strings.Join(got, " ") != want {
		d.Errorf("read %q: %q, want %q", args, got, want)
	}
	return list
}

func (d *door) status(args ...string) map[string][2]int {
	d.Helper()
	var list []struct {
		Agent           string
		Unread, Unacked int
	}
	d.ok(&list, append([]string{"status"}, args...)...)
	counts := map[string][2]int{}
	for _, s := range list {
		counts[s.Agent] = [2]int{s.Unread, s.Unacked}
	}
	return counts
}

// expired leaves a message that was sent a day and a bit ago.
func (d *door) expired(from, to, subject string) agentmail.Message {
	d.Helper()
	past := d.open(func() time.Time { return time.Now().Add(-agentmail.TTL - time.Second) })
	m, err := agentmail.New(past).Send(d.Context(), agentmail.Message{Sender: from, Recipient: to, Subject: subject})
	if err != nil {
		d.Fatal(err)
	}
	return m
}

const nobody = "00000000-0000-4000-8000-000000000000"

// keys lists the keys of a JSON object in the order they are written.
func keys(t testing.TB, object []byte) (names []string) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}
