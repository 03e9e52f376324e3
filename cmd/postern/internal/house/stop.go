package house

import (
	"context"
	"strings"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

const (
	// stopLook is how often a process with commands at work looks for a stop.
	stopLook = vault.StopTime / 4
	// stopWait bounds a look that waits for the vault. Nothing begins meanwhile.
	stopWait = 10 * time.Second
)

var _ mail.Stopper = (*store)(nil)

// Stop stops everything, but for a caller with a scope that caller alone.
func (s *store) Stop(ctx context.Context, by string) (*mail.Stopped, bool, error) {
	if p := principalOf(ctx); p.Scope != nil {
		return s.StopOne(ctx, p.Name)
	}
	return s.Vault.Stop(ctx, by)
}

// Stopped returns the stop that holds the caller, nil for none.
func (s *store) Stopped(ctx context.Context, age time.Duration) (*mail.Stopped, error) {
	stopped, err := s.Vault.Stopped(ctx, age)
	if p := principalOf(ctx); !stopped.Holds(p.Name) {
		stopped = nil
	}
	return stopped, err
}

// MayBegin implements mail.Stopper. Every connection of the process asks it, whoever the
// caller is. A vault that no command has opened has stopped nothing.
func (s *store) MayBegin(ctx context.Context) error {
	if !s.Opened() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	stopped, err := s.Stopped(ctx, vault.StopTime)
	if stopped != nil {
		err = stopped
	}
	return err
}

// until returns a context that ends soon after a stop, with the fault as its cause. It
// looks no more once over was called.
func (s *store) until(parent context.Context) (ctx context.Context, over context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	looking := time.AfterFunc(stopLook, func() {
		t := time.NewTicker(stopLook)
		defer t.Stop()
		for ; ctx.Err() == nil; <-t.C {
			if stopped, err := s.Stopped(ctx, stopLook); err == nil && stopped != nil {
				cancel(stopFault(stopped))
			}
		}
	})
	return ctx, func() {
		looking.Stop()
		cancel(nil)
	}
}

// EnvironmentOfStop is the environment of a stop, which waits for no passphrase: without the
// administrator's key that is sealed with one, where the agent's is there and stops as well.
func (s *System) EnvironmentOfStop() func(string) string {
	path, err := vault.DefaultPath(s.Getenv)
	if err != nil || s.sealed() == "" || !s.hasKey(vault.AgentKeyVar) && !isFile(AgentKeyFile(path)) {
		return s.Getenv
	}
	return func(name string) string {
		if strings.HasPrefix(name, vault.AdminKeyVar) {
			return ""
		}
		return s.Getenv(name)
	}
}

// stopFault is what commands are told of a stop, nil for none.
func stopFault(s *mail.Stopped) *discovery.Fault {
	if s == nil {
		return nil
	}
	return commands.Faults(s)
}
