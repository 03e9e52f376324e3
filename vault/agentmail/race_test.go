//go:build race

package agentmail

// racing reports whether the race detector is on, which makes everything about ten times
// slower.
const racing = true
