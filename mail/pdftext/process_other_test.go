//go:build !unix

package pdftext

import "os"

const groups = false

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err == nil {
		_ = p.Release()
	}
	return err == nil
}
