package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/cmd/postern/internal/setup"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// fakeMachine is a machine of its own: a home directory, mail servers that nobody set up
// yet, and a domain whose records name them.
type fakeMachine struct {
	home    string
	passing string // where what is temporary goes
	servers *demo.Servers
	ca      string
	env     map[string]string
	srv     map[string]*net.SRV // by service
	ring    setup.Keyring
}

func newMachine(t testing.TB) *fakeMachine { return newMachineAt(t, nil) }

// newMachineAt is newMachine with a clock for its servers.
func newMachineAt(t testing.TB, now func() time.Time) *fakeMachine {
	t.Helper()
	servers, home := sampleServersAt(t, now), t.TempDir()
	s := &fakeMachine{home: home, passing: t.TempDir(), servers: servers, ca: writeFile(t, filepath.Join(t.TempDir(), "ca.pem"), string(servers.CAPEM)), ring: brokenKeyring{}}
	s.env = map[string]string{"HOME": home, "POSTERN_DB": filepath.Join(home, "conf", "postern", "postern.db"), "PW": servers.Password.Reveal(), "TERM": "xterm"}
	s.srv = map[string]*net.SRV{"imaps": record(t, servers.IMAPAddr), "submissions": record(t, servers.SMTPAddr)}
	return s
}

// record points to a server by the name that its certificate has, too.
func record(t testing.TB, address string) *net.SRV {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return &net.SRV{Target: "localhost.", Port: uint16(n)}
}

