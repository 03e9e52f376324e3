package main

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/vault"
)

const copySynopsis = `FROM TO

Moves a vault with everything in it from one place to another: a file, or the address of a
PostgreSQL database without its password. The keys stay the same. FROM opens no more
afterwards; delete it once TO does all you want. If it is interrupted, run it again.

  postern vault copy postern.db postgres://me@db/postern
`

// copyVault is no command: what it did is written into the log of the vault that it made.
func (p *process) copyVault(ctx context.Context, args []string) error {
	f := p.flags("vault copy", copySynopsis)
	if err := parse(f, args, 2, 2); err != nil {
		return err
	}
	from, to := absolute(f.Arg(0)), absolute(f.Arg(1))
	for _, place := range []string{from, to} {
		if hasPassword(place) {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "A password among a command's words can be read by every user of this machine.",
				Hint: "Put it into a password file that only you can read, ~/.pgpass, and change it."}
		}
	}
	keys, err := p.system().FindKeys(ctx, from)
	if err != nil {
		return err
	}
	if keys.Admin.IsZero() {
		return vault.ErrAdminRequired
	}
	fmt.Fprintf(p.stderr, "Copying %s to %s.\n", vault.Described(from), vault.Described(to))
	n, err := vault.Copy(ctx, from, to, keys)
	if err != nil {
		return err
	}
	v, err := vault.Open(ctx, to, vault.Keys{Admin: keys.Admin}, nil)
	if err != nil {
		return err
	}
	if err := v.Record(ctx, gateway.AuditEntry{Principal: "admin", Command: "vault copy", Parsed: "vault copy", Target: v.Path(), Allowed: true}); err != nil {
		return err
	}
	what := fmt.Sprintf("%d records were copied and compared", n)
	if n == 0 {
		what = "The copy that was begun before is finished"
	}
	fmt.Fprintf(p.stdout, "%s. The vault is %s now.\nSet POSTERN_DB to it for every process, and run 'postern install' again for each client. %s opens no more; delete it once all works.\n", what, v.Path(), vault.Described(from))
	return nil
}
