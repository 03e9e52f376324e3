//go:build !unix

package hardening

// forbid does nothing: this system writes no core files unless it was told to.
func forbid() {}

// overwrite does nothing: the environment is what os.Unsetenv changes.
func overwrite() {}