// LookupSRV implements autoconfig.Resolver.
func (s *fakeMachine) LookupSRV(_ context.Context, service, _, name string) (string, []*net.SRV, error) {
	if r := s.srv[service]; r != nil && name == "example.org" {
		return name, []*net.SRV{r}, nil
	}
	return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// LookupMX implements autoconfig.Resolver.
func (s *fakeMachine) LookupMX(context.Context, string) ([]*net.MX, error) {
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// brokenKeyring is a machine without a desktop.
type brokenKeyring struct{}

var errNoKeyring = errors.New("there is no session bus")

func (brokenKeyring) Secret(context.Context, string) (mail.Secret, error) {
	return mail.Secret{}, errNoKeyring
}
func (brokenKeyring) Set(context.Context, string, mail.Secret) error { return errNoKeyring }
func (brokenKeyring) Delete(context.Context, string) error           { return errNoKeyring }

// process is a process on the machine, whose output is returned.
func (s *fakeMachine) process(t testing.TB) (*process, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	p := newProcess(t)
	p.getenv, p.stdout, p.stderr = func(name string) string { return s.env[name] }, &out, &out
	p.seal, p.self, p.ring = sealCheaply, "/opt/postern/postern", s.ring
	p.finder = &autoconfig.Finder{Resolver: s, Transport: noWeb{}}
	return p, &out
}

// init runs init without a person, with these options.
func (s *fakeMachine) init(t testing.TB, args ...string) (out string, err error) {
	t.Helper()
	p, written := s.process(t)
	err = p.init(t.Context(), args)
	return written.String(), err
}

// asks runs the wizard as it asks line by line, for a person who types these lines, which | parts.
// In them ADDRESS, PW, CA, IMAP and SMTP are those of the machine's servers, and a port alone is
// IMAPPORT or SMTPPORT. ENDS are the last answers: an account that only reads, keys in files, no
// client, add it.
func (s *fakeMachine) asks(t testing.TB, lines string) (out string, err error) {
	t.Helper()
	_, imap, _ := net.SplitHostPort(s.servers.IMAPAddr)
	_, smtp, _ := net.SplitHostPort(s.servers.SMTPAddr)
	lines = strings.NewReplacer("ENDS", "\n2\n\n2\n\n\n", "ADDRESS", demo.Username, "PW", s.env["PW"], "CA", s.ca, "PASS", passphrase,
		"IMAPPORT", imap, "SMTPPORT", smtp, "IMAP", s.servers.IMAPAddr, "SMTP", s.servers.SMTPAddr, "|", "\n").Replace(lines)
	p, written := s.process(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(lines); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	p.stdin = r
	path := s.env["POSTERN_DB"]
	system := p.setupSystem(path)
	system.Temporary = s.passing
	err = setup.Ask(t.Context(), system, setup.Options{Path: path, Plain: true})
	return written.String(), err
}

// sets is asks, which must end with an account.
func (s *fakeMachine) sets(t testing.TB, lines string) (out string, a mail.Account) {
	t.Helper()
	out, err := s.asks(t, lines)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.noSecretIn(t, out)
	if a, err = s.vault(t).Account(t.Context(), "default"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out, a
}

// memoryKeyring is a keyring that keeps what it is told, by name.
type memoryKeyring map[string]string

func (k memoryKeyring) Secret(_ context.Context, name string) (mail.Secret, error) {
	value, ok := k[name]
	if !ok {
		return mail.Secret{}, mail.ErrNotInKeyring
	}
	return mail.NewSecret([]byte(value)), nil
}

func (k memoryKeyring) Set(_ context.Context, name string, s mail.Secret) error {
	k[name] = s.Reveal()
	return nil
}

func (k memoryKeyring) Delete(_ context.Context, name string) error {
	delete(k, name)
	return nil
}

// untouched fails when there is anything on the machine.
func (s *fakeMachine) untouched(t testing.TB) {
	t.Helper()
	if left := s.files(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, err := os.ReadDir(s.passing); err != nil || len(left) > 0 {
		t.Errorf("left behind for a while: %v, %v", left, err)
	}
	if k, ok := s.ring.(memoryKeyring); ok && len(k) > 0 {
		t.Errorf("left behind in the keyring: %d keys", len(k))
	}
}

// left are the files below a directory.
func left(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if path != dir {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (s *fakeMachine) files(t testing.TB) []string {
	t.Helper()
	return left(t, s.home)
}

// passphrase is that of a machine's administrator's key.
const passphrase = "correct höörse"

// vault opens what was made, with the keys that were kept. A short run leaves an
// administrator's key that is sealed as it is.
func (s *fakeMachine) vault(t testing.TB) *vault.Vault {
	t.Helper()
	p, _ := s.process(t)
	system := p.system()
	system.Passphrase = func(context.Context, bool) (mail.Secret, error) { return mail.NewSecret([]byte(passphrase)), nil }
	path := s.env["POSTERN_DB"]
	var keys vault.Keys
	var err error
	if sealed, _ := os.ReadFile(house.AdminKeyFile(path)); testing.Short() && strings.HasPrefix(string(sealed), vault.PassphrasePrefix) {
		keys, err = system.Keys(t.Context(), path, true)
	} else if keys, err = system.FindKeys(t.Context(), path); keys.Admin.IsZero() {
		t.Fatalf("the administrator's key was not kept: %v", err)
	}
	if err != nil || keys.Agent.IsZero() {
		t.Fatalf("the agent's key was not kept: %v", err)
	}
	v, err := vault.Open(t.Context(), s.env["POSTERN_DB"], keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// found are the answers up to the name of the account of a person who takes the servers that were
// found, and gives the authority of their certificates.
const found = "ADDRESS|y|PW|2|CA|"

// Nobody needs more than an address, a password and the return key: the rest is found
// or proposed. What was made works as it was printed.
func TestAnAddressAndAPasswordAreEnough(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	out, a := s.sets(t, found+"||||||PASS|PASS|||")
	for _, want := range []string{"localhost", "certificate", "works:", "every message in every folder", "everybody, each message after you approved it", "install claude-code --profile full\n",
		"what came today?\n", "postern repl\n", "postern approve\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	if a.Mode != mail.Approve || !slices.Equal(a.AllowOut.Entries, []string{"*"}) || a.Destroy != mail.DestroyOff || a.SMTP.IsZero() {
		t.Fatalf("%+v", a)
	}
	admin, agent := house.AdminKeyFile(s.env["POSTERN_DB"]), house.AgentKeyFile(s.env["POSTERN_DB"])
	if filepath.Dir(admin) == filepath.Dir(agent) {
		t.Error("the administrator's key lies beside the agent's")
	}
	for _, file := range []string{admin, agent} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	s.listsMail(t, s.pasted(t, out))
}

// failing is what fails where a terminal does not show what it should: a test, or a script.
type failing interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// noSecretIn fails when a text holds the password or a key.
func (s *fakeMachine) noSecretIn(t failing, text string) {
	t.Helper()
	secrets := []string{s.env["PW"], passphrase}
	for _, file := range []string{house.AdminKeyFile(s.env["POSTERN_DB"]), house.AgentKeyFile(s.env["POSTERN_DB"])} {
		if key, err := os.ReadFile(file); err == nil && !strings.HasPrefix(string(key), vault.KeyringPrefix) {
			secrets = append(secrets, strings.TrimSpace(string(key)))
		}
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is shown")
		}
	}
}

// pasted runs the line that init says prints what to paste, and returns what it prints.
func (s *fakeMachine) pasted(t testing.TB, said string) string {
	t.Helper()
	_, line, _ := strings.Cut(said, "    postern install ")
	_, line, found := strings.Cut(line, "    postern install ")
	line, _, _ = strings.Cut(line, "\n")
	if !found || !strings.HasSuffix(line, " --print") {
		t.Fatalf("nothing is said that prints a configuration:\n%s", said)
	}
	p, out := s.process(t)
	p.stderr, p.self = io.Discard, "postern"
	if err := p.install(t.Context(), strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// listsMail starts the server as the printed configuration says, with nothing else in
// the environment, and asks it for mail.
func (s *fakeMachine) listsMail(t testing.TB, printed string) {
	t.Helper()
	from := strings.Index(printed, "{\n  \"mcpServers\"")
	if from < 0 {
		t.Fatalf("no configuration is printed:\n%s", printed)
	}
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcpServers"`
	}
	if err := json.NewDecoder(strings.NewReader(printed[from:])).Decode(&config); err != nil {
		t.Fatal(err)
	}
	entry := config.Servers["postern"]
	if len(entry.Args) == 0 || entry.Env["POSTERN_POLICY_PIN"] == "" {
		t.Fatalf("%+v", entry)
	}
	c := program(t, nil, entry.Args...)
	c.Env = []string{actAsPostern + "=1", "HOME=" + t.TempDir()}
	for name, value := range entry.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	client := gatewaytest.Start(t, c)
	if m := client.Call("mail list --limit 2 --full"); !strings.HasPrefix(m.Text(), `{"success":true`) || strings.Count(m.Text(), `"message_id"`) != 2 {
		t.Errorf("%s", m.Line)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// accountOptions are options of an account on the machine's servers, of which init is to agree to all that
// it finds.
func (s *fakeMachine) accountOptions(name string, more ...string) []string {
	return append([]string{"--accept-found", name, "--email", demo.Username, "--ca-file", s.ca, "--password-from", "env:PW"}, more...)
}

// A key that is shown once is not proposed for a command line, of which a shell keeps a history.
func TestAKeyThatIsShownOnceStaysOutOfCommands(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	out, err := s.init(t, append([]string{"--admin-key", "show", "--agent-key", "file", "--allow-out", "*"}, s.accountOptions("work", "--mode", "approve")...)...)
	for _, says := range []string{"shown this once", "in a file that you alone may read, such as:", "POSTERN_ADMIN_KEY_FILE=FILE", "postern approve, which asks for the key\n"} {
		if !strings.Contains(out, says) {
			t.Errorf("%v: it does not say %q:\n%s", err, says, out)
		}
	}
	if strings.Contains(out, "POSTERN_ADMIN_KEY=") {
		t.Errorf("%s", out)
	}
}

// Run again, it adds another account or changes nothing.
func TestRunAgainItAddsAnAccountOrNothing(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	if out, err := s.init(t, append([]string{"--admin-key", "file", "--agent-key", "file", "--allow-out", "ann@example.org,@example.com"}, s.accountOptions("work", "--mode", "approve")...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, files := read(t, s.env["POSTERN_DB"]), s.files(t)
	for _, c := range []struct {
		key, password string
		args          []string
		said          string
		err           error // nil: any but none
	}{
		{"", "", nil, "unchanged", errNone},
		{"", "", nil, "They write to   ann@example.org, anybody at example.com, each message after you approved it", errNone},
		{"", "", s.accountOptions("second"), "takes POSTERN_ADMIN_KEY", nil},
		{house.AdminKeyFile(s.env["POSTERN_DB"]), "", s.accountOptions("work"), "", vault.ErrExists},
		{house.AdminKeyFile(s.env["POSTERN_DB"]), "wrong-c4n4ry", s.accountOptions("second"), "Nothing was stored", nil},
	} {
		s.env["POSTERN_ADMIN_KEY_FILE"], s.env["PW"] = c.key, cmp.Or(c.password, s.servers.Password.Reveal())
		out, err := s.init(t, c.args...)
		said := fmt.Sprint(out, err)
		if (err == nil) != (c.err == errNone) || err != nil && c.err != nil && !errors.Is(err, c.err) || !strings.Contains(said, c.said) || strings.Contains(said, "c4n4ry") {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
		if read(t, s.env["POSTERN_DB"]) != before || !slices.Equal(s.files(t), files) {
			t.Errorf("%q changed something: %v", c.args, s.files(t))
		}
	}
	s.env["PW"] = s.servers.Password.Reveal()
	if out, err := s.asks(t, "n|"); err != nil || !strings.Contains(out, "Nothing was changed") || read(t, s.env["POSTERN_DB"]) != before {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"second", "third"} {
		if out, err := s.init(t, s.accountOptions(name)...); err != nil || strings.Contains(out, "default_account") != (name == "second") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	accounts, err := s.vault(t).Accounts(t.Context())
	if err != nil || len(accounts) != 3 {
		t.Errorf("%d accounts, %v", len(accounts), err)
	}
	// What a command means that names no account stays the first.
	if name, err := s.vault(t).Setting(t.Context(), "default_account"); err != nil || name != "work" {
		t.Errorf("default_account is %q, %v", name, err)
	}
}

// errNone stands for no error.
var errNone = errors.New("none")

// Keys that a set-up kept which was killed then are used by the next one; so are those
// of the environment, and then none are made.
func TestKeysThatAreThereAreUsed(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	adminKey, agentKey := newKey(t), newKey(t)
	s.ring = memoryKeyring{vault.KeyringName("agent-1"): agentKey}
	for file, text := range map[string]string{house.AdminKeyFile(s.env["POSTERN_DB"]): adminKey, house.AgentKeyFile(s.env["POSTERN_DB"]): vault.KeyringPrefix + "agent-1"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text+"\n")
	}
	before := s.files(t)
	if out, err := s.init(t); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p, _ := s.process(t)
	if keys, err := p.system().FindKeys(t.Context(), s.env["POSTERN_DB"]); err != nil || keys.Admin.Reveal() != adminKey || keys.Agent.Reveal() != agentKey {
		t.Errorf("other keys: %v", err)
	}
	if now := s.files(t); len(now) > len(before)+2 { // the vault and its lock
		t.Errorf("%v", now)
	}
	s.vault(t)

	s = newMachine(t)
	s.env["POSTERN_ADMIN_KEY"], s.env["POSTERN_KEY"] = adminKey, agentKey
	out, err := s.asks(t, found+"|2||||")
	if err != nil || strings.Contains(strings.Join(s.files(t), " "), ".key") || strings.Contains(out, adminKey) || strings.Contains(out, agentKey) {
		t.Errorf("%v, %v\n%s", err, s.files(t), out)
	}
}

// An administrator's key that the person keeps is shown once, and asked for when it is
// needed again.
func TestAKeyThatThePersonKeeps(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	out, err := s.asks(t, found+"|2||3|||")
	admin := regexp.MustCompile(`[A-Za-z0-9+/]{43}=`).FindString(out)
	if _, none := os.Stat(house.AdminKeyFile(s.env["POSTERN_DB"])); err != nil || none == nil || strings.Count(out, admin) != 1 {
		t.Fatalf("it is kept, or shown again: %v\n%s", err, out)
	}
	if out, err = s.asks(t, admin+"|y|"+found+"|2||||"); err != nil || strings.Contains(out, admin) {
		t.Fatalf("%v\n%s", err, out)
	}
	v, err := vault.Open(t.Context(), s.env["POSTERN_DB"], vault.Keys{Admin: mail.NewSecret([]byte(admin))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accounts, err := v.Accounts(t.Context()); err != nil || len(accounts) != 2 {
		t.Errorf("%d accounts, %v", len(accounts), err)
	}
	if out, err := s.asks(t, strings.Repeat("A", 43)+"=|"); !errors.Is(err, context.Canceled) || !strings.Contains(out, "not the key of this vault") {
		t.Errorf("a wrong key: %v\n%s", err, out)
	}
}

// Without a terminal nothing is asked, and nothing found is used that nobody agreed
// to.
func TestUnaskedItRefusesWhatNobodyAgreedTo(t *testing.T) {
	t.Parallel()
	s := newMachine(t)
	for _, c := range testmain.Table[struct{ Args, Said string }](t, "testdata/cases/init_unasked.txt") {
		words := strings.Fields(strings.NewReplacer("ADDRESS", demo.Username, "CA", s.ca).Replace(c.Args))
		if slices.Contains(words, "work") {
			words = append(words, "--password-from", "env:PW")
		}
		out, err := s.init(t, words...)
		if err == nil || !strings.Contains(err.Error()+out, c.Said) {
			t.Errorf("%s: %v\n%s", c.Args, err, out)
		}
		s.untouched(t)
	}
}

// machineVar describes a machine to a process of its own: the ports of its servers.
const machineVar = "POSTERN_TEST_MACHINE"

// onMachine has a process find the servers of a machine, and no keyring, where the
// test that started it says so.
func onMachine(p *process) *process {
	text := p.getenv(machineVar)
	if text == "" {
		return p
	}
	s := &fakeMachine{ring: brokenKeyring{}}
	if err := json.Unmarshal([]byte(text), &s.srv); err != nil {
		panic(err)
	}
	p.finder, p.ring = &autoconfig.Finder{Resolver: s, Transport: noWeb{}}, s.ring
	if p.getenv(cheaplyVar) != "" {
		p.seal = sealCheaply
	}
	p.self = "/opt/postern/postern" // a test's own program is a passing one
	return p
}

// noWeb is a web without any page.
type noWeb struct{}

func (noWeb) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("there is no web here")
}
