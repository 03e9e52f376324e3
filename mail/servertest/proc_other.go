//go:build !linux

package servertest

import "os/exec"

func prepare(*exec.Cmd) {}

func reap(int) {}

func runAs(*exec.Cmd, owner) {}
