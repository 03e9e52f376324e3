package house

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/mail/outbox"
)

// attachments is the directory that attachments are saved in and sent from. It is
// made when it is first needed, for its owner only, and nothing outside it can be
// reached by any name, not through symbolic links either. It is safe for
// concurrent use.
type attachments struct {
	locate  func(context.Context) (string, error) // where it is
	records *store                                // of what was saved, for the shares; nil: there are none
	files   int                                   // of a principal's share
	bytes   int64

	mu   sync.Mutex
	root *os.Root
}

var _ commands.Attachments = (*attachments)(nil)

// open makes the directory and holds on to it, so that a rename of it does not
// lead elsewhere. A failure is not kept.
func (a *attachments) open(ctx context.Context) (*os.Root, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.root != nil {
		return a.root, nil
	}
	dir, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a.root, err = os.OpenRoot(dir)
	return a.root, err
}

// rootOf is the directory that a principal's files are in: all of it, or for one with a
// scope a directory of its own in it, so that it cannot send files that were saved from
// accounts outside its scope. Of a scope with other accounts it is another one, also where
// the name is the same: a grant can be made again. The caller closes what it gets.
func (a *attachments) rootOf(ctx context.Context) (root *os.Root, own bool, err error) {
	whole, err := a.open(ctx)
	if err != nil {
		return nil, false, err
	}
	dir := "."
	if p := principalOf(ctx); p.Scope != nil {
		own = true
		// A name alone would not do where a file system does not tell Ann from ann.
		sum := sha256.Sum256([]byte(p.Name + " " + strings.Join(p.Scope.Accounts, " ")))
		dir = filepath.Join(grantsDir, fmt.Sprintf("%x-%s", sum[:8], strings.TrimPrefix(p.Name, admin.GrantPrincipal(""))))
		if err := whole.MkdirAll(dir, 0o700); err != nil {
			return nil, own, err
		}
	}
	root, err = whole.OpenRoot(dir)
	return root, own, err
}

// grantsDir has the directories of principals with a scope. For the others, who have the rest,
// it is not there.
const grantsDir = "grants"

// ofGrants reports whether a name leads into grantsDir, in any spelling that the file system
// takes for it.
func ofGrants(root *os.Root, name string) bool {
	grants, err := root.Stat(grantsDir)
	for dir := name; filepath.IsLocal(name) && dir != "."; dir = filepath.Dir(dir) {
		info, err2 := root.Stat(dir)
		if strings.EqualFold(dir, grantsDir) || err == nil && err2 == nil && os.SameFile(info, grants) {
			return true
		}
	}
	return false
}

// Save implements commands.Attachments. The file is on the disk when it returns. A caller
// with a directory of its own may be on another machine: it gets the name by which it can
// send the file, and not the place.
func (a *attachments) Save(ctx context.Context, from, name string, content []byte) (string, error) {
	root, own, err := a.rootOf(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	name = filepath.FromSlash(path.Clean(name))
	if !own && ofGrants(root, name) {
		return "", fs.ErrExist
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return "", occupied(err)
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	release, err := a.claim(ctx, root, from, name, content)
	if err != nil {
		return "", err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		release()
		return "", err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		release()
		return "", errors.Join(err, root.Remove(name))
	}
	if own {
		return filepath.ToSlash(name), nil
	}
	return filepath.Join(root.Name(), name), nil
}

// stage copies a file from anywhere into a directory of its own, for its owner to send it,
// until remove. It is not for an agent.
func (a *attachments) stage(ctx context.Context, file string) (name string, remove func(), err error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular():
		return "", nil, &fs.PathError{Op: "open", Path: file, Err: ErrNotRegular}
	case info.Size() > outbox.MaxAttachmentBytes:
		return "", nil, &fs.PathError{Op: "open", Path: file, Err: fmt.Errorf("it is larger than %d MiB, which is what a message takes", outbox.MaxAttachmentBytes>>20)}
	}
	root, err := a.open(ctx)
	if err != nil {
		return "", nil, err
	}
	dir := "staged-" + rand.Text()
	if err := root.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	remove = func() { _ = root.RemoveAll(dir) }
	name = path.Join(dir, filepath.Base(file))
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(f, outbox.MaxAttachmentBytes+1)) // it may grow meanwhile
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return name, remove, nil
}

// Read implements commands.Attachments. It does not wait for a
// pipe or a device.
func (a *attachments) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	root, own, err := a.rootOf(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if !own && ofGrants(root, filepath.FromSlash(path.Clean(name))) {
		return nil, fs.ErrNotExist
	}
	f, err := root.OpenFile(filepath.FromSlash(path.Clean(name)), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: "", Err: ErrNotRegular}
	case info.Size() > limit:
		return nil, commands.ErrTooLarge
	}
	content := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	n, err := content.ReadFrom(io.LimitReader(f, limit+1)) // it may grow meanwhile
	switch {
	case err != nil:
		return nil, err
	case n > limit:
		return nil, commands.ErrTooLarge
	}
	return content.Bytes(), ctx.Err()
}

// occupied tells a file that stands where a directory would have to be, which is
// no file of the wanted name, from one that does.
func occupied(err error) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return &fs.PathError{Op: "mkdir", Path: "", Err: errors.New("a file is in the place of a directory")}
}

// Close lets go of the directory.
func (a *attachments) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.root == nil {
		return nil
	}
	err := a.root.Close()
	a.root = nil
	return err
}
