//go:build !unix

package vault

import "io/fs"

// privateMode is always true where the mode bits say nothing: there the access
// list that a file inherits from the user's profile directory protects it.
func privateMode(fs.FileMode) bool { return true }
