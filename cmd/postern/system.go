package main

import (
	"bufio"
	"context"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// system is what a house needs of this process.
func (p *process) system() *house.System {
	return &house.System{Getenv: p.getenv, Environ: p.environ, Secrets: p.secrets, Stderr: p.stderr, Log: p.log, Self: p.self, Person: p.attended(), Version: version(), Identity: p.agentIdentity(), Keyring: p.ring, Tell: p.progress().Tell, Own: &p.own, Passphrase: p.passphrase}
}

// house builds the house of a plan. Where the plan reads no secrets of its own, they
// come from the terminal, files and variables, and not from standard input.
func (p *process) house(plan house.Plan) (*house.House, error) {
	if plan.ReadSecret == nil {
		plan.ReadSecret = p.secretsFrom(nil)
	}
	return p.system().Wire(plan)
}

// secretsFrom reads secrets, and where one is to come from standard input reads stdin;
// nil refuses that.
func (p *process) secretsFrom(stdin *bufio.Reader) func(context.Context, string) (mail.Secret, error) {
	return func(ctx context.Context, source string) (mail.Secret, error) {
		defer p.progress().Aside()()
		return p.readSecret(ctx, stdin, source)
	}
}

// asOwner wires for a verb that acts as the administrator when it has the key.
func (p *process) asOwner(profile gateway.Profile, stdin *bufio.Reader) (*house.House, error) {
	s := p.system()
	return p.house(house.Plan{Profile: profile, Principal: s.Principal(), ReadSecret: p.secretsFrom(stdin), Environment: true, Open: s.Opener(false), Extensions: house.BesideVault})
}

// asAgent wires for a verb that is an agent whatever keys are set.
func (p *process) asAgent(profile gateway.Profile) (*house.House, error) {
	return p.house(house.Plan{Profile: profile, Principal: gateway.Principal{Name: mail.AgentPrincipal}, Environment: true, Open: p.system().Opener(true), Extensions: house.BesideVault})
}
