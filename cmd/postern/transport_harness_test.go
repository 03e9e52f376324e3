//go:build unix

package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/mail/servertest"
)

// carrier is a process of the transport profile with a recorder on its wire, in the
// test's own process.
type carrier struct {
	*testHouse
	t    testing.TB
	made *house.Transport
	log  *written
	wire *recorder
}

// options describe an account of the server behind a recorder.
func (p *recorder) options(t testing.TB, s *servertest.DovecotServer, protocol, user string) *house.TransportOptions {
	t.Helper()
	ca := writeFile(t, filepath.Join(t.TempDir(), "ca.pem"), string(s.CAPEM))
	return &house.TransportOptions{Protocol: protocol, Host: "localhost", Port: uint(p.port), Username: user, Email: user + "@example.org", CAFile: ca,
		Helper: "echo " + servertest.Password}
}

// argumentsOf are options as a person gives them.
func argumentsOf(o *house.TransportOptions) []string {
	args := []string{"serve", "--profile", house.TransportProfile}
	for name, value := range map[string]string{"account": o.Account, "email": o.Email, "protocol": o.Protocol, "host": o.Host, "security": o.Security,
		"username": o.Username, "helper": o.Helper, "ca-file": o.CAFile, "port": fmt.Sprint(o.Port)} {
		if value != "" && value != "0" {
			args = append(args, "--"+name+"="+value)
		}
	}
	slices.Sort(args[3:])
	return args
}

// carry wires a process of the profile. What alter breaks is broken in it.
func carry(t testing.TB, p *recorder, o *house.TransportOptions, alter func(*house.Transport)) *carrier {
	t.Helper()
	c := &carrier{t: t, log: &written{}, wire: p}
	process := newProcess(t, os.Environ()...)
	process.log = slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if c.made, err = process.system().NewTransport(t.Context(), o, false); err != nil {
		t.Fatal(err)
	}
	if alter != nil {
		alter(c.made)
	}
	t.Cleanup(func() { _ = c.made.Helper.Close() })
	c.testHouse = wired(t)(process.system().WireTransport(c.made))
	return c
}

// run runs a command that may fail.
func (c *carrier) run(line string) answer {
	c.t.Helper()
	return c.do(c.t, line, nil)
}

// findsOnDisk is finds for every file below directories.
func findsOnDisk(t testing.TB, text string, dirs ...string) (wrong []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			wrong = append(wrong, finds(path, b, text)...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return wrong
}
