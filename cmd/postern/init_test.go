package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
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
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// station is a machine of its own: a home directory, mail servers that nobody set up
// yet, and a domain whose records name them.
type station struct {
	home    string
	passing string // where what is temporary goes
	servers *demo.Servers
	ca      string
	env     map[string]string
	srv     map[string]*net.SRV // by service
	ring    setup.Keyring
}

func newStation(t testing.TB) *station { return newStationAt(t, nil) }

// newStationAt is newStation with a clock for its servers.
func newStationAt(t testing.TB, now func() time.Time) *station {
	t.Helper()
	servers := sampleServersAt(t, now)
	home := t.TempDir()
	passing := t.TempDir()
	t.Setenv("TMPDIR", passing)
	t.Setenv("TMP", passing)
	s := &station{home: home, passing: passing, servers: servers, ca: filepath.Join(t.TempDir(), "ca.pem"), ring: brokenKeyring{}}
	writeFile(t, s.ca, string(servers.CAPEM))
	s.env = map[string]string{"HOME": home, "POSTERN_DB": filepath.Join(home, "conf", "postern", "postern.db"), "PW": servers.Password.Reveal(), "TERM": "xterm"}
	s.srv = map[string]*net.SRV{"imaps": s.record(t, servers.IMAPAddr), "submissions": s.record(t, servers.SMTPAddr)}
	return s
}

