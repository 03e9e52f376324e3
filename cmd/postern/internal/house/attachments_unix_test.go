//go:build unix

package house

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to must not be waited for.
func TestAPipeIsNoAttachment(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := newAttachments(t, dir).Read(forOwner(t.Context()), "pipe", 100); err == nil {
		t.Errorf("it gave %q", got)
	}
}
