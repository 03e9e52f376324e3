//go:build race

package pdftext

const race = true

// The race detector maps much memory itself. With a limit it may be the first to run out of
// memory, and then ends the process with status 66.
func init() { slack, outOfMemory = 3<<30, append(outOfMemory, 66) }
