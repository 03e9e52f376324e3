package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
)

// The account that a grant has no part in, and one of the same length that there is
// not.
const foreign, missing = "zebra", "zebro"

// grantHouse has the accounts work and zebra, both with mail, and a grant of work
// alone. A second grant has zebra.
func grantHouse(t testing.TB) (admin *testHouse, own, other gateway.Principal) {
	t.Helper()
	v := newVault(t)
	for _, name := range []string{"work", foreign} {
		servers := sampleServers(t)
		a := servers.Account()
		a.Name, a.Mode, a.AllowOut = name, mail.Approve, mail.AllowList{Enabled: true, Entries: []string{"@example.com"}}
		a.Email = name + "@" + name + ".example"
		v.add(t, a, servers.Password.Reveal())
	}
	admin = newHouse(t, v)
	return admin, admin.granted(t, "own", "--accounts work --profile full --identity repo:own"), admin.granted(t, "other", "--accounts "+foreign+" --profile full --identity repo:other")
}

// token makes a grant and returns its token.
func (h *testHouse) token(t testing.TB, name, options string) string {
	t.Helper()
	var made struct {
		Token string `json:"token"`
	}
	h.do(t, "grant add "+name+" "+options, &made)
	return made.Token
}

// granted makes a grant and returns its principal.
func (h *testHouse) granted(t testing.TB, name, options string) gateway.Principal {
	t.Helper()
	c, err := h.Caller(t.Context(), h.token(t, name, options))
	if err != nil {
		t.Fatal(err)
	}
	return c.Principal
}

var momentary = regexp.MustCompile(`"duration_ms":\d+,"now_utc":"[^"]*"`)

// withNames says how a command could name an account: in each of its options for one,
// in an id, and in both.
func withNames(c *discovery.Command, id string) []string {
	var lines []string
	examples := c.Examples
	if c.Effect == discovery.Admin {
		examples = examples[:1] // the same refusal for all
	}
	for _, example := range examples {
		lines = append(lines, example)
		lines = append(lines, regexp.MustCompile(`(imap|pop3):[a-z]+:\S+`).ReplaceAllString(example, id))
	}
	for _, a := range c.Arguments() {
		if a.Positional || !strings.Contains(a.Name, "account") {
			continue
		}
		for _, line := range slices.Clone(lines) {
			line = regexp.MustCompile(` --`+a.Name+` \S+`).ReplaceAllString(line, "")
			lines = append(lines, line+" --"+a.Name+" "+foreign)
		}
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, foreign) })
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if len(lines) > 0 {
		lines = append(lines, "policy explain "+discovery.Quote(lines[len(lines)-1]))
	}
	return lines
}

