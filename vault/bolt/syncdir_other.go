//go:build !unix

package bolt

// syncDir does nothing on systems that cannot sync a directory.
func syncDir(string) error { return nil }
