//go:build !unix

package bolt

import "io/fs"

// PrivateMode is always true on systems where the mode bits mean nothing: there the access
// list inherited from the user's profile directory protects the file.
func PrivateMode(fs.FileMode) bool { return true }

func private(string) error { return nil }

// SameOwner does nothing on systems where files inherit their access rights.
func SameOwner(string, fs.FileInfo) {}
