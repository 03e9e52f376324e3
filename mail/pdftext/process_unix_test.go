//go:build unix

package pdftext

import "syscall"

const groups = true

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
