package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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
	dir, err := os.MkdirTemp("", "postern-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	open, err := demoVault(ctx, filepath.Join(dir, "demo.db"), servers)
	if err != nil {
		return fmt.Errorf("the demo's vault cannot be made: %w", err)
	}
	principal := gateway.Principal{Name: "admin", Admin: true}
	if *asServer {
		principal = gateway.Principal{Name: "agent"}
	}
	h, err := p.wire(plan{profile: gateway.FullProfile(), principal: principal, open: open})
	if err != nil {
		return err
	}
	defer h.close()
	if *asServer {
		return p.serveMCP(ctx, h, false)
	}
	if p.onTerminal() {
		fmt.Fprintln(p.stdout, "A sample mailbox on servers inside this process. Try: mail list --limit 5")
	}
	return p.converse(ctx, h, *asJSON)
}

// demoVault makes a vault under fresh keys that exist in this process alone.
func demoVault(ctx context.Context, path string, servers *demo.Servers) (func(context.Context) (*vault.Vault, error), error) {
	var keys vault.Keys
	for _, k := range []*mail.Secret{&keys.Admin, &keys.Agent} {
		key, err := vault.NewKey()
		if err != nil {
			return nil, err
		}
		*k = mail.NewSecret([]byte(key))
	}
	if _, err := vault.Init(ctx, path, keys); err != nil {
		return nil, err
	}
	v, err := vault.Open(ctx, path, keys, nil)
	if err != nil {
		return nil, err
	}
	if err := v.AddAccount(ctx, servers.Account(), servers.Password); err != nil {
		return nil, err
	}
	return func(context.Context) (*vault.Vault, error) { return v, nil }, nil
}
