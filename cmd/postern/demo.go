package main

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// demo runs everything on embedded servers with a sample mailbox, in a vault that
// dies with the process.
func (p *process) demo(ctx context.Context, args []string) error {
	f := p.flags("demo", "[--serve] [--json]")
	asServer := f.Bool("serve", false, "speak MCP on standard input and output")
	asJSON := f.Bool("json", false, "answer in JSON on a terminal too")
	if err := parse(f, args, 0, 0); err != nil {
		return err
	}
	servers, err := demo.Start(demo.Options{Logger: p.log})
	if err != nil {
		return err
	}
	defer servers.Close()
	v, remove, err := vault.Temporary(ctx, nil)
	if err != nil {
		return fmt.Errorf("the demo's vault cannot be made: %w", err)
	}
	defer func() { _ = remove() }()
	if err := v.AddAccount(ctx, servers.Account(), servers.Password); err != nil {
		return fmt.Errorf("the demo's account cannot be made: %w", err)
	}
	open := func(context.Context) (*vault.Vault, error) { return v, nil }
	principal := gateway.Principal{Name: "admin", Admin: true}
	if *asServer {
		principal = gateway.Principal{Name: mail.AgentPrincipal}
	}
	h, err := p.house(house.Plan{Profile: gateway.FullProfile(), Principal: principal, Open: open, Extensions: house.WhereNamed})
	if err != nil {
		return err
	}
	defer h.Close()
	if *asServer {
		return p.serveMCP(ctx, h, false)
	}
	if p.onTerminal() {
		fmt.Fprintln(p.stdout, "A sample mailbox on servers inside this process. Try: mail list --limit 5")
	}
	return p.converse(ctx, h, *asJSON, false)
}
