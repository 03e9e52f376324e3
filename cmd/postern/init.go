package main

import (
	"context"
	"fmt"

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
