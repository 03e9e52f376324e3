package house

import (
	"errors"
	"os"

	"github.com/postern-mail/postern/commands"
)

// ErrNotRegular is returned for a device, a pipe or a directory: reading one would never
// end, or never begin.
var ErrNotRegular = errors.New("it is not a regular file")

// ReadFile reads a regular file. The error matches ErrNotRegular, or for a file of more
// than limit bytes commands.ErrTooLarge, or it is the operating system's.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	case info.Size() > limit:
		return nil, commands.ErrTooLarge
	}
	return os.ReadFile(path)
}

// ReadSmallFile is ReadFile for a file such as that of a CA, of at most 1 MiB; the
// system's whole list has a quarter of that.
func ReadSmallFile(path string) ([]byte, error) { return ReadFile(path, 1<<20) }
