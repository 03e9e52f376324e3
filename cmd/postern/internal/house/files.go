package house

import (
	"fmt"
	"os"
)

// maxFile bounds a file such as a CA, in bytes; the system's whole list has a quarter
// of that.
const maxFile = 1 << 20

// ReadFile reads a regular file of bounded size: a device or a pipe would never
// end, or never begin.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("not a regular file of at most %d bytes", maxFile)
	}
	return os.ReadFile(path)
}
