package main

import (
	"context"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/vault"
)

var _ commands.AgentMail = (*store)(nil)

// The methods below implement commands.AgentMail by asking the vault.

func (s *store) SendAgentMail(ctx context.Context, m vault.AgentMessage) (vault.AgentMessage, error) {
	return with(ctx, s, func(v *vault.Vault) (vault.AgentMessage, error) { return v.SendAgentMail(ctx, m) })
}

func (s *store) ReadAgentMail(ctx context.Context, q vault.AgentQuery) (vault.AgentInbox, error) {
	return with(ctx, s, func(v *vault.Vault) (vault.AgentInbox, error) { return v.ReadAgentMail(ctx, q) })
}

func (s *store) AwaitAgentMail(ctx context.Context, q vault.AgentQuery) error {
	return s.do(ctx, func(v *vault.Vault) error { return v.AwaitAgentMail(ctx, q) })
}

func (s *store) ConfirmAgentMail(ctx context.Context, agent, claim string) error {
	return s.do(ctx, func(v *vault.Vault) error { return v.ConfirmAgentMail(ctx, agent, claim) })
}

func (s *store) AgentThread(ctx context.Context, q vault.AgentThread) ([]vault.AgentMessage, error) {
	return with(ctx, s, func(v *vault.Vault) ([]vault.AgentMessage, error) { return v.AgentThread(ctx, q) })
}

func (s *store) AckAgentMail(ctx context.Context, agent, id string, own bool) (time.Time, error) {
	return with(ctx, s, func(v *vault.Vault) (time.Time, error) { return v.AckAgentMail(ctx, agent, id, own) })
}

func (s *store) AgentMailStatus(ctx context.Context, agent, project string) ([]vault.AgentStatus, error) {
	return with(ctx, s, func(v *vault.Vault) ([]vault.AgentStatus, error) { return v.AgentMailStatus(ctx, agent, project) })
}

func (s *store) CleanupAgentMail(ctx context.Context, dryRun bool) (vault.AgentCleanup, error) {
	return with(ctx, s, func(v *vault.Vault) (vault.AgentCleanup, error) { return v.CleanupAgentMail(ctx, dryRun) })
}
