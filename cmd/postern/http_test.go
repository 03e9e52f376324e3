package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// servedHTTP is 'postern serve --http' in this process.
type servedHTTP struct {
	url    string
	stderr *written
	stop   func() int // ends it and returns its status
}

var servingAt = regexp.MustCompile(`postern: serving MCP at (\S+)\n`)

// serveHTTP starts it with the vault's agent key at any free port.
func serveHTTP(t testing.TB, v testVault, flags ...string) *servedHTTP {
	t.Helper()
	s := &servedHTTP{stderr: &written{}}
	p := newProcess(t, v.environment(true)...) // serve is an agent whatever there is
	p.stderr = s.stderr
	p.args = append([]string{"serve", "--http", "127.0.0.1:0"}, flags...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- p.run(ctx) }()
	s.stop = sync.OnceValue(func() int { cancel(); return <-ended })
	t.Cleanup(func() { s.stop() })
	for {
		if at := servingAt.FindStringSubmatch(s.stderr.String()); at != nil {
			s.url = at[1]
			return s
		}
		select {
		case <-time.After(time.Millisecond):
		case status := <-ended:
			ended <- status
			t.Fatalf("it ended with %d: %s", status, s.stderr)
		}
	}
}

type bearerToken string

func (b bearerToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connectHTTP(t testing.TB, url, token, era string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearerToken(token)}, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func TestServeFlagsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	dir := t.TempDir()
	notACertificate := writeFile(t, filepath.Join(dir, "x.pem"), "x")
	for _, c := range testmain.Table[struct {
		Args, Says string
		Status     int
	}](t, "testdata/cases/serve_flags.txt") {
		status, stdout, stderr := inThisProcess(t, v.environment(false), append([]string{"serve"}, strings.Fields(strings.ReplaceAll(c.Args, "FILE", notACertificate))...))
		if status != c.Status || len(stdout) > 0 || !strings.Contains(string(stderr), c.Says) {
			t.Errorf("%s: %d, %q, %q", c.Args, status, stdout, stderr)
		}
	}
	// Without a vault there are no tokens, and so nobody who could come in.
	for _, env := range [][]string{{"POSTERN_DB=" + filepath.Join(dir, "none.db"), "POSTERN_KEY=" + v.text[1]}, {"POSTERN_DB=" + v.path}} {
		if status, _, stderr := inThisProcess(t, env, []string{"serve", "--http", "127.0.0.1:0"}); status != 3 {
			t.Errorf("%q: %d, %s", env, status, stderr)
		}
	}
}

func TestNoAuthIsSaidLoudly(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, newVault(t), "--no-auth")
	if !strings.Contains(s.stderr.String(), "WARNING: --no-auth: every program and every user of this machine") {
		t.Errorf("said %q", s.stderr)
	}
	for _, token := range []string{"", "anything"} {
		c, err := connectHTTP(t, s.url, token, "2026-07-28", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := call(t, c, command("policy show")); !a.Success {
			t.Errorf("%s", a.raw)
		}
	}
	if status := s.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	s = serveHTTP(t, newVault(t))
	if !strings.Contains(s.stderr.String(), "there is no grant yet") || strings.Contains(s.stderr.String(), "WARNING") {
		t.Errorf("said %q", s.stderr)
	}
	if _, err := connectHTTP(t, s.url, "", "2026-07-28", nil); err == nil {
		t.Error("somebody got in without a token")
	}
}

// workVault is a vault with the account work, on servers of its own, which may write to
// example.org when a person has said so.
func workVault(t *testing.T) (testVault, *demo.Servers) {
	t.Helper()
	servers, v := sampleServers(t), newVault(t)
	a := servers.Account()
	a.Name, a.Mode, a.AllowOut = "work", mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"@example.org"}}
	v.add(t, a, servers.Password.Reveal())
	return v, servers
}