// Every command, whatever way it has to name an account, answers a grant that has no
// part in one as if there were none of that name: byte for byte, times aside. What
// somebody sees who has a part in it shows that the question can be told.
func TestAForeignAccountIsLikeNoneInEveryCommand(t *testing.T) {
	t.Parallel()
	h, own, other := grantHouse(t)
	var inbox struct {
		Messages []struct {
			ID string `json:"message_id"`
		} `json:"messages"`
	}
	h.do(t, "mail list --limit 1 --account "+foreign, &inbox)
	id := inbox.Messages[0].ID
	var waiting sendData
	if a := h.as(t, other, "mail send --to ann@example.com --subject Hidden --body x --account "+foreign); a.Error.Code != discovery.ApprovalRequired {
		t.Fatalf("%s", a.raw)
	}
	h.do(t, "outbox list", &struct {
		Messages *[]sendData `json:"messages"`
	}{&[]sendData{}})
	outbox := struct {
		Messages []sendData `json:"messages"`
	}{}
	h.do(t, "outbox list", &outbox)
	waiting = outbox.Messages[0]
	options := 0
	for _, c := range h.Registry.Commands() {
		for _, a := range c.Arguments() {
			if strings.Contains(a.Name, "account") && !a.Positional && c.Effect != discovery.Admin {
				options++
			}
		}
		for _, line := range withNames(c, id) {
			if strings.Contains(line, "--wait") || strings.Contains(line, " cleanup") {
				continue // it names no account, and takes its time
			}
			got := h.as(t, own, line)
			want := h.as(t, own, strings.ReplaceAll(line, foreign, missing))
			shown := momentary.ReplaceAllString(string(got.raw), "")
			expected := momentary.ReplaceAllString(strings.ReplaceAll(string(want.raw), missing, foreign), "")
			if shown != expected {
				t.Errorf("%s:\n%s\nwhere there is none:\n%s", line, shown, expected)
			}
			if c.Effect != discovery.Meta && got.Success && !strings.HasPrefix(line, "policy explain") {
				t.Errorf("%s succeeds: %s", line, got.raw)
			}
		}
	}
	if options < 15 {
		t.Errorf("only %d options name an account", options)
	}
	// The same questions, asked by who has a part in the account, are told from those
	// for one that does not exist.
	for _, line := range []string{"mail list --account " + foreign, "mail get " + id, "mail raw " + id, "mail thread " + id, "policy show --account " + foreign,
		"mail search --account " + foreign, "mail ack " + id, "mail verify --account " + foreign, "doctor --account " + foreign,
		"policy explain 'mail list --account " + foreign + "'", "outbox list --account " + foreign, "mail folders --account " + foreign} {
		if got := h.as(t, other, line); !got.Success || strings.Contains(string(got.raw), "no such account") {
			t.Errorf("who may: %s: %s", line, got.raw)
		}
	}
	// What names no account shows nothing of it either.
	for _, line := range []string{"mail accounts", "policy show", "doctor", "outbox list", "mail list", "mail folders", "mail search --last-days 300", "mail verify",
		"outbox show " + waiting.ID, "outbox cancel " + waiting.ID, "help", "schema", "version", "agent status", "agent cleanup --dry-run",
		"policy explain 'mail list'", "mail copy --folder INBOX --uid 1 --to INBOX --to-account " + missing} {
		for _, shown := range []string{foreign, "Hidden"} {
			if got := h.as(t, own, line); strings.Contains(string(got.raw), shown) {
				t.Errorf("%s shows %q: %s", line, shown, got.raw)
			}
		}
	}
	for _, verb := range []string{"show", "cancel"} {
		got := h.as(t, own, "outbox "+verb+" "+waiting.ID)
		want := h.as(t, own, "outbox "+verb+" "+strings.Repeat("0", len(waiting.ID)))
		if a, b := momentary.ReplaceAllString(string(got.raw), ""), strings.ReplaceAll(momentary.ReplaceAllString(string(want.raw), ""), strings.Repeat("0", len(waiting.ID)), waiting.ID); a != b {
			t.Errorf("outbox %s of somebody else's:\n%s\nof none:\n%s", verb, a, b)
		}
	}
	if got := h.as(t, other, "outbox show "+waiting.ID); !got.Success {
		t.Errorf("whose it is: %s", got.raw)
	}
}

