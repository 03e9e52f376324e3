//go:build !linux

package main

import "os"

// discardTyped would forget what was typed at a terminal and not read yet; this
// system's way to do that is not known here.
func discardTyped(*os.File) {}
