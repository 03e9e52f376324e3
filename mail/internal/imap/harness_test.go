package imap

import (
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// serve starts a scripted server, and returns how to connect to it without TLS.
func serve(t *testing.T, run func(s *scripted.Conn)) Config {
	t.Helper()
	return configOf(scripted.Serve(t, run))
}

// configOf is how to connect to a scripted server without TLS.
func configOf(sv *scripted.Server) Config { return Config{Target: sv.Target(wire.Plaintext)} }
