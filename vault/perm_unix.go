//go:build unix

package vault

import "io/fs"

// privateMode reports whether nobody but the owner may read or write a file of
// this mode.
func privateMode(m fs.FileMode) bool { return m.Perm()&0o077 == 0 }
