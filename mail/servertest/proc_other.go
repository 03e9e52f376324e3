//go:build !linux

package servertest

import (
	"errors"
	"os/exec"
)

func prepare(*exec.Cmd) {}

func prepareSession(*exec.Cmd) {}

type leash struct{}

func newLeash(int) (*leash, error) { return nil, errors.ErrUnsupported }

func (*leash) release() {}

func reap(int) {}

func endSession(int, <-chan struct{}) error { return errors.ErrUnsupported }

func session(int) ([]string, error) { return nil, errors.ErrUnsupported }

func runAs(*exec.Cmd, owner) {}
