//go:build !linux

package servertest

import (
	"errors"
	"os"
	"os/exec"
)

func ownSession(*exec.Cmd) {}

type leash struct{}

func newLeash(int) (*leash, error) { return nil, nil }

func (*leash) release() {}

// endSession ends the server's first process, which ends the others.
func endSession(leader *os.Process, done <-chan struct{}) error {
	_ = leader.Kill()
	<-done
	return nil
}

func session(int) ([]string, error) { return nil, errors.ErrUnsupported }

func runAs(*exec.Cmd, owner) {}

func (s *PostgresServer) end() error { return endSession(s.cmd.Process, s.done) }

// Freeze is for Linux.
func (s *PostgresServer) Freeze(bool) error { return errors.ErrUnsupported }
