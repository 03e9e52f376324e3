//go:build !race

package agentmail

const racing = false
