//go:build race

package pdftext

const race = true

// Where memory is limited the race detector, which needs much of its own, may be
// the first to find none, and ends the process in its way.
func init() { outOfMemory = append(outOfMemory, 66) }
