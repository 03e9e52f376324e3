package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/clientconfig"
)

// clientHome is a home directory with a vault in it, and clients that may be installed.
type clientHome struct {
	home string
	v    testVault
	env  map[string]string
	self string
}

func clientHomeOf(t testing.TB, v testVault) *clientHome {
	t.Helper()
	d := &clientHome{home: t.TempDir(), v: v, self: "/opt/postern/postern"}
	key := writeFile(t, filepath.Join(t.TempDir(), "agent.key"), d.v.text[1])
	d.env = map[string]string{"HOME": d.home, "USERPROFILE": d.home, "APPDATA": filepath.Join(d.home, "AppData"), "POSTERN_DB": d.v.path, "POSTERN_KEY_FILE": key}
	return d
}

// do runs install.
func (d *clientHome) do(t testing.TB, line string) (out, diagnostics string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	p := newProcess(t)
	p.getenv, p.stdout, p.stderr, p.self, p.ring = func(name string) string { return d.env[name] }, &o, &e, d.self, brokenKeyring{}
	err = p.install(t.Context(), strings.Fields(line)[1:])
	return o.String(), e.String(), err
}

func (d *clientHome) file(t testing.TB, client string) string {
	t.Helper()
	c, _ := clientconfig.Named(client)
	file, err := c.UserFile(func(name string) string { return d.env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A key in the environment itself never gets into a file; what points to one does.
func TestInstallWritesNoKey(t *testing.T) {
	t.Parallel()
	d := clientHomeOf(t, newVault(t))
	delete(d.env, "POSTERN_KEY_FILE")
	for _, c := range clientconfig.Names() {
		d.env["POSTERN_KEY"] = d.v.text[1]
		for _, flag := range []string{" --print", " --read-only"} {
			out, pasted, err := d.do(t, "install "+c+flag)
			if err == nil || strings.Contains(out+pasted+err.Error(), d.v.text[1]) {
				t.Errorf("%s %s: %v", c, flag, err)
			}
		}
		if _, err := os.Stat(d.file(t, c)); err == nil {
			t.Errorf("%s: a file was written", c)
		}
		d.env["POSTERN_KEY"] = "keyring:agent-1"
		if out, where, err := d.do(t, "install "+c+" --print"); err != nil || !strings.Contains(out, "keyring:agent-1") || !strings.Contains(where, d.file(t, c)) {
			t.Errorf("%s: %v\n%s", c, err, out)
		}
	}
	delete(d.env, "POSTERN_KEY")
	if _, _, err := d.do(t, "install cursor"); err == nil || !strings.Contains(err.Error(), "No agent's key") {
		t.Errorf("without a key: %v", err)
	}
}
