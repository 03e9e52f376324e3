//go:build unix

package bolt

import "io/fs"

// PrivateMode reports whether only the owner may read or write a file of this
// mode.
func PrivateMode(m fs.FileMode) bool { return m.Perm()&0o077 == 0 }
