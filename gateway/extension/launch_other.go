//go:build !unix && !windows

package extension

func launch(limits, string) int { return cannotStart }
