package servertest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// owner is the user who owns the mail.
type owner struct{ uid, gid int }

// mailOwner returns the user who owns the mail of a server: the current one, or "nobody" if
// that is root.
func mailOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{os.Geteuid(), os.Getegid()}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return owner{}, err
	}
	uid, errUID := strconv.Atoi(nobody.Uid)
	gid, errGID := strconv.Atoi(nobody.Gid)
	return owner{uid, gid}, errors.Join(errUID, errGID)
}

// give makes this user the owner of a file. Only root can, and only root must.
func (o owner) give(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// maildirs is where a server keeps the mail of its users: a directory for each,
// with a Maildir in it.
type maildirs struct {
	home string
	mail owner
}

func (s *DovecotServer) maildirs() maildirs { return maildirs{s.Home, s.mail} }

// user returns the directory of a user.
func (m maildirs) user(name string) (string, error) {
	name = strings.ToLower(name) // as the servers do at login
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("%q cannot be a user", name)
	}
	return filepath.Join(m.home, name), nil
}

// folder returns the directory of a folder and makes its missing parts.
func (m maildirs) folder(user, folder string) (string, error) {
	home, err := m.user(user)
	if err != nil {
		return "", err
	}
	root := filepath.Join(home, "Maildir")
	dirs := []string{home, root}
	dir := root
	if folder != "" && !strings.EqualFold(folder, "INBOX") {
		if strings.ContainsAny(folder, ".\x00") || strings.Contains("/"+folder+"/", "//") {
			return "", fmt.Errorf("%q cannot be a folder", folder)
		}
		dir = filepath.Join(root, "."+strings.ReplaceAll(folder, "/", "."))
		dirs = append(dirs, dir)
	}
	for _, sub := range []string{"tmp", "new", "cur"} {
		dirs = append(dirs, filepath.Join(dir, sub))
	}
	for _, d := range dirs {
		if err := m.mkdir(d); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// mkdir makes a directory unless it is there. It appears with its owner: the server may be
// about to deliver into it.
func (m maildirs) mkdir(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	aside, err := os.MkdirTemp(m.home, ".new-*") // mode 0700
	if err != nil {
		return err
	}
	if err := m.mail.give(aside); err != nil {
		return err
	}
	err = os.Rename(aside, dir)
	if errors.Is(err, fs.ErrExist) { // the server was quicker, and uses it
		return os.Remove(aside)
	}
	return err
}

// files lists the messages of a user, sorted by folder and name.
func (m maildirs) files(user string) ([]File, error) {
	home, err := m.user(user)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	root := filepath.Join(home, "Maildir")
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
