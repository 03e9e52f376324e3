//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/mail/servertest"
)

// carrier is a process of the transport profile with a tap on its wire, in the
// test's own process.
type carrier struct {
	*testHouse
	t    testing.TB
	made *house.Transport
	log  *written
	tap  *tap
}

// tapped describes an account of the server behind a tap.
func (p *tap) options(t testing.TB, s *servertest.DovecotServer, protocol, user string) *house.TransportOptions {
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
func carry(t testing.TB, p *tap, o *house.TransportOptions, alter func(*house.Transport)) *carrier {
	t.Helper()
	c := &carrier{t: t, log: &written{}, tap: p}
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

// disguises are the forms in which a text could be on a disk or in a log.
func disguises(text string) []string {
	out := []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), strings.Trim(fmt.Sprintf("%v", []byte(text)), "[]")}
	for shift := range 3 { // wherever it lies in what was encoded
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := e.EncodeToString([]byte(strings.Repeat("x", shift) + text))
			from := (shift*8 + 5) / 6
			out = append(out, encoded[from:len(encoded)-1])
		}
	}
	return out
}

// finds says whether a text is in some bytes, in any of its forms.
func finds(where string, b []byte, text string) (wrong []string) {
	for _, d := range disguises(text) {
		if bytes.Contains(b, []byte(d)) {
			wrong = append(wrong, fmt.Sprintf("%s holds %q", where, text))
			break
		}
	}
	return wrong
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
