//go:build race

package vault

// racing is whether the race detector is at work, which makes everything some ten times
// slower.
const racing = true
