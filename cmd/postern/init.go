package main

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/vault"
)

// init makes the vault.
func (p *process) init(ctx context.Context, args []string) error {
	if err := parse(p.flags("init", ""), args, 0, 0); err != nil {
		return err
	}
	keys, err := vault.KeysFromEnv(ctx, p.getenv)
	if err != nil {
		return err
	}
	if keys.Admin.IsZero() || keys.Agent.IsZero() {
		return &discovery.Fault{Code: discovery.ConfigError, Message: "Making a vault takes both keys: " + vault.AdminKeyVar + " and " + vault.AgentKeyVar + ".",
			Hint: "Print each with 'postern keygen', keep it, and set the variable, or the one that ends in _FILE to a file that holds it."}
	}
	path, err := vault.DefaultPath(p.getenv)
	if err != nil {
		return err
	}
	r, err := vault.Init(ctx, path, keys)
	if err != nil {
		return err
	}
	made := "made"
	if !r.Created {
		made = "there already, unchanged"
	}
	_, err = fmt.Fprintf(p.stdout, "vault               %s (%s)\npolicy fingerprint  %s\n\nNext: postern account add NAME --email ADDRESS --imap-host HOST --password-from stdin\n", r.Path, made, r.Fingerprint)
	return err
}

// keygen prints a fresh key.
func (p *process) keygen(_ context.Context, args []string) error {
	if err := parse(p.flags("keygen", ""), args, 0, 0); err != nil {
		return err
	}
	key, err := vault.NewKey()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, key)
	return err
}
