//go:build !race

package vault

const racing = false
