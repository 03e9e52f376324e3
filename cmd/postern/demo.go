package main

import (
	"context"
	"fmt"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/screen"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// demoWelcome says what to try first at the demo's prompt. The numbers are those of samples, in
// the order of package demo.
var demoWelcome = screen.Section{Title: "Try", Rows: [][2]string{
	{"inbox 12", "40 poses as another sender: it is marked"},
	{"read 43", "text that only agents would see is taken out"},
	{"approve", "an agent's answer waits for your word"},
}}

// demoAgent are commands of an agent, the last of which waits for the person.
var demoAgent = []string{
	"mail list -n 10",
	"mail reply 45 --quote --body 'Yes, she may, without a flash and for her own use.\n\nLibrary office'",
}

// demo runs everything on embedded servers with a sample mailbox, in a vault that
// dies with the process. Everybody may be written to. A person at the prompt decides about what
// leaves; where a program has the demo to itself nobody does.
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
	account := servers.Account()
	account.AllowOut.Entries = []string{"*"}
	principal := gateway.Principal{Name: "admin", Admin: true}
	if *asServer {
		principal = gateway.Principal{Name: mail.AgentPrincipal}
	}
	atPrompt := p.onTerminal() && !*asServer && !*asJSON
	if atPrompt {
		account.Mode = mail.Approve
	}
	if err := v.AddAccount(ctx, account, servers.Password); err != nil {
		return fmt.Errorf("the demo's account cannot be made: %w", err)
	}
	open := func(context.Context) (*vault.Vault, error) { return v, nil }
	h, err := p.house(house.Plan{Profile: gateway.FullProfile(), Principal: principal, Open: open, Extensions: house.WhereNamed})
	if err != nil {
		return err
	}
	defer h.Close()
	if *asServer {
		return p.serveMCP(ctx, h, false)
	}
	if atPrompt {
		for _, line := range demoAgent {
			h.Gateway.Do(ctx, gateway.Request{Principal: gateway.Principal{Name: mail.AgentPrincipal}, Line: line})
		}
		h.Gateway.Do(ctx, gateway.Request{Principal: principal, Line: demoAgent[0]}) // so that short ids are known
		p.page(p.stdout, "A sample mailbox. Send what you like, nothing leaves.", demoWelcome)
		fmt.Fprintln(p.stdout)
	}
	return p.converse(ctx, h, *asJSON, false)
}
