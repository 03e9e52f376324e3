package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
)

// go test ./cmd/postern -run Machines -v -args -machines 1m.
var machinesTime = flag.Duration("machines", 0, "how long twenty processes on three addresses work, instead of four for a second")

const (
	machineAccounts  = 10
	machineCommands  = 20 // a minute, while that is counted
	machineSends     = 5  // an hour
	machineUnlimited = 100_000
)

// machine is 'postern serve --http' as a process.
type machine struct {
	*exec.Cmd
	url string
}

// machines starts so many processes over a vault, on the first of three loopback addresses.
func machines(t *testing.T, v testVault, processes, addresses int) []*machine {
	t.Helper()
	home := t.TempDir()
	var all []*machine
	for i := range processes {
		c := program(t, append(v.environment(false), "HOME="+home, "XDG_CONFIG_HOME="+home), "serve", "--http", fmt.Sprintf("127.0.0.%d:0", i%addresses+1))
		url, _ := servingProcess(t, c)
		all = append(all, &machine{c, url})
	}
	return all
}

// machineAgent is the holder of a grant.
type machineAgent struct {
	n              int
	token, account string
	sent, answered atomic.Int64 // commands
}

func (a *machineAgent) name() string     { return fmt.Sprintf("agent%d", a.n) }
func (a *machineAgent) identity() string { return "fleet:" + a.name() }

var machineClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// run sends a command to a machine. The error is that of a machine which has gone.
func (a *machineAgent) run(ctx context.Context, m *machine, line string) (got answer, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "cli", "arguments": map[string]any{"command": line},
		"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "machines", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{}}}})
	if err != nil {
		return got, err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", m.url, strings.NewReader(string(body)))
	if err != nil {
		return got, err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + a.token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "cli"} {
		r.Header.Set(name, value)
	}
	a.sent.Add(1)
	res, err := machineClient.Do(r)
	if err != nil {
		return got, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return got, err
	}
	at := strings.IndexByte(string(text), '{') // behind "data: " where it comes as an event
	var message struct {
		Result struct {
			Content []struct{ Text string }
		}
	}
	if at < 0 || json.NewDecoder(strings.NewReader(string(text[at:]))).Decode(&message) != nil || len(message.Result.Content) != 1 {
		return answer{raw: text}, nil // judged like any other answer
	}
	got.raw = []byte(message.Result.Content[0].Text)
	if err := json.Unmarshal(got.raw, &got); err == nil {
		a.answered.Add(1)
	}
	return got, nil
}

// step is the n-th command of an agent among others, and what its answer must not show.
func (a *machineAgent) step(n, agents int) (line string, foreign bool) {
	switch n % 7 {
	case 0:
		return "mail list --limit 3", false
	case 1:
		return fmt.Sprintf("agent send --from %s --to fleet:agent%d --subject 'for agent%d.'", a.identity(), (a.n+1)%agents, (a.n+1)%agents), false
	case 2:
		return "agent read " + a.identity(), false
	case 3:
		return "policy show", false
	case 4:
		return fmt.Sprintf("mail send --to ann@example.org --subject 'for agent%d.' --body Hello", a.n), false
	case 5:
		return "outbox list", false
	}
	if n%2 == 0 {
		return fmt.Sprintf("agent read fleet:agent%d", (a.n+1)%agents), true
	}
	return fmt.Sprintf("mail list --account a%d", (a.n+1)%machineAccounts), true
}

// check judges an answer.
func (a *machineAgent) check(t *testing.T, line string, foreign bool, got answer) {
	waits := got.Error.Code == discovery.ApprovalRequired && strings.HasPrefix(line, "mail send")
	switch refused := got.Error.Code == discovery.PermissionDenied || got.Error.Code == discovery.NotFound || got.Error.Code == discovery.ValidationError; {
	case foreign && (got.Success || !refused), !foreign && !got.Success && !waits:
		t.Errorf("%s: %s: %.400s", a.name(), line, got.raw)
	}
	for text := string(got.raw); ; { // nothing that is for another one
		_, rest, ok := strings.Cut(text, "for agent")
		if !ok {
			break
		}
		if !strings.HasPrefix(rest, fmt.Sprint(a.n, ".")) && !strings.HasPrefix(line, "agent send") {
			t.Errorf("%s sees another's: %s: %.400s", a.name(), line, got.raw)
		}
		text = rest
	}
	for i := range machineAccounts {
		if other := fmt.Sprintf(`"a%d"`, i); other != `"`+a.account+`"` && !foreign && strings.Contains(string(got.raw), other) {
			t.Errorf("%s sees %s: %s: %.400s", a.name(), other, line, got.raw)
		}
	}
}

// machineVault makes accounts and grants in an empty place.
func machineVault(t *testing.T, v testVault, account mail.Account, password mail.Secret, agents int) []*machineAgent {
	t.Helper()
	opened := v.opened(t, 0)
	for i := range machineAccounts {
		account.Name, account.Mode, account.AllowOut = fmt.Sprint("a", i), mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"@example.org"}}
		if err := opened.AddAccount(t.Context(), account, password); err != nil {
			t.Fatal(err)
		}
	}
	var all []*machineAgent
	for n := range agents {
		a := &machineAgent{n: n, account: fmt.Sprint("a", n%machineAccounts)}
		_, token, err := opened.AddGrant(t.Context(), vault.Grant{Name: a.name(), Accounts: []string{a.account}, Profile: "full", Identity: a.identity()}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		a.token = string(token.Reveal())
		all = append(all, a)
	}
	return all
}

