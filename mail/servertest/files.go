package servertest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Files lists the messages of a user, sorted by folder and name, or fails the
// test. A user without a mailbox has none. It reads beside the server without
// its locks and changes nothing: the listing is exact while no session changes
// the mailbox. Empty folders do not appear in it.
func (s *DovecotServer) Files(t testing.TB, user string) []File {
	t.Helper()
	files, err := s.files(user)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (s *DovecotServer) files(user string) ([]File, error) {
	user = strings.ToLower(user) // as the server does at login
	if user == "" || user == "." || user == ".." || strings.ContainsAny(user, "/\x00") {
		return nil, fmt.Errorf("list files: %q cannot be a user", user)
	}
	root := filepath.Join(s.Home, user, "Maildir")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	files, err := folderFiles(nil, root, "INBOX")
	for _, e := range entries {
		name, isFolder := strings.CutPrefix(e.Name(), ".")
		if err == nil && isFolder && e.IsDir() {
			files, err = folderFiles(files, filepath.Join(root, e.Name()), strings.ReplaceAll(name, ".", "/"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(strings.Compare(a.Folder, b.Folder), strings.Compare(a.Name, b.Name))
	})
	return files, nil
}

// folderFiles appends the messages below one Maildir.
func folderFiles(files []File, dir, folder string) ([]File, error) {
	for _, sub := range []string{"new", "cur"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(dir, sub, e.Name()))
			if err != nil {
				return nil, err
			}
			name, flags, _ := strings.Cut(e.Name(), ":2,")
			files = append(files, File{
				Folder: folder, Name: name, Flags: flags, New: sub == "new", Sum: sha256.Sum256(content),
			})
		}
	}
	return files, nil
}