// Whoever has a token writes what the client answers, so the client of a grant is asked
// about a send only where the administrator said so, and anybody's never.
func TestWhichClientsAreAskedOverHTTP(t *testing.T) {
	t.Parallel()
	v, servers := workVault(t)
	admin := newHouse(t, v)
	tokens, anybody := serveHTTP(t, v), serveHTTP(t, v, "--no-auth")
	for name, c := range map[string]struct {
		url, token string
		asked      int
		code       discovery.Code
	}{
		"a grant":                     {tokens.url, admin.token(t, "plain", "--accounts work --profile full"), 0, discovery.ApprovalRequired},
		"a grant that is to be asked": {tokens.url, admin.token(t, "believed", "--accounts work --profile full --ask-in-client"), 1, ""},
		"anybody":                     {anybody.url, "", 0, discovery.ApprovalRequired},
	} {
		for _, era := range []string{"2025-11-25", "2026-07-28"} {
			asked, before := 0, len(servers.Outgoing())
			session, err := connectHTTP(t, c.url, c.token, era, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if a, err := askOver(t.Context(), session, "policy show"); err != nil || strings.Contains(string(a.raw), `"asks_in_client":true`) != (c.asked > 0) {
				t.Errorf("%s, %s is told %s, %v", name, era, a.raw, err)
			}
			a, _ := call(t, session, command("mail send --to ann@example.org --subject Hello --body 'Shall we?'"))
			if a.Error.Code != c.code || asked != c.asked || len(servers.Outgoing())-before != c.asked {
				t.Errorf("%s, %s: asked %d times, %d left, %s", name, era, asked, len(servers.Outgoing())-before, a.raw)
			}
		}
	}
}

// From the command that makes a grant to the one that ends it, in both eras, with
// what an agent does in between, and what the log says of it.
func TestAGrantFromItsBeginningToItsEnd(t *testing.T) {
	t.Parallel()
	v, _ := workVault(t)
	opened := v.opened(t, 0)
	admin := newHouse(t, v)
	s := serveHTTP(t, v)
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		token := admin.token(t, "laptop", "--accounts work --identity repo:laptop --profile full --expires 1h")
		c, err := connectHTTP(t, s.url, token, era, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := call(t, c, command("mail list --limit 3")); !a.Success {
			t.Errorf("%s", a.raw)
		}
		// What was read over HTTP counts as read, since the answer arrived.
		admin.do(t, "agent send --from repo:desk --to repo:laptop --subject Hello", &struct{}{})
		for _, want := range []int{1, 0} {
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "agent read repo:laptop"}})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Data []struct {
					Subject string `json:"subject"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &got); err != nil || len(got.Data) != want {
				t.Errorf("%s: %d messages, want %d: %v", era, len(got.Data), want, err)
			}
			awaitRead(t, opened, "repo:laptop")
		}
		admin.do(t, "grant remove laptop", &struct{}{})
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "cli", Arguments: map[string]any{"command": "help"}}); err == nil {
			t.Errorf("%s: the session outlives its grant", era)
		}
		if _, err := connectHTTP(t, s.url, token, era, nil); err == nil {
			t.Errorf("%s: the token outlives its grant", era)
		}
		if strings.Contains(s.stderr.String(), strings.TrimPrefix(token, vault.GrantTokenPrefix)) {
			t.Errorf("the log has the token: %s", s.stderr)
		}
	}
	entries, err := opened.Audit(t.Context(), vault.AuditQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range entries {
		seen[e.Principal+" "+e.Parsed]++
		if strings.Contains(e.Command, vault.GrantTokenPrefix) {
			t.Errorf("the log has a token: %+v", e)
		}
	}
	for entry, want := range map[string]int{"grant:laptop mail list": 2, "grant:laptop agent read": 4, "admin grant add": 2, "admin grant remove": 2} {
		if seen[entry] != want {
			t.Errorf("%d entries %q, want %d", seen[entry], entry, want)
		}
	}
}

// awaitRead waits until nothing that the agent was given is unread: the note of that
// follows the answer.
func awaitRead(t testing.TB, v *vault.Vault, agent string) {
	t.Helper()
	for {
		status, err := agentmail.New(v).Status(t.Context(), agent, "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(status, func(s agentmail.Status) bool { return s.Unread > 0 }) {
			return
		}
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// servingProcess starts 'postern serve --http', which ends with the test at the latest. What it says
// after its first line comes when it has ended.
func servingProcess(t testing.TB, c *exec.Cmd) (url string, log <-chan string) {
	t.Helper()
	stderr, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewReader(stderr)
	line, _ := lines.ReadString('\n')
	at := servingAt.FindStringSubmatch(line)
	if at == nil {
		t.Fatalf("it says %q", line)
	}
	rest := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(lines)
		rest <- string(b)
	}()
	return at[1], rest
}
