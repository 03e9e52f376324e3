//go:build race

package pdftext

const race = true

// The race detector maps much memory of its own. Where that is limited it may be the first
// to find none, and ends the process in its way.
func init() { slack, outOfMemory = 3<<30, append(outOfMemory, 66) }
