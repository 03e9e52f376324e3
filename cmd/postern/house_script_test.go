package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/mcpserve"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// houseScript is what the commands of a house's script share.
type houseScript struct {
	t       *testing.T
	vault   testVault
	house   *testHouse
	getenv  func(name string) string
	ahead   time.Duration
	callers map[string]gateway.Principal
	tokens  map[string]string
	servers map[string]*demo.Servers
}

// TestHouseScripts have several callers run commands in a whole house, over sample servers and a
// vault. Their commands are:
//
//	account NAME MODE                an account on sample servers of its own, which writes to @example.com
//	dovecot NAME MODE DESTROY N      an account on Dovecot with so many messages
//	grant NAME OPTIONS...            makes a grant; the caller NAME has it
//	as WHO LINE...                   is done; WHO is admin, agent, person or other, or has a grant
//	refused WHO CODE LINE...         is answered with this code
//	has WHO COMMAND...               are commands that WHO is told of
//	lacks WHO COMMAND...             are such that there are not for WHO
//	take NAME REGEXP                 NAME is what the group matches in the answer before
//	sent ACCOUNT N                   so many messages left the servers of the account
//	leaves ACCOUNT REGEXP            the last of them matches
//	again                            another process has the vault
//	ahead DURATION                   so much later
//	admits NAME                      the grant's token is let in, or not where ! stands before it
//
// POSTERN_ATTACHMENTS and POSTERN_EXTENSIONS are those of the script.
func TestHouseScripts(t *testing.T) {
	t.Parallel()
	commands := map[string]func(*testscript.TestScript, bool, []string){}
	for name, run := range houseCommands {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			s := ts.Value("house").(*houseScript)
			if s.getenv = ts.Getenv; s.house == nil {
				s.open()
			}
			run(s, ts, neg, args)
		}
	}
	dir, files := "testdata/script/house", []string(nil)
	if vaulttest.InDatabase() {
		dir, files = "", []string{"testdata/script/house/grant.txtar"}
	}
	testscript.Run(t, testscript.Params{
		Dir:   dir,
		Files: files,
		Setup: func(e *testscript.Env) error {
			admin := gateway.Principal{Name: "admin", Admin: true}
			e.Values["house"] = &houseScript{t: t, vault: newVault(t), servers: map[string]*demo.Servers{}, tokens: map[string]string{},
				callers: map[string]gateway.Principal{"admin": admin, "agent": {Name: "agent"}, "person": {Name: "person"}, "other": {Name: "other"}}}
			e.Setenv("POSTERN_ATTACHMENTS", filepath.Join(e.WorkDir, "files"))
			return os.Mkdir(filepath.Join(e.WorkDir, "files"), 0o700)
		},
		Cmds: commands,
		Condition: func(cond string) (bool, error) {
			if cond != "dovecot" {
				return false, fmt.Errorf("what is %q?", cond)
			}
			return servertest.HasDovecot(), nil
		},
		RequireExplicitExec: true,
	})
}

// open has another process open the vault.
func (s *houseScript) open() {
	p := newProcess(s.t, "POSTERN_ATTACHMENTS="+s.getenv("POSTERN_ATTACHMENTS"), house.ExtensionsVar+"="+s.getenv(house.ExtensionsVar))
	s.house = wired(s.t)(p.house(house.Plan{Profile: gateway.FullProfile(), Principal: s.callers["admin"], Extensions: house.WhereNamed, Open: func(ctx context.Context) (*vault.Vault, error) {
		return vault.Open(ctx, s.vault.path, s.vault.keys, &vault.Options{Now: func() time.Time { return time.Now().Add(s.ahead) }})
	}}))
}

// as runs a command, and says what is answered.
func (s *houseScript) as(ts *testscript.TestScript, args []string) answer {
	caller, ok := s.callers[args[0]]
	if !ok {
		ts.Fatalf("who is %s?", args[0])
	}
	raw := s.house.Gateway.Do(s.t.Context(), gateway.Request{Principal: caller, Tokens: args[1:], Full: true}).JSON
	_, err := fmt.Fprintf(ts.Stdout(), "%s\n", raw)
	ts.Check(err)
	return answerOf(s.t, strings.Join(args, " "), raw)
}