// work has every process busy with the agents' commands for a time, and returns how many
// were answered. With kill, two of the processes end in the middle, without a word.
func work(t *testing.T, all []*machine, agents []*machineAgent, each time.Duration, kill bool) (answered int64) {
	t.Helper()
	for _, a := range agents {
		answered -= a.answered.Load()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var dead sync.Map
	var wg sync.WaitGroup
	for w := range 2 * len(all) {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a, m := agents[(w+n*2*len(all))%len(agents)], all[(w+n)%len(all)]
				if _, gone := dead.Load(m); gone {
					continue
				}
				line, foreign := a.step(n/7+w+n, len(agents))
				got, err := a.run(t.Context(), m, line)
				if _, gone := dead.Load(m); err != nil && !gone {
					t.Errorf("%s at %s: %v", line, m.url, err)
				}
				if err == nil {
					a.check(t, line, foreign, got)
				}
			}
		})
	}
	time.Sleep(each / 2)
	if kill {
		for _, m := range all[:2] {
			dead.Store(m, true)
			if err := m.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	time.Sleep(each / 2)
	cancel()
	wg.Wait()
	for _, a := range agents {
		answered += a.answered.Load()
	}
	return answered
}

// Several machines over one vault in a database are one server: limits hold over all of
// them, nobody sees what is another's, and the log has every command.
func TestManyMachines(t *testing.T) {
	t.Parallel()
	slow(t, "TestProcessesShareOneVault")
	database := servertest.Postgres(t)
	servers := sampleServers(t)
	processes, grants, each := 4, machineAccounts, time.Second/2
	if *machinesTime > 0 {
		processes, grants, each = 20, 200, *machinesTime/6
	}
	v := newVaultAt(t, database.NewSchema(t))
	admin := newHouse(t, v)
	admin.do(t, fmt.Sprint("config set commands_per_minute ", machineUnlimited), &struct{}{})
	admin.do(t, "config set sends_per_hour 10000", &struct{}{})
	agents := machineVault(t, v, servers.Account(), servers.Password, grants)

	if *machinesTime > 0 { // beside a file, which one machine has
		file := newVault(t)
		other := newHouse(t, file)
		other.do(t, fmt.Sprint("config set commands_per_minute ", machineUnlimited), &struct{}{})
		other.do(t, "config set sends_per_hour 10000", &struct{}{})
		holders := machineVault(t, file, servers.Account(), servers.Password, grants)
		one := machines(t, file, processes/3, 1)
		n := work(t, one, holders, each, false)
		for _, m := range one {
			_ = m.Process.Kill()
		}
		t.Logf("a file, %d processes on 1 address: %.0f commands a second", processes/3, float64(n)/each.Seconds())
	}
	var all []*machine
	for addresses := 1; addresses <= 3; addresses++ {
		for _, m := range all {
			_ = m.Process.Kill()
		}
		if addresses < 3 && *machinesTime == 0 {
			continue
		}
		now := processes * addresses / 3
		all = machines(t, v, now, addresses)
		n := work(t, all, agents, each, false)
		t.Logf("PostgreSQL, %d processes on %d addresses: %.0f commands a second", now, addresses, float64(n)/each.Seconds())
	}
	work(t, all, agents, each, true)
	all = all[2:]

	entries := map[string]int64{}
	opened := v.opened(t, 0)
	for q := (vault.AuditQuery{Limit: 501}); ; {
		list, err := opened.Audit(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			entries[e.Principal]++
		}
		q.Before = list[len(list)-1].Seq
	}
	for _, a := range agents {
		if n := entries["grant:"+a.name()]; n < a.answered.Load() || n > a.sent.Load() {
			t.Errorf("%s has %d entries for %d answers to %d commands", a.name(), n, a.answered.Load(), a.sent.Load())
		}
	}

	// Nobody was counted under these limits yet.
	admin.do(t, fmt.Sprint("config set commands_per_minute ", machineCommands), &struct{}{})
	admin.do(t, fmt.Sprint("config set sends_per_hour ", machineSends), &struct{}{})
	began := time.Now()
	through := burst(t, all, agents[1], 4*machineCommands, "policy show")
	if time.Since(began) < 50*time.Second && through != machineCommands {
		t.Errorf("%d commands got through, want %d", through, machineCommands)
	}
	through = burst(t, all, agents[2], machineCommands, "mail send --to ann@example.org --subject Hello --body Hello")
	if through != machineSends {
		t.Errorf("%d sends were taken, want %d", through, machineSends)
	}
	var whole struct {
		OK bool `json:"ok"`
	}
	if admin.do(t, "vault check", &whole); !whole.OK {
		t.Error("the vault is not whole")
	}
	admin.entries(t)
}

// burst sends a command to all machines at once, and returns how many were not limited.
func burst(t *testing.T, all []*machine, a *machineAgent, n int, line string) int {
	t.Helper()
	var through atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			got, err := a.run(t.Context(), all[i%len(all)], line)
			switch {
			case err != nil || !got.Success && got.Error.Code != discovery.RateLimited && got.Error.Code != discovery.ApprovalRequired:
				t.Errorf("%s: %v, %s", line, err, got.raw)
			case got.Error.Code != discovery.RateLimited:
				through.Add(1)
			}
		})
	}
	wg.Wait()
	return int(through.Load())
}