// record points to a server by the name that its certificate has, too.
func (s *station) record(t testing.TB, address string) *net.SRV {
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
func (s *station) LookupSRV(_ context.Context, service, _, name string) (string, []*net.SRV, error) {
	if r := s.srv[service]; r != nil && name == "example.org" {
		return name, []*net.SRV{r}, nil
	}
	return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// LookupMX implements autoconfig.Resolver.
func (s *station) LookupMX(context.Context, string) ([]*net.MX, error) {
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

// process is a process on the station. Its output is returned; the input is what is
// typed.
func (s *station) process(t testing.TB, input string) (*process, *bytes.Buffer) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := w.WriteString(input); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	var out bytes.Buffer
	return &process{getenv: func(name string) string { return s.env[name] }, seal: sealCheaply, stdin: r, stdout: &out, stderr: &out, log: slog.New(slog.DiscardHandler),
		self: "/opt/postern/postern", finder: &autoconfig.Finder{Resolver: s, Transport: noWeb{}}, ring: s.ring}, &out
}

// ask runs the wizard of a process as it asks line by line.
func (s *station) ask(t testing.TB, p *process) error {
	t.Helper()
	path := s.env["POSTERN_DB"]
	return setup.Ask(t.Context(), p.setupSystem(path), setup.Options{Path: path, Plain: true})
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

// untouched fails when there is anything on the station.
func (s *station) untouched(t testing.TB) {
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

func (s *station) files(t testing.TB) (names []string) {
	t.Helper()
	err := filepath.WalkDir(s.home, func(path string, _ fs.DirEntry, err error) error {
		if path != s.home {
			names = append(names, strings.TrimPrefix(path, s.home))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// passphrase is that of a station's administrator's key.
const passphrase = "correct höörse"

// vault opens what was made, with the keys that were kept. A short run leaves an
// administrator's key that is sealed as it is.
func (s *station) vault(t testing.TB) *vault.Vault {
	t.Helper()
	p, _ := s.process(t, "")
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

// answers are the lines of a person who takes what is proposed, up to the password.
func (s *station) answers(password string) []string {
	return []string{
		demo.Username,
		"y",      // use these servers, which are not of the domain
		password, // typed
	}
}

// taken are the answers of a person who gives the certificate's authority and takes what is
// proposed for the rest: the account's name, send what I approve, to everybody, no name of my own, everybody's
// mail, a passphrase twice, no client, add it.
func (s *station) taken() []string {
	return []string{"2", s.ca, "", "", "", "", "", "", passphrase, passphrase, "", ""}
}

// readOnly are the same answers but for an account that only reads, with keys in files.
func (s *station) readOnly() []string { return []string{"2", s.ca, "", "2", "", "2", "", ""} }

// Nobody needs more than an address, a password and the return key: the rest is found
// or proposed. What was made works as it was printed.
func TestAnAddressAndAPasswordAreEnough(t *testing.T) {
	s := newStation(t)
	p, out := s.process(t, strings.Join(append(s.answers(s.env["PW"]), s.taken()...), "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"localhost", "certificate", "works:", "every message in every folder", "everybody, each message after you approved it", "install claude-code --profile full\n",
		"what came today?\n", "postern repl\n", "postern approve\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	a, err := s.vault(t).Account(t.Context(), "default")
	if err != nil || a.Mode != mail.Approve || !slices.Equal(a.AllowOut.Entries, []string{"*"}) || a.Destroy != mail.DestroyOff || a.SMTP.IsZero() {
		t.Fatalf("%+v, %v", a, err)
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
	s.noSecretIn(t, out.String())
	s.listsMail(t, s.pasted(t, out.String()))
}

// noSecretIn fails when a text holds the password or a key.
func (s *station) noSecretIn(t testing.TB, text string) {
	t.Helper()
	secrets := []string{s.env["PW"], passphrase}
	for _, file := range []string{house.AdminKeyFile(s.env["POSTERN_DB"]), house.AgentKeyFile(s.env["POSTERN_DB"])} {
		if key, err := os.ReadFile(file); err == nil && !strings.HasPrefix(string(key), vault.KeyringPrefix) {
			secrets = append(secrets, strings.TrimSpace(string(key)))
		}
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Error("a secret is shown")
		}
	}
}

// pasted runs the line that init says prints what to paste, and returns what it prints.
func (s *station) pasted(t testing.TB, said string) string {
	t.Helper()
	_, line, _ := strings.Cut(said, "    postern install ")
	_, line, found := strings.Cut(line, "    postern install ")
	line, _, _ = strings.Cut(line, "\n")
	if !found || !strings.HasSuffix(line, " --print") {
		t.Fatalf("nothing is said that prints a configuration:\n%s", said)
	}
	p, _ := s.process(t, "")
	var out bytes.Buffer
	p.stdout, p.self = &out, "postern"
	if err := p.install(t.Context(), strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// listsMail starts the server as the printed configuration says, with nothing else in
// the environment, and asks it for mail.
func (s *station) listsMail(t testing.TB, printed string) {
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, entry.Args...)
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

// A key that is shown once is not proposed for a command line, of which a shell keeps a history.
func TestAKeyThatIsShownOnceStaysOutOfCommands(t *testing.T) {
	s := newStation(t)
	p, out := s.process(t, "")
	err := p.init(t.Context(), []string{"--accept-found", "--admin-key", "show", "--agent-key", "file", "--allow-out", "*", "work", "--email", demo.Username, "--ca-file", s.ca, "--password-from", "env:PW", "--mode", "approve"})
	for _, says := range []string{"shown this once", "in a file that you alone may read, such as:", "POSTERN_ADMIN_KEY_FILE=FILE", "postern approve, which asks for the key\n"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%v: it does not say %q:\n%s", err, says, out)
		}
	}
	if strings.Contains(out.String(), "POSTERN_ADMIN_KEY=") {
		t.Errorf("%s", out)
	}
}

// Run again, it adds another account or changes nothing.
func TestRunAgainItAddsAnAccountOrNothing(t *testing.T) {
	s := newStation(t)
	do := func(args ...string) (string, error) {
		p, out := s.process(t, "")
		err := p.init(t.Context(), args)
		return out.String(), err
	}
	account := []string{"--email", demo.Username, "--ca-file", s.ca, "--password-from", "env:PW"}
	if out, err := do(append([]string{"--accept-found", "--admin-key", "file", "--agent-key", "file", "--allow-out", "ann@example.org,@example.com", "work"}, append(account, "--mode", "approve")...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := os.ReadFile(s.env["POSTERN_DB"])
	if err != nil {
		t.Fatal(err)
	}
	files := s.files(t)
	same := func(what string) {
		t.Helper()
		if now, err := os.ReadFile(s.env["POSTERN_DB"]); err != nil || !bytes.Equal(now, before) || !slices.Equal(s.files(t), files) {
			t.Errorf("%s changed something: %v", what, s.files(t))
		}
	}
	out, err := do()
	if err != nil || !strings.Contains(out, "unchanged") || !strings.Contains(out, "They write to   ann@example.org, anybody at example.com, each message after you approved it") {
		t.Errorf("%v\n%s", err, out)
	}
	same("init without anything new")
	p, text := s.process(t, "n\n")
	if err := s.ask(t, p); err != nil || !strings.Contains(text.String(), "Nothing was changed") {
		t.Errorf("%v\n%s", err, text)
	}
	same("a wizard told no")
	if out, err := do(append([]string{"--accept-found", "second"}, account...)...); err == nil || !strings.Contains(err.Error(), "takes POSTERN_ADMIN_KEY") {
		t.Errorf("without being given the administrator's key: %v\n%s", err, out)
	}
	same("somebody without the administrator's key")
	s.env["POSTERN_ADMIN_KEY_FILE"] = house.AdminKeyFile(s.env["POSTERN_DB"])
	if out, err := do(append([]string{"--accept-found", "work"}, account...)...); !errors.Is(err, vault.ErrExists) {
		t.Errorf("%v\n%s", err, out)
	}
	same("an account that is there")
	s.env["PW"] = "wrong-c4n4ry"
	if out, err := do(append([]string{"--accept-found", "second"}, account...)...); err == nil || !strings.Contains(err.Error(), "Nothing was stored") || strings.Contains(err.Error()+out, "c4n4ry") {
		t.Errorf("%v\n%s", err, out)
	}
	same("a wrong password")
	s.env["PW"] = s.servers.Password.Reveal()
	if out, err := do(append([]string{"--accept-found", "second"}, account...)...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	accounts, err := s.vault(t).Accounts(t.Context())
	if err != nil || len(accounts) != 2 {
		t.Errorf("%d accounts, %v", len(accounts), err)
	}
	// What a command means that names no account stays the first.
	if name, err := s.vault(t).Setting(t.Context(), "default_account"); err != nil || name != "work" {
		t.Errorf("default_account is %q, %v", name, err)
	}
	if out, err := do(append([]string{"--accept-found", "third"}, account...)...); err != nil || strings.Contains(out, "default_account") {
		t.Errorf("it is set again: %v\n%s", err, out)
	}
}

// Keys that a set-up kept which was killed then are used by the next one; so are those
// of the environment, and then none are made.
func TestKeysThatAreThereAreUsed(t *testing.T) {
	s := newStation(t)
	adminKey, agentKey := newKey(t), newKey(t)
	adminFile, agentFile := house.AdminKeyFile(s.env["POSTERN_DB"]), house.AgentKeyFile(s.env["POSTERN_DB"])
	s.ring = memoryKeyring{vault.KeyringName("agent-1"): agentKey}
	for file, text := range map[string]string{adminFile: adminKey, agentFile: vault.KeyringPrefix + "agent-1"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text+"\n")
	}
	before := s.files(t)
	p, out := s.process(t, "")
	if err := p.init(t.Context(), nil); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if keys, err := p.system().FindKeys(t.Context(), s.env["POSTERN_DB"]); err != nil || keys.Admin.Reveal() != adminKey || keys.Agent.Reveal() != agentKey {
		t.Errorf("other keys: %v", err)
	}
	if now := s.files(t); len(now) > len(before)+2 { // the vault and its lock
		t.Errorf("%v", now)
	}
	s.vault(t)

	s = newStation(t)
	s.env["POSTERN_ADMIN_KEY"], s.env["POSTERN_KEY"] = adminKey, agentKey
	p, out = s.process(t, strings.Join(append(s.answers(s.env["PW"]), "2", s.ca, "", "2", "", "", ""), "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(strings.Join(s.files(t), " "), ".key") || strings.Contains(out.String(), adminKey) || strings.Contains(out.String(), agentKey) {
		t.Errorf("%v\n%s", s.files(t), out)
	}
}

// An administrator's key that the person keeps is shown once, and asked for when it is
// needed again.
func TestAKeyThatThePersonKeeps(t *testing.T) {
	s := newStation(t)
	p, out := s.process(t, strings.Join(append(s.answers(s.env["PW"]), "2", s.ca, "", "2", "", "3", "", ""), "\n")+"\n")
	if err := s.ask(t, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	admin := regexp.MustCompile(`[A-Za-z0-9+/]{43}=`).FindString(out.String())
	if _, err := os.Stat(house.AdminKeyFile(s.env["POSTERN_DB"])); err == nil || strings.Count(out.String(), admin) != 1 {
		t.Errorf("it is kept, or shown again: %v\n%s", err, out)
	}
	again := append([]string{admin, "y"}, s.answers(s.env["PW"])...)
	p, out = s.process(t, strings.Join(append(again, "2", s.ca, "", "2", "", "", ""), "\n")+"\n")
	if err := s.ask(t, p); err != nil || strings.Contains(out.String(), admin) {
		t.Fatalf("%v\n%s", err, out)
	}
	keys := vault.Keys{Admin: mail.NewSecret([]byte(admin))}
	v, err := vault.Open(t.Context(), s.env["POSTERN_DB"], keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accounts, err := v.Accounts(t.Context()); err != nil || len(accounts) != 2 {
		t.Errorf("%d accounts, %v", len(accounts), err)
	}
	p, out = s.process(t, strings.Repeat("A", 43)+"=\n")
	if err := s.ask(t, p); !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "not the key of this vault") {
		t.Errorf("a wrong key: %v\n%s", err, out)
	}
}

// Without a terminal nothing is asked, and nothing found is used that nobody agreed
// to.
func TestUnaskedItRefusesWhatNobodyAgreedTo(t *testing.T) {
	s := newStation(t)
	for name, c := range map[string]struct {
		args []string
		said string
	}{
		"no keys":        {nil, "takes both keys"},
		"found servers":  {[]string{"--admin-key", "file", "--agent-key", "file", "work", "--email", demo.Username, "--password-from", "env:PW"}, "localhost"},
		"no address":     {[]string{"--admin-key", "file", "--agent-key", "file", "work", "--email", "nobody", "--password-from", "env:PW"}, "mail address"},
		"no domain":      {[]string{"--admin-key", "file", "--agent-key", "file", "work", "--email", "ann@localhost", "--password-from", "env:PW"}, "The mail server of ann@localhost was not found"},
		"nothing found":  {[]string{"--admin-key", "file", "--agent-key", "file", "work", "--email", "ann@nowhere.example", "--password-from", "env:PW"}, "was not found"},
		"no program may": {[]string{"--admin-key", "file", "--agent-key", "file", "work", "--email", "ann@tuta.com", "--password-from", "env:PW"}, "neither IMAP nor POP3"},
		"no passwords":   {[]string{"--admin-key", "file", "--agent-key", "file", "work", "--email", "ann@outlook.com", "--password-from", "env:PW"}, "accepts no passwords"},
		"no certificate": {[]string{"--accept-found", "--admin-key", "file", "--agent-key", "file", "work", "--email", demo.Username, "--password-from", "env:PW"}, "Nothing was stored"},
		"no keyring":     {[]string{"--accept-found", "--admin-key", "file", "--agent-key", "keyring", "work", "--email", demo.Username, "--ca-file", s.ca, "--password-from", "env:PW"}, "keyring does not keep"},
		"bad place":      {[]string{"--agent-key", "show"}, "it takes keyring, file"},
		"lists of none":  {[]string{"--allow-out", "*"}, "belong to an account"},
		"bad list":       {[]string{"--accept-found", "--admin-key", "file", "--agent-key", "file", "--allow-out", "no entry", "work", "--email", demo.Username, "--ca-file", s.ca, "--password-from", "env:PW"}, "cannot be used"},
	} {
		p, out := s.process(t, "")
		err := p.init(t.Context(), c.args)
		if err == nil || !strings.Contains(err.Error()+out.String(), c.said) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		s.untouched(t)
	}
}

// stationVar describes a station to a process of its own: the ports of its servers.
const stationVar = "POSTERN_TEST_STATION"

// onStation has a process find the servers of a station, and no keyring, where the
// test that started it says so.
func onStation(p *process) *process {
	text := p.getenv(stationVar)
	if text == "" {
		return p
	}
	s := &station{ring: brokenKeyring{}}
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
