//go:build !unix

package bolt

import "io/fs"

// PrivateMode is always true where the mode bits say nothing: there the access
// list that a file inherits from the user's profile directory protects it.
func PrivateMode(fs.FileMode) bool { return true }
