package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/postern-mail/postern/mail/servertest"
)

// session is a desktop session of its own: a bus, and on it a keyring.
type session struct {
	environ []string
	dir     string
}

// newSession starts a bus with nothing on it.
func newSession(t *testing.T) *session {
	t.Helper()
	dir := shortHome(t) // a socket's path is short
	// Without a service directory nothing is started because somebody asks for it.
	config := filepath.Join(dir, "bus.conf")
	writeFile(t, config, `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=`+dir+`/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`)
	s := &session{dir: dir, environ: []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + dir + "/bus", "XDG_RUNTIME_DIR=" + dir, "XDG_DATA_HOME=" + dir, "HOME=" + dir,
		"DISPLAY=", "WAYLAND_DISPLAY="}}
	s.start(t, "/bus", "", "dbus-daemon", "--config-file="+config, "--nofork", "--print-address")
	return s
}

// start starts a program that lives as long as the test. It returns when the
// program has printed its first line, which holds want.
func (s *session) start(t *testing.T, want, input, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		servertest.Check(t, fmt.Errorf("%s: %w", name, servertest.ErrNotInstalled))
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env = append(os.Environ(), s.environ...)
	c.Stdin = strings.NewReader(input)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	lines := bufio.NewReader(out)
	if first, err := lines.ReadString('\n'); err != nil || !strings.Contains(first, want) {
		t.Fatalf("%s said %q, %v", name, first, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the program
}

// unlock starts a keyring that is open; without it there is none on the bus.
func (s *session) unlock(t *testing.T) {
	t.Helper()
	s.keyring(t, "--unlock", "opens the keyring")
}

// keyring starts a keyring, which comes to the bus some time after its first line.
func (s *session) keyring(t *testing.T, how, input string) {
	t.Helper()
	bus, err := dbus.Connect("unix:path=" + s.dir + "/bus")
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	changes := make(chan *dbus.Signal, 8)
	bus.Signal(changes)
	const name = "org.freedesktop.secrets"
	if err := bus.AddMatchSignalContext(t.Context(), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, name)); err != nil {
		t.Fatal(err)
	}
	s.start(t, "GNOME_KEYRING_CONTROL=", input, "gnome-keyring-daemon", how, "--components=secrets", "--foreground", "--control-directory="+s.dir)
	for late := time.After(time.Minute); ; {
		select {
		case c := <-changes:
			if len(c.Body) == 3 && c.Body[0] == name {
				return
			}
		case <-late:
			t.Fatal("no keyring comes to the bus")
		}
	}
}

// TestThePasswordIsInTheKeyringAndNotInTheVault goes through the life of an account
// with a real keyring.
func TestThePasswordIsInTheKeyringAndNotInTheVault(t *testing.T) {
	slow(t, "TestInitKeepsTheKeysInTheSystemKeyring")
	t.Parallel()
	desktop := newSession(t)
	s, user := servertest.SharedDovecot(t), servertest.User("ann")
	s.Deliver(t, user, "INBOX", realMessages(t)[:2]...)
	v := newVault(t)
	admin, agent := append(v.environment(true), desktop.environ...), append(v.environment(false), desktop.environ...)
	add := append(onServer(t, s, user), "--auth", "keyring")
	list := []string{"mail", "list", "--full"}

	// Nobody is on the bus yet: the account is not added without its password.
	refused(t, alone(t, append(admin, "PW="+servertest.Password), append(add, "--password-from", "env:PW")...), "CONFIG_ERROR", 3, "keyring cannot be used now")
	refused(t, alone(t, admin, "account", "show", "work"), "NOT_FOUND", 5, "")

	desktop.unlock(t)
	works(t, alone(t, append(admin, "PW=wrong-c4n4ry"), append(add, "--password-from", "env:PW")...))
	refused(t, alone(t, agent, list...), "AUTH_FAILED", 4, "did not accept")
	works(t, alone(t, append(admin, "PW="+servertest.Password), "account", "edit", "work", "--password-from", "env:PW"))
	r := works(t, alone(t, agent, list...))
	if bytes.Count(r.raw, []byte(`"message_id"`)) != 2 || strings.Contains(string(r.raw)+r.stderr, "c4n4ry") {
		t.Errorf("%s%s", r.raw, r.stderr)
	}
	if secret, err := v.opened(t, 0).Secret(t.Context(), "work"); err == nil {
		t.Errorf("the vault has %q too", secret.Reveal())
	}

	// From another session the account is of no use.
	elsewhere := append(v.environment(false), "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(t.TempDir(), "none"))
	refused(t, alone(t, elsewhere, list...), "CONFIG_ERROR", 3, "keyring cannot be used now")

	// Who removes the account removes the password: a new one has none to find.
	if r := works(t, alone(t, admin, "account", "remove", "work")); bytes.Contains(r.raw, []byte("left_in_keyring")) {
		t.Errorf("%s", r.raw)
	}
	works(t, alone(t, admin, add...))
	refused(t, alone(t, agent, list...), "CONFIG_ERROR", 3, "has no password for the account")
}

// TestALockedKeyringIsAClearError has a keyring that is locked, and nobody there
// who could unlock it.
func TestALockedKeyringIsAClearError(t *testing.T) {
	t.Parallel()
	desktop := newSession(t)
	v := newVault(t)
	works(t, alone(t, v.environment(true), append(onServer(t, servertest.SharedDovecot(t), servertest.User("ann")), "--auth", "keyring")...))
	desktop.keyring(t, "--start", "")
	r := alone(t, append(v.environment(false), desktop.environ...), "mail", "list", "--timeout", "5")
	if r.Success || r.status != 3 && r.status != 8 || r.Error.Hint == "" {
		t.Errorf("status %d: %s%s", r.status, r.raw, r.stderr)
	}
}
