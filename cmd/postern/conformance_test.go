package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/conformance"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
	"github.com/postern-mail/postern/vault"
)

// demoHouse is what 'postern demo' serves, without the bound on commands per minute.
func demoHouse(t *testing.T) *testHouse {
	t.Helper()
	servers := sampleServers(t)
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	if err := v.AddAccount(t.Context(), servers.Account(), servers.Password); err != nil {
		t.Fatal(err)
	}
	h := wired(t)(newProcess(t, "POSTERN_ATTACHMENTS="+t.TempDir()).house(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "agent"}, Open: func(context.Context) (*vault.Vault, error) { return v, nil }}))
	h.vault = v
	admin := gateway.Principal{Name: "admin", Admin: true}
	if a := h.Gateway.Do(t.Context(), gateway.Request{Principal: admin, Line: "config set commands_per_minute 100000"}); !strings.Contains(string(a.JSON), `"success":true`) {
		t.Fatalf("%s", a.JSON)
	}
	return h
}

// piped is the house as a target of the suite, as a principal sees it.
func (h *testHouse) piped(principal gateway.Principal) conformance.Target {
	return &conformance.Pipe{Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		server := &mcpserve.Server{Gateway: h.Gateway, Principal: principal, Name: "postern", Version: "1", Instructions: instructions}
		return server.Stdio(ctx, in, out)
	}}
}

// judge runs the suite and holds the report to full conformance: every case, advice
// too, and nothing expected to fail.
func judge(t *testing.T, target conformance.Target, o *conformance.Options) *conformance.Report {
	t.Helper()
	o.StepTimeout = time.Minute // the machine may be busy
	report, err := conformance.Run(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK(true) {
		var b strings.Builder
		_ = conformance.WriteTable(&b, report, true)
		t.Errorf("%s", b.String())
	}
	return report
}

// TestWeReachFullWithNothingExpectedToFail runs every case against the demo's server,
// effects included, since nothing in it can be lost. The commands that wait or stop everything
// are not carried out, as their help says what they do.
func TestWeReachFullWithNothingExpectedToFail(t *testing.T) {
	slow(t, "TestOverHTTPWeConformAsOverPipes")
	t.Parallel()
	h, agent := demoHouse(t), gateway.Principal{Name: "agent"}
	report := judge(t, h.piped(agent), &conformance.Options{Suite: "acli", AllowEffects: true})
	if a := h.Gateway.Do(t.Context(), gateway.Request{Principal: agent, Line: "mail list --limit 1"}); !strings.Contains(string(a.JSON), `"success":true`) {
		t.Errorf("everything is stopped after the run: %s", a.JSON)
	}
	if report.Reached != conformance.Full || report.Partial {
		t.Errorf("reached %s, partial %t", report.Reached, report.Partial)
	}
	if report.Commands < 25 || report.Messages < 1500 {
		t.Errorf("%d commands and %d messages: less was asked than there is", report.Commands, report.Messages)
	}
	for _, c := range report.Results {
		// What a case needs and we do not have is listed here, so that a case does not
		// cease to apply unseen.
		if c.Status == conformance.NotApplicable && !notOurs(c.ID) {
			t.Errorf("%s is not applicable: %s", c.ID, c.Reason)
		}
	}
}

// notOurs are the cases about what no command an agent sees has: an argument of type
// number or boolean, a bounded number without an option's name, a secret, a default that is no
// number or text, a command without options, a text that is bounded and takes line ends. Help
// says no bounds without --full. The demo has no extensions.
func notOurs(id string) bool {
	for _, p := range []string{"argument.number.", "argument.boolean.", "discovery.schema.type-number", "discovery.schema.type-boolean", "discovery.default.type-number",
		"discovery.default.type-boolean", "discovery.default.type-enum", "discovery.schema.minimum", "discovery.schema.maximum", "discovery.default.type-array", "discovery.default.type-datetime", "discovery.schema.empty", "argument.bound.at-positional", "extension.",
		"found.number.", "found.secret.", "found.escape.newline", "found.escape.tab", "found.escape.backslash"} {
		if strings.HasPrefix(id, p) {
			return true
		}
	}
	return false
}

// TestTheAdministratorsCommandsConform asks what needs nothing carried out of the
// commands that an agent does not see, and that the audit log shows what was asked.
func TestTheAdministratorsCommandsConform(t *testing.T) {
	slow(t, "TestOverHTTPWeConformAsOverPipes")
	t.Parallel()
	h := demoHouse(t)
	report := judge(t, h.piped(gateway.Principal{Name: "admin", Admin: true}), &conformance.Options{
		IDs:      []string{"discovery.*", "argument.unknown", "argument.base", "argument.valid-guarded", "extension.audit", "security.command.*"},
		Harmless: []string{"audit list"},
	})
	asked := false
	for _, c := range report.Results {
		asked = asked || c.ID == "extension.audit" && c.Status == conformance.Passed
	}
	if !asked {
		t.Error("the audit log was not asked for")
	}
}

// TestOverHTTPWeConformAsOverPipes asks what depends on the transport.
func TestOverHTTPWeConformAsOverPipes(t *testing.T) {
	t.Parallel()
	h := demoHouse(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &mcpserve.Server{Gateway: h.Gateway, Name: "postern", Version: "1"}
	anybody := mcpserve.Caller{ID: "anybody", Principal: gateway.Principal{Name: "agent"}}
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		served <- server.HTTP(ctx, l, mcpserve.HTTPOptions{Admit: func(context.Context, string) (mcpserve.Caller, error) { return anybody, nil }})
	}()
	defer func() {
		stop()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	report := judge(t, &conformance.HTTP{URL: "http://" + l.Addr().String() + "/mcp"}, &conformance.Options{IDs: []string{"mcp.*", "parser.separator.*", "limit.*", "response.success*", "response.content.*"}})
	for _, c := range report.Results {
		if c.Status == conformance.NotApplicable && !strings.Contains(c.Reason, "transport stdio") && !strings.Contains(c.Reason, "2026-07-28") {
			t.Errorf("%s is not applicable: %s", c.ID, c.Reason)
		}
	}
}
