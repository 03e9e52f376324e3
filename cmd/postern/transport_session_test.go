//go:build unix

package main

import (
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

// envelope calls the tool and takes its answer apart.
func envelope(t testing.TB, c *gatewaytest.Client, command string) answer {
	t.Helper()
	return answerOf(t, command, []byte(c.Call(command).Text()))
}

// carrying starts the program as a process of the profile.
func carrying(t testing.TB, o *house.TransportOptions, env ...string) (*gatewaytest.Client, *written) {
	t.Helper()
	p := program(t, env, argumentsOf(o)...)
	log := &written{}
	p.Stderr = log
	return gatewaytest.Start(t, p), log
}

// ended closes the input of a process and waits for its end.
func ended(t testing.TB, c *gatewaytest.Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