var houseCommands = map[string]func(s *houseScript, ts *testscript.TestScript, neg bool, args []string){
	"account": func(s *houseScript, _ *testscript.TestScript, _ bool, args []string) {
		servers := sampleServers(s.t)
		s.servers[args[0]] = servers
		a := servers.Account()
		a.Name, a.Mode, a.AllowOut = args[0], mail.Mode(args[1]), mail.AllowList{Enabled: true, Entries: []string{"@example.com"}}
		s.vault.add(s.t, a, servers.Password.Reveal())
	},
	"dovecot": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		server, user := servertest.SharedDovecot(s.t), servertest.User("ann")
		n, err := strconv.Atoi(args[3])
		ts.Check(err)
		server.Deliver(s.t, user, "INBOX", plainMessages(n)...)
		a := dovecotAccount(server, user)
		a.Name, a.Mode, a.Destroy = args[0], mail.Mode(args[1]), mail.Destroy(strings.TrimPrefix(args[2], "unset"))
		s.vault.add(s.t, a, servertest.Password)
	},
	"grant": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		s.tokens[args[0]] = s.house.token(s.t, args[0], strings.Join(args[1:], " "))
		c, err := s.house.Caller(s.t.Context(), s.tokens[args[0]])
		ts.Check(err)
		s.callers[args[0]] = c.Principal
	},
	"admits": func(s *houseScript, ts *testscript.TestScript, neg bool, args []string) {
		if _, err := s.house.Caller(s.t.Context(), s.tokens[args[0]]); neg != errors.Is(err, mcpserve.ErrNotAdmitted) || !neg && err != nil {
			ts.Fatalf("at the door: %v", err)
		}
	},
	"as": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		if a := s.as(ts, args); !a.Success {
			ts.Fatalf("it fails: %s", a.raw)
		}
	},
	"refused": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		if a := s.as(ts, append(args[:1:1], args[2:]...)); a.Success || string(a.Error.Code) != args[1] {
			ts.Fatalf("%s", a.raw)
		}
	},
	"has": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) { s.offers(ts, true, args) },
	"lacks": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		s.offers(ts, false, args)
	},
	"take": func(_ *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
		if m == nil {
			ts.Fatalf("nothing matches")
		}
		ts.Setenv(args[0], m[1])
	},
	"sent": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		if n := len(s.servers[args[0]].Outgoing()); strconv.Itoa(n) != args[1] {
			ts.Fatalf("%d messages left", n)
		}
	},
	"leaves": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		all := s.servers[args[0]].Outgoing()
		if last := all[len(all)-1].Raw; !regexp.MustCompile(args[1]).Match(last) {
			ts.Fatalf("what left is %s", last)
		}
	},
	"again": func(s *houseScript, _ *testscript.TestScript, _ bool, _ []string) { s.open() },
	"ahead": func(s *houseScript, ts *testscript.TestScript, _ bool, args []string) {
		var err error
		s.ahead, err = time.ParseDuration(args[0])
		ts.Check(err)
	},
}

// offers says whether help, the schema and a call agree on which commands there are for a caller.
func (s *houseScript) offers(ts *testscript.TestScript, want bool, args []string) {
	caller := s.callers[args[0]]
	schema := string(s.house.as(s.t, caller, "schema").raw)
	for _, path := range args[1:] {
		if s.house.as(s.t, caller, "help "+path).Success != want || strings.Contains(schema, `"command":"`+path+`"`) != want {
			ts.Fatalf("help or the schema has %s: %v", path, !want)
		}
		if a := s.house.as(s.t, caller, path); !want && a.Error.Code != discovery.PermissionDenied {
			ts.Fatalf("%s: %s", path, a.raw)
		}
	}
}
