package servertest

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// File is a message as it lies on disk. Files are comparable: two equal listings
// mean that between them no message came, went, moved, or changed its flags or
// a byte.
type File struct {
	Folder string            // as Deliver takes it
	Name   string            // of the file, without its flags
	Flags  string            // of the Maildir: D draft, F flagged, R answered, S seen, T deleted; a to z are keywords
	New    bool              // lies in new and not in cur
	Sum    [sha256.Size]byte // SHA-256 of the contents
}

// Files lists the messages of a user, sorted by folder and name, or fails the test. A user
// without a mailbox has none. It reads without the server's locks and changes nothing: the
// listing is exact while no session changes the mailbox. Empty folders do not appear in it.
func (s *DovecotServer) Files(t testing.TB, user string) []File {
	t.Helper()
	files, err := s.files(user)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (s *DovecotServer) files(user string) ([]File, error) {
	if s.store != Maildir {
		return nil, fmt.Errorf("list files: the mail lies in %s", s.store)
	}
	return s.maildirs().files(user)
}
