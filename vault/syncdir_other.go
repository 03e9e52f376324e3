//go:build !unix

package vault

// syncDir does nothing where a directory cannot be opened to be synced.
func syncDir(string) error { return nil }
