package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
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
