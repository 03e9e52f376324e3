package servertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WriteMaildir returns a new Maildir with these messages in it, unread and in
// this order, as other mail programs read it. It goes with the test.
func WriteMaildir(t testing.TB, raw ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"tmp", "new", "cur"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i, message := range raw {
		// Files have the line ends of the system.
		message = bytes.ReplaceAll(message, []byte("\r\n"), []byte("\n"))
		path := filepath.Join(dir, "cur", fmt.Sprintf("%010d.test:2,", i+1))
		if err := os.WriteFile(path, message, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Export returns a new Maildir with all the messages of a user, whatever folder
// they are in, or fails the test.
func (s *DovecotServer) Export(t testing.TB, user string) string {
	t.Helper()
	files, err := s.files(user)
	if err != nil {
		t.Fatal(err)
	}
	home, err := s.maildirs().user(user)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([][]byte, len(files))
	for i, f := range files {
		dir := filepath.Join(home, "Maildir")
		if f.Folder != "INBOX" {
			dir = filepath.Join(dir, "."+strings.ReplaceAll(f.Folder, "/", "."))
		}
		name := filepath.Join("new", f.Name)
		if !f.New {
			name = filepath.Join("cur", f.Name+":2,"+f.Flags)
		}
		if raw[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return WriteMaildir(t, raw...)
}