// The default account is one that there is for the grant.
func TestTheDefaultAccountIsOneOfTheGrants(t *testing.T) {
	t.Parallel()
	h, own, other := grantHouse(t)
	both := h.granted(t, "both", "--accounts work,"+foreign)
	account := func(p gateway.Principal) string {
		var r struct {
			Data struct {
				ID string `json:"account_id"`
			} `json:"data"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(h.as(t, p, "mail verify").raw, &r); err != nil {
			t.Fatal(err)
		}
		return r.Data.ID + r.Error.Message
	}
	if account(own) != "work" || account(other) != foreign || !strings.Contains(account(both), "several accounts") {
		t.Errorf("%q, %q, %q", account(own), account(other), account(both))
	}
	h.do(t, "config set default_account "+foreign, &struct{}{})
	if account(own) != "work" || account(other) != foreign || account(both) != foreign {
		t.Errorf("with a default: %q, %q, %q", account(own), account(other), account(both))
	}
}

// Nobody acts as an identity that a grant has but its clients and the administrator.
func TestAnIdentityOfAGrantIsItsOwn(t *testing.T) {
	t.Parallel()
	h, _, _ := grantHouse(t)
	mine := h.granted(t, "mine", "--profile full --identity p:mine")
	for _, c := range []struct {
		p    gateway.Principal
		line string
		may  bool
	}{
		{gateway.Principal{Name: "agent"}, "agent send --from p:mine --to p:b --subject x", false},
		{gateway.Principal{Name: "agent"}, "agent read p:mine", false},
		{gateway.Principal{Name: "agent"}, "agent send --from p:b --to p:mine --subject x", true},
		{mine, "agent read p:mine", true},
		{h.Principal, "agent read p:mine", true},
	} {
		if got := h.as(t, c.p, c.line); got.Success != c.may || !c.may && got.Error.Code != discovery.PermissionDenied {
			t.Errorf("%s: %s: %s", c.p.Name, c.line, got.raw)
		}
	}
}

// A client that says stop stops its grant; the others go on, and only the administrator is told.
func TestAStopOfAGrantIsItsOwn(t *testing.T) {
	t.Parallel()
	h, own, _ := grantHouse(t)
	loud := h.granted(t, "loud", "--accounts work --profile full")
	if got := h.as(t, loud, "stop"); !got.Success || !strings.Contains(string(got.raw), `"yours_alone":true`) {
		t.Fatalf("%s", got.raw)
	}
	if got := h.as(t, loud, "mail list"); got.Error.Code != discovery.PermissionDenied || !strings.Contains(got.Error.Message, "You have been stopped") {
		t.Errorf("%s", got.raw)
	}
	for _, p := range []gateway.Principal{own, h.Principal} {
		if got := h.as(t, p, "mail accounts"); !got.Success {
			t.Errorf("%s: %s", p.Name, got.raw)
		}
		if got := h.as(t, p, "policy show"); strings.Contains(string(got.raw), "loud") {
			t.Errorf("%s: %s", p.Name, got.raw)
		}
	}
	if got := h.as(t, h.Principal, "grant list"); strings.Count(string(got.raw), `"stopped":true`) != 1 {
		t.Errorf("%s", got.raw)
	}
	h.do(t, "resume", nil)
	if got := h.as(t, loud, "mail accounts"); !got.Success {
		t.Errorf("%s", got.raw)
	}
}

func TestAGrantHasItsOwnCommandsLimitsAndKeys(t *testing.T) {
	t.Parallel()
	h, own, _ := grantHouse(t)
	reads := h.granted(t, "reads", "--accounts work")
	full := h.granted(t, "full", "--accounts work --profile full")
	schemas := map[string]string{}
	for _, p := range []gateway.Principal{reads, full, own} {
		schemas[p.Name] = string(h.as(t, p, "schema").raw)
	}
	for _, c := range []struct {
		p     gateway.Principal
		line  string
		found bool
	}{
		{reads, "mail get", true}, {reads, "mail send", false}, {reads, "mail ack", true}, {reads, "mail mark-read", false}, {reads, "agent read", false}, {reads, "agent status", false}, {reads, "account list", false},
		{full, "mail send", true}, {full, "agent read", false}, {full, "agent send", false}, {full, "grant list", false}, {full, "outbox approve", false}, {full, "audit list", false},
		{own, "agent read", true}, {own, "mail send", true}, {own, "grant add", false}, {own, "config set", false},
	} {
		if got := h.as(t, c.p, "help "+c.line); got.Success != c.found {
			t.Errorf("%s: help %s: %s", c.p.Name, c.line, got.raw)
		}
		if strings.Contains(schemas[c.p.Name], `"command":"`+c.line+`"`) != c.found {
			t.Errorf("%s: schema and %s", c.p.Name, c.line)
		}
		if got := h.as(t, c.p, c.line); !c.found && got.Error.Code != discovery.PermissionDenied {
			t.Errorf("%s: %s: %s", c.p.Name, c.line, got.raw)
		}
	}
	if got := h.as(t, reads, "mail attachment --uid 1 --save x.txt"); got.Error.Code != discovery.PermissionDenied {
		t.Errorf("a grant that reads saves: %s", got.raw)
	}
	var shown struct {
		Principal, Profile string
		Admin              bool
	}
	for _, p := range []gateway.Principal{reads, own} {
		got := h.as(t, p, "policy show")
		if err := json.Unmarshal(got.Data, &shown); err != nil || shown.Principal != p.Name || shown.Profile != p.Scope.Profile.Name || shown.Admin {
			t.Errorf("%s", got.raw)
		}
	}
	// As one identity and no other.
	for line, code := range map[string]discovery.Code{
		"agent send --from repo:own --to repo:other --subject Hello": "",
		"agent send --from repo:other --to repo:own --subject Hello": discovery.PermissionDenied,
		"agent read repo:own":   "",
		"agent read repo:other": discovery.PermissionDenied,
	} {
		if got := h.as(t, own, line); got.Error.Code != code {
			t.Errorf("%s: %s", line, got.raw)
		}
	}
	// The same key is another one for another grant.
	const keyed = "mail send --to ann@example.com --subject Key --body x --idempotency-key k --account work"
	first := regexp.MustCompile(`outbox as ([a-z0-9-]+)`)
	ids := map[string]string{}
	for _, p := range []gateway.Principal{own, full, own} {
		got := h.as(t, p, keyed)
		id := first.FindStringSubmatch(got.Error.Message)
		if len(id) != 2 {
			t.Fatalf("%s", got.raw)
		}
		if before := ids[p.Name]; before != "" && before != id[1] {
			t.Errorf("the key of %s has two messages", p.Name)
		}
		ids[p.Name] = id[1]
	}
	if ids[own.Name] == ids[full.Name] {
		t.Error("two grants share a key")
	}
	if got := h.as(t, full, "outbox list"); !strings.Contains(string(got.raw), ids[full.Name]) || strings.Contains(string(got.raw), ids[own.Name]) {
		t.Errorf("%s", got.raw)
	}
	// A grant that loses the account of a message does not know it any more.
	h.do(t, "grant remove own", &struct{}{})
	again := h.granted(t, "own", "--accounts "+foreign+" --profile full")
	for _, line := range []string{"outbox list", "outbox show " + ids[own.Name]} {
		if got := h.as(t, again, line); got.Success && strings.Contains(string(got.raw), ids[own.Name]) {
			t.Errorf("%s: %s", line, got.raw)
		}
	}
	// And a rate of its own.
	h.do(t, "config set commands_per_minute 3", &struct{}{})
	limited := h.granted(t, "limited", "--accounts work")
	codes := map[discovery.Code]int{}
	for range 4 {
		codes[h.as(t, limited, "mail accounts").Error.Code]++
	}
	if codes[discovery.RateLimited] != 1 || codes[""] != 3 {
		t.Errorf("%v", codes)
	}
	if got := h.as(t, h.granted(t, "fresh", "--accounts work"), "mail accounts"); !got.Success {
		t.Errorf("another's rate: %s", got.raw)
	}
}

// A grant has files of its own, and one of the same name that is made again has the files of the one before only where
// it has the same accounts: what was saved from another is not for it to send.
func TestAGrantHasTheFilesOfItsAccountsAlone(t *testing.T) {
	t.Parallel()
	h, _, other := grantHouse(t)
	var saved string
	for uid := 1; uid < 40 && saved == ""; uid++ {
		var file struct {
			To string `json:"saved_to"`
		}
		if got := h.as(t, other, fmt.Sprintf("mail attachment --folder INBOX --uid %d --save report.bin", uid)); got.Success {
			if err := json.Unmarshal(got.Data, &file); err != nil {
				t.Fatal(err)
			}
			saved = file.To
		}
	}
	// Where it lies on this machine is not told.
	if saved != "report.bin" {
		t.Errorf("saved to %q", saved)
	}
	beside := h.granted(t, "beside", "--profile full --accounts "+foreign)
	if got := h.as(t, beside, "mail send --to ann@example.com --subject File --body x --attach report.bin"); got.Error.Code != discovery.NotFound {
		t.Errorf("the file of another grant of the account: %s", got.raw)
	}
	for _, c := range []struct {
		accounts string
		code     discovery.Code
	}{{"work", discovery.NotFound}, {"work," + foreign, discovery.NotFound}, {foreign, discovery.ApprovalRequired}} {
		h.do(t, "grant remove other", &struct{}{})
		again := h.granted(t, "other", "--profile full --accounts "+c.accounts)
		account, _, _ := strings.Cut(c.accounts, ",")
		if got := h.as(t, again, "mail send --to ann@example.com --subject File --body x --attach report.bin --account "+account); got.Error.Code != c.code {
			t.Errorf("with %s: %s", c.accounts, got.raw)
		}
	}
}

// An extension runs beside everything that holds a grant to its accounts, so it exists
// for the grants alone that name it, and with the commands of their profile.
func TestAnExtensionIsForTheGrantsThatNameIt(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	dir := contactsBeside(t, v, false)
	ownDirectory(t, filepath.Join(dir, "x-broken"))
	p := newProcess(t, house.ExtensionsVar+"="+dir)
	h := wired(t)(p.house(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true}, Open: v.open, Extensions: house.BesideVault}))
	for _, c := range []struct {
		name, options string
		has           bool
	}{
		{"reads", "--identity repo:a", false},
		{"writes", "--identity repo:b --profile full", false},
		{"another", "--identity repo:c --profile full --extensions x-contact,x-contacts-too", false},
		{"named", "--identity repo:d --extensions x-contacts", true},
	} {
		g := h.granted(t, c.name, c.options)
		for _, line := range []string{"version", "help", "schema", "help x-contacts"} {
			if got := h.as(t, g, line); strings.Contains(string(got.Data), "x-contacts") != c.has {
				t.Errorf("%s: %s: %s", c.name, line, got.raw)
			}
		}
		got := h.as(t, g, "x-contacts find ann")
		if refused := got.Error.Code == discovery.PermissionDenied; got.Success || refused == c.has {
			t.Errorf("%s: %s", c.name, got.raw)
		}
		// What is installed, and what is wrong with it, is the person's to know.
		if got := h.as(t, g, "doctor"); strings.Contains(string(got.raw), "x-") {
			t.Errorf("%s: doctor: %s", c.name, got.raw)
		}
	}
	for _, c := range []gateway.Principal{{Name: "agent"}, {Name: "admin", Admin: true}} {
		if got := h.as(t, c, "doctor"); !strings.Contains(string(got.raw), "x-contacts") || !strings.Contains(string(got.raw), "x-broken") {
			t.Errorf("%s: %s", c.Name, got.raw)
		}
	}
	if got := h.do(t, "grant list", &struct{}{}); !strings.Contains(string(got.raw), `"extensions":["x-contacts"]`) {
		t.Errorf("%s", got.raw)
	}
}

// What is wrong with an account is told nobody who has no part in it.
func TestAnAccountThatIsThereTwiceIsNotNamedToAGrant(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	for _, name := range []string{"work", foreign} {
		v.add(t, mail.Account{Name: name, Email: "me@example.org", Protocol: mail.IMAP, Username: "me", Auth: mail.AuthPassword, Mode: mail.ReadOnly,
			IMAP: mail.Endpoint{Host: "127.0.0.1", Port: 9, Security: mail.TLS}}, "x")
	}
	// With POSTERN_DB there is a vault beside the environment's accounts.
	p := newProcess(t, "POSTERN_DB="+v.path, "MAIL_IMAP_ZEBRA_HOST=127.0.0.1", "MAIL_IMAP_ZEBRA_USER=me", "MAIL_IMAP_ZEBRA_PASS=x")
	h := wired(t)(p.house(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true}, Open: v.open, Environment: true}))
	opened := v.opened(t, 0)
	for account, sees := range map[string]bool{"work": false, foreign: true} {
		_, token, err := opened.AddGrant(t.Context(), vault.Grant{Name: account, Accounts: []string{account}, Profile: "read"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.Caller(t.Context(), token.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if got := h.as(t, c.Principal, "mail accounts"); got.Success == sees || strings.Contains(string(got.raw), foreign) != sees {
			t.Errorf("who has %s: %s", account, got.raw)
		}
	}
}

// The end of a grant, or of its account, ends what it does with the next command.
func TestAnEndedGrantDoesNothingMore(t *testing.T) {
	t.Parallel()
	h, own, other := grantHouse(t)
	if got := h.as(t, own, "mail list"); !got.Success {
		t.Fatalf("%s", got.raw)
	}
	h.do(t, "grant remove own", &struct{}{})
	h.do(t, "account remove "+foreign, &struct{}{})
	for _, p := range []gateway.Principal{own, other} {
		for _, line := range []string{"mail list", "help", "version", "agent status"} {
			if got := h.as(t, p, line); got.Error.Code != discovery.AuthFailed {
				t.Errorf("%s: %s: %s", p.Name, line, got.raw)
			}
		}
	}
	var log struct {
		Entries []struct {
			Principal string `json:"principal"`
			Reason    string `json:"reason"`
			Parsed    string `json:"parsed_command"`
			Result    string `json:"result"`
		} `json:"entries"`
	}
	h.do(t, "audit list --limit 500", &log)
	seen := map[string]bool{}
	for _, e := range log.Entries {
		seen[fmt.Sprint(e.Principal, " ", e.Parsed, " ", e.Result, " ", e.Reason)] = true
	}
	for _, want := range []string{"grant:own mail list allowed ", "grant:own mail list blocked grant", "grant:other mail list blocked grant", "admin grant add allowed ", "admin grant remove allowed "} {
		if !seen[want] {
			t.Errorf("the log lacks %q: %v", want, seen)
		}
	}
}

// houseAt is the administrator's house at a time of the test's own.
func houseAt(t testing.TB, v testVault, now func() time.Time) *testHouse {
	t.Helper()
	return wired(t)(newProcess(t).house(house.Plan{Profile: gateway.FullProfile(), Principal: gateway.Principal{Name: "admin", Admin: true},
		Open: func(ctx context.Context) (*vault.Vault, error) {
			return vault.Open(ctx, v.path, v.keys, &vault.Options{Now: now})
		}}))
}

// A token ends with its time, at the door and for who is inside already.
func TestAGrantExpires(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	h := houseAt(t, newVault(t), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	token := h.token(t, "laptop", "--identity repo:laptop --expires 5m")
	inside, err := h.Caller(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.as(t, inside.Principal, "agent status"); !got.Success {
		t.Errorf("%s", got.raw)
	}
	ahead.Store(int64(5 * time.Minute))
	if _, err := h.Caller(t.Context(), token); !errors.Is(err, mcpserve.ErrNotAdmitted) {
		t.Errorf("at the door: %v", err)
	}
	if got := h.as(t, inside.Principal, "agent status"); got.Error.Code != discovery.AuthFailed {
		t.Errorf("inside: %s", got.raw)
	}
	if got := h.do(t, "grant list --fields grants.expired", &struct{}{}); !got.Success {
		t.Errorf("%s", got.raw)
	}
}
