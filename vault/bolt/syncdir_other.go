//go:build !unix

package bolt

// syncDir does nothing where a directory cannot be opened to be synced.
func syncDir(string) error { return nil }
