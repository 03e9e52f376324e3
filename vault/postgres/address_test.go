package postgres

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postern-mail/postern/internal/testmain"
)

func withoutSecret(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error tells a password: %v", err)
	}
}

// No error tells a password, however it is written.
func TestPasswordsAreNeverInErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range testmain.Table[struct{ Address string }](t, "testdata/cases/passwords.txt") {
		address := c.Address
		_, err := At(ended, address)
		if err == nil {
			t.Errorf("%q is reached", address)
		}
		withoutSecret(t, err)
		if e, err := newEngine(address); err == nil && strings.Contains(e.Path(), "s3cret") {
			t.Errorf("the place tells a password: %s", e.Path())
		}
	}
}

// A connection to another machine is encrypted, and the machine is who it should be.
func TestConnectionsToOtherMachinesAreVerified(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGSSLMODE", "PGSERVICE", "PGSERVICEFILE", "PGSSLROOTCERT"} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	type rule struct {
		Address string
		OK      bool
	}
	check := func(rules ...rule) {
		t.Helper()
		for _, r := range rules {
			config, err := configure(r.Address)
			if (err == nil) != r.OK {
				t.Errorf("%s: %v", r.Address, err)
			}
			if err != nil || strings.Contains(r.Address, "localhost") || !strings.Contains(r.Address, "example") {
				continue
			}
			verified := func(c *tls.Config) bool { return c != nil && !c.InsecureSkipVerify && c.ServerName == "db.example" }
			if !verified(config.TLSConfig) || slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return !verified(f.TLSConfig) }) {
				t.Errorf("%s is not verified: %+v", r.Address, config)
			}
		}
	}
	check(testmain.Table[rule](t, "testdata/cases/verified.txt")...)
	t.Setenv("PGHOST", "db.example")
	check(rule{"postgres:///mail", true}, rule{"postgres:///mail?sslmode=disable", false})
	t.Setenv("PGSSLMODE", "disable")
	check(rule{"postgres:///mail", false}, rule{"postgres:///mail?host=127.0.0.1", true})
}

// A service file and a password file give what the address leaves out.
func TestServiceAndPasswordFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	t.Setenv("PGSERVICEFILE", write("service", "[mail]\nhost=db.example\nport=5433\ndbname=agents\nuser=postern\nsslmode=require\n"))
	t.Setenv("PGPASSFILE", write("pass", "db.example:5433:agents:postern:s3cret\n"))
	config, err := configure("postgres://?service=mail")
	must(t, err)
	if config.Host != "db.example" || config.Port != 5433 || config.Database != "agents" || config.User != "postern" || config.Password != "s3cret" {
		t.Errorf("%s:%d/%s as %s", config.Host, config.Port, config.Database, config.User)
	}
	if config.TLSConfig == nil || config.TLSConfig.InsecureSkipVerify {
		t.Error("the service file turns verification off")
	}
	if name := describe(config); name != "postgres://db.example:5433/agents" {
		t.Errorf("it is called %s", name)
	}
	if _, err := configure("postgres://?service=other"); err == nil {
		t.Error("a service that is not there is accepted")
	}
}
