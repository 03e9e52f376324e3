package main

import (
	"bufio"
	"context"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// system is what a house needs of this process.
func (p *process) system() *system {
	return &system{getenv: p.getenv, environ: p.environ, stderr: p.stderr, log: p.log, self: p.self, version: version(), identity: p.agentIdentity(), keyring: p.ring, tell: p.tell}
}

// wire builds the house of a plan. Where the plan reads no secrets of its own, they
// come from the terminal, files and variables, and not from standard input.
func (p *process) wire(plan plan) (*house, error) {
	if plan.readSecret == nil {
		plan.readSecret = p.secretsFrom(nil)
	}
	return p.system().wire(plan)
}

// secretsFrom reads secrets, and where one is to come from standard input reads stdin;
// nil refuses that.
func (p *process) secretsFrom(stdin *bufio.Reader) func(context.Context, string) (mail.Secret, error) {
	return func(ctx context.Context, source string) (mail.Secret, error) {
		defer p.aside()()
		return p.readSecret(ctx, stdin, source)
	}
}

// asOwner wires for a verb that acts as the administrator when it has the key.
func (p *process) asOwner(profile gateway.Profile, stdin *bufio.Reader) (*house, error) {
	s := p.system()
	return p.wire(plan{profile: profile, principal: s.principal(), readSecret: p.secretsFrom(stdin), environment: true, open: s.opener(false), extensions: besideVault})
}

// asAgent wires for a verb that is an agent whatever keys are set.
func (p *process) asAgent(profile gateway.Profile) (*house, error) {
	return p.wire(plan{profile: profile, principal: gateway.Principal{Name: "agent"}, environment: true, open: p.system().opener(true), extensions: besideVault})
}