// Two machines wait for mail in one folder, of which one rests in IDLE for both, and read a POP3
// mailbox in turns.
func TestMachinesShareMailboxes(t *testing.T) {
	t.Parallel()
	slow(t, "TestOneMachineRestsInIDLE")
	database, s, user := servertest.Postgres(t), servertest.SharedDovecot(t), servertest.User("ann")
	v := newVaultAt(t, database.NewSchema(t))
	ann := dovecotAccount(s, user)
	ann.Name = "ann"
	v.add(t, ann, servertest.Password)
	ann.Name, ann.Protocol, ann.IMAP = "pop", mail.POP3, mail.Endpoint{}
	ann.POP3 = mail.Endpoint{Host: s.Host, Port: s.POP3SPort, Security: mail.TLS}
	v.add(t, ann, servertest.Password)
	leases := func() (names []string) {
		_, schema, _ := strings.Cut(v.path, "search_path=")
		for _, row := range database.Exec(t, "SELECT name FROM "+schema+".postern_leases WHERE until > now()") {
			names = append(names, row[0])
		}
		return names
	}
	var all sync.WaitGroup
	for range 2 {
		h := newHouse(t, v)
		all.Go(func() {
			if a := h.do(t, "mail watch --account ann --after 0 --wait 60s", nil); !a.Success || !strings.Contains(string(a.raw), "for both") {
				t.Errorf("%s", a.raw)
			}
			var list listData
			h.do(t, "mail list --account pop", &list)
			if len(list.Messages) != 1 {
				t.Errorf("%+v", list)
			}
		})
	}
	for n := 0; len(leases()) == 0; n++ {
		if n == 3000 {
			t.Fatal("nobody has a lease")
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.Deliver(t, user, "INBOX", []byte("From: bob@example.org\r\nSubject: for both\r\n\r\nHello\r\n"))
	all.Wait()
	if names := leases(); len(names) == 0 || len(names) > 2 {
		t.Errorf("the leases are %q", names)
	}
}
