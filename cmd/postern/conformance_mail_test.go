package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/postern-mail/postern/conformance"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// demoFor is the demo inside this process, for a principal.
func demoFor(t *testing.T, principal gateway.Principal) *conformance.Pipe {
	t.Helper()
	servers, err := demo.Start(demo.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	if err := v.AddAccount(t.Context(), servers.Account(), servers.Password); err != nil {
		t.Fatal(err)
	}
	p := &process{getenv: func(string) string { return "" }, stderr: io.Discard, log: slog.New(slog.DiscardHandler)}
	h, err := p.wire(plan{profile: gateway.FullProfile(), principal: principal, open: func(context.Context) (*vault.Vault, error) { return v, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	o := gateway.MCPOptions{Name: "postern", Version: version(), Instructions: instructions, Logger: p.log}
	return &conformance.Pipe{Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return gateway.ServeStdio(ctx, gateway.NewMCPServer(h.gateway.MCP(h.principal), o), in, out, o)
	}}
}

// What the documents of the mailbox, of the agent mailbox and of the transport ask
// holds for an agent, and what they ask of the administrator's commands for the
// administrator.
func TestTheMailCasesHold(t *testing.T) {
	for _, x := range []struct {
		principal gateway.Principal
		absent    string // what cases that are not applicable say they miss
	}{
		{gateway.Principal{Name: "agent"}, "the server has no command "},
		{gateway.Principal{Name: "admin", Admin: true}, "none is missing"},
	} {
		t.Run(x.principal.Name, func(t *testing.T) {
			r, err := conformance.Run(t.Context(), demoFor(t, x.principal), &conformance.Options{Suite: "mail", AllowEffects: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Results) == 0 || !r.OK(true) {
				var b strings.Builder
				_ = conformance.WriteTable(&b, r, true)
				t.Error(b.String())
			}
			for _, c := range r.Results {
				if c.Status == conformance.NotApplicable && !strings.HasPrefix(c.Reason, x.absent) {
					t.Errorf("%s was not asked: %s", c.ID, c.Reason)
				}
			}
		})
	}
}
