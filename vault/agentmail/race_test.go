//go:build race

package agentmail

// racing is whether the race detector is at work, which makes everything some ten times
// slower.
const racing = true
