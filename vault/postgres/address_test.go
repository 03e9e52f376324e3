package postgres

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	for _, address := range []string{
		"postgres://u:s3cret@127.0.0.1:port/db",
		"postgres://u:s3cret@127.0.0.1:99999/db",
		"postgres://u:s3cret%zz@127.0.0.1/db",
		"postgres://u:s3cret'\"@127.0.0.1/db?sslmode=bogus",
		"postgres://u:a b s3cret@127.0.0.1/db",
		"postgres://u:s3cret@[::1/db",
		"postgres://u:a@s3cret@127.0.0.1/db",
		"postgres://u:a/s3cret@127.0.0.1/db",
		"postgres://u:12/s3cret@127.0.0.1/db",
		"postgres://u:a#s3cret@127.0.0.1/db",
		"postgres://u:a?s3cret@127.0.0.1/db",
		"postgres://u:s3cret\x00@127.0.0.1/db",
		"postgres://u:s3cret\n@127.0.0.1/db",
		"postgres://127.0.0.1/db?password=s3cret&port=x",
		"postgres://127.0.0.1/db?password=s3cret%zz",
		"postgres://127.0.0.1/db?user=u&password=s3cret&connect_timeout=never",
		"postgres://u:s3cret@127.0.0.1/db?sslmode=verify-full&sslrootcert=/nowhere/s3cret",
		"postgres://u:s3cret@db.example/db?sslmode=disable",
		"postgres://u:s3cret@db.example/db?sslmode=verify-full&sslpassword=s3cret",
		"postgres://u:s3cret@127.0.0.1:1/db",
		"postgres://u:s3cret@127.0.0.1:1,127.0.0.1:2/db",
		"postgresql://u:s3cret@localhost:1/db?application_name=x",
	} {
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
		address string
		ok      bool
	}
	check := func(rules ...rule) {
		t.Helper()
		for _, r := range rules {
			config, err := configure(r.address)
			if (err == nil) != r.ok {
				t.Errorf("%s: %v", r.address, err)
			}
			if err != nil || strings.Contains(r.address, "localhost") || !strings.Contains(r.address, "example") {
				continue
			}
			for _, f := range config.Fallbacks {
				if f.TLSConfig == nil || f.TLSConfig.InsecureSkipVerify {
					t.Errorf("%s falls back to a connection that is not verified", r.address)
				}
			}
			if c := config.TLSConfig; c == nil || c.InsecureSkipVerify || c.ServerName != "db.example" {
				t.Errorf("%s is not verified: %+v", r.address, c)
			}
		}
	}
	check(
		rule{"postgres://db.example/mail", true},
		rule{"postgres://db.example/mail?application_name=x", true},
		rule{"postgres://db.example,db.example:5433/mail", true},
		rule{"postgres://db.example/mail?sslmode=verify-full", true},
		rule{"postgres://db.example/mail?sslmode=verify-ca", false},
		rule{"postgres://db.example/mail?sslmode=require", false},
		rule{"postgres://db.example/mail?sslmode=prefer", false},
		rule{"postgres://db.example/mail?sslmode=allow", false},
		rule{"postgres://db.example/mail?sslmode=disable", false},
		rule{"postgres://127.0.0.1,db.example/mail?sslmode=disable", false},
		rule{"postgres://db.example,127.0.0.1/mail?sslmode=disable", false},
		rule{"postgres://localhost/mail?host=db.example&sslmode=disable", false},
		rule{"postgres://10.0.0.1/mail?sslmode=disable", false},
		rule{"postgres://u:sslmode=@db.example/mail#", false},
		rule{"postgres://127.0.0.1.example/mail?sslmode=disable", false},
		rule{"postgres://localhost.example/mail?sslmode=disable", false},
		rule{"postgres://127.0.0.1/mail?sslmode=disable", true},
		rule{"postgres://127.8.0.1/mail", true},
		rule{"postgres://[::1]/mail", true},
		rule{"postgres://localhost/mail?sslmode=disable", true},
		rule{"postgres:///mail?host=/run/postgresql", true},
	)
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
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PGSERVICEFILE", write("service", "[mail]\nhost=db.example\nport=5433\ndbname=agents\nuser=postern\nsslmode=require\n"))
	t.Setenv("PGPASSFILE", write("pass", "db.example:5433:agents:postern:s3cret\n"))
	config, err := configure("postgres://?service=mail")
	if err != nil {
		t.Fatal(err)
	}
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
