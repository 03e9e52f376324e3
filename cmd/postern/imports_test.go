package main

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/postern-mail/postern/"

// arrows says, for each package of the house, which others it may import and why
// no more. A package below another follows the rule of the longest name that
// contains it.
var arrows = []struct {
	pkg, why string
	may      []string
	external []string // nil: any module; else only these prefixes beside the standard library
}{
	{"cmd/postern", "it wires everything", []string{"cmd/postern/internal/clientconfig", "cmd/postern/internal/hardening", "cmd/postern/internal/house", "cmd/postern/internal/prompt", "cmd/postern/internal/quickstart", "cmd/postern/internal/screen", "cmd/postern/internal/setup", "cmd/postern/internal/terminal", "gateway", "gateway/extension", "gateway/mcpserve", "commands", "commands/admin", "commands/agents", "discovery", "mail", "mail/autoconfig", "mail/demo", "mail/login", "mail/pdftext", "vault", "vault/agentmail", "conformance"}, nil},
	{"cmd/postern/internal/clientconfig", "it writes into other programs' files, so nothing that knows a key or a command is near", []string{}, []string{"github.com/tailscale/hujson"}},
	{"cmd/postern/internal/hardening", "it runs before the rest of the program, so it needs nothing of it", []string{}, []string{"golang.org/x/sys"}},
	{"cmd/postern/internal/quickstart", "it runs before the rest of the program, so it needs nothing of it", []string{}, []string{}},
	{"cmd/postern/internal/orderedjson", "it reads any JSON, so it knows nothing of what an answer says", []string{}, []string{}},
	{"cmd/postern/internal/screen", "it draws what strangers wrote, so nothing that knows a key, runs a command or reads a terminal is near", []string{"cmd/postern/internal/orderedjson"}, []string{"github.com/mattn/go-runewidth"}},
	{"cmd/postern/internal/house", "it wires the packages for one process, and reads no terminal and no flags", []string{"commands", "commands/admin", "commands/agents", "discovery", "gateway", "gateway/extension", "gateway/mcpserve", "internal/child", "mail", "mail/login", "mail/mailbox", "mail/outbox", "mail/pdftext", "vault", "vault/agentmail", "vault/kv"}, []string{}},
	{"cmd/postern/internal/prompt", "it shows what strangers wrote and passes on what is typed, so no vault, key or mail server is near", []string{"cmd/postern/internal/orderedjson", "cmd/postern/internal/screen", "cmd/postern/internal/terminal", "discovery", "gateway"}, []string{"github.com/peterh/liner"}},
	{"cmd/postern/internal/setup", "it asks a person for passwords and keys, so it runs no command but those it is handed, and wires nothing", []string{"cmd/postern/internal/terminal", "discovery", "mail", "mail/login", "mail/autoconfig", "mail/outbox", "vault"}, nil},
	{"cmd/postern/internal/terminal", "it reads what a person types, so it knows nothing of what was asked", []string{}, []string{"golang.org/x/sys", "golang.org/x/term"}},
	{"gateway", "another program must be able to build its own ACLI server on it, so it knows nothing of mail, and of no protocol", []string{"discovery"}, []string{"github.com/google/shlex"}},
	{"gateway/mcpserve", "it speaks MCP for any gateway, so it knows nothing of mail", []string{"discovery", "gateway"}, []string{"github.com/modelcontextprotocol/go-sdk", "golang.org/x/net"}},
	{"gateway/gatewaytest", "it is a client of any server, so it knows none", []string{}, []string{"github.com/santhosh-tekuri/jsonschema"}},
	{"gateway/extension", "it runs programs for any ACLI server, so it knows nothing of mail", []string{"discovery", "gateway", "internal/child"}, []string{"golang.org/x/sys"}},
	{"discovery", "it only says what exists, so it knows nothing of mail, of MCP or of who calls", []string{}, []string{"github.com/invopop/jsonschema"}},
	{"commands", "a command gets guarded access from mail and never a connection, so it cannot forget the policy", []string{"commands/admin", "commands/agents", "commands/internal/answer", "commands/internal/argument", "discovery", "mail", "mail/mailbox", "mail/outbox", "vault"}, nil},
	{"commands/admin", "who sets Postern up reads and sends no message, so guarded access to mailboxes goes no further than checking them", []string{"commands/internal/answer", "commands/internal/argument", "discovery", "mail", "mail/login", "mail/mailbox", "mail/outbox", "vault"}, []string{}},
	{"commands/agents", "agents' mailbox is the vault's, so nothing of a person's mail is near", []string{"commands/internal/answer", "commands/internal/argument", "discovery", "vault", "vault/agentmail"}, []string{"github.com/invopop/jsonschema"}},
	{"commands/internal/answer", "errors become public codes here alone, for the commands of every room, so it knows none of them", []string{"commands/internal/argument", "discovery", "mail", "mail/outbox", "vault"}, []string{}},
	{"commands/internal/argument", "it reads what a caller wrote for the commands of every room, so it knows none of them", []string{"discovery", "mail", "vault"}, []string{}},
	{"vault", "it keeps what the others define and calls none of them", []string{"mail", "gateway", "vault/bolt", "vault/kv", "vault/postgres", "internal/child"}, nil},
	{"vault/agentmail", "it keeps messages in any store that lends transactions", []string{"vault", "vault/kv"}, []string{}},
	{"vault/bolt", "it keeps records that are sealed, so it knows neither a key nor what they mean", []string{"vault/kv"}, []string{"go.etcd.io/bbolt", "github.com/gofrs/flock", "golang.org/x/sync"}},
	{"vault/postgres", "it keeps records that are sealed, so it knows neither a key nor what they mean", []string{"vault/kv"}, []string{"github.com/jackc/pgx/v5/pgconn", "golang.org/x/sync"}},
	{"vault/kv", "it is what a vault and an engine agree on", []string{}, []string{}},
	{"vault/kv/kvtest", "any engine runs it", []string{"vault/kv"}, []string{}},
	{"vault/vaulttest", "the vault's own tests use it, so it knows no vault", []string{"mail/servertest"}, []string{}},
	{"mail", "accounts, policy and errors are plain values: whoever keeps or shows them must not get a connection with them", []string{"mail/internal/authres", "mail/internal/rfc5322", "mail/internal/wire"}, nil},
	{"mail/login", "it gets what an account logs in with, so it sees no message", []string{"mail", "mail/internal/oauth", "mail/internal/wire", "internal/child"}, nil},
	{"mail/mailbox", "everything read or changed passes the policy here, so nothing else holds a connection to a mailbox", []string{"mail", "mail/login", "mail/internal/codes", "mail/internal/cursor", "mail/internal/imap", "mail/internal/message", "mail/internal/pop3", "mail/internal/quoted", "mail/internal/rfc5322", "mail/internal/visible", "mail/internal/wire", "mail/mailbox/internal/fetch", "mail/mailbox/internal/folders", "mail/mailbox/internal/lease", "mail/mailbox/internal/reading", "mail/mailbox/internal/thread"}, nil},
	{"mail/mailbox/internal/folders", "it judges what a server listed, so it asks none", []string{"mail"}, []string{"github.com/emersion/go-imap/v2"}},
	{"mail/mailbox/internal/lease", "it takes turns with other processes, so no connection and no policy is near", []string{"mail", "mail/internal/wire"}, []string{}},
	{"mail/mailbox/internal/reading", "it shows what a policy lets through, on sessions that it is lent, so no login is near", []string{"mail", "mail/internal/codes", "mail/internal/compose", "mail/internal/imap", "mail/internal/message", "mail/internal/rfc5322", "mail/internal/visible", "mail/mailbox/internal/fetch"}, nil},
	{"mail/mailbox/internal/fetch", "it asks on a session that it was lent and reads what came, so no policy and no account is near", []string{"mail", "mail/internal/imap", "mail/internal/message", "mail/internal/rfc5322"}, nil},
	{"mail/mailbox/internal/thread", "it ties together what was fetched and asks no server", []string{"mail", "mail/internal/message", "mail/mailbox/internal/fetch", "mail/mailbox/internal/reading"}, []string{"github.com/emersion/go-imap/v2"}},
	{"mail/outbox", "everything sent passes the policy and the record here; folders are reached through the mailbox alone", []string{"mail", "mail/login", "mail/mailbox", "mail/internal/codes", "mail/internal/compose", "mail/internal/graph", "mail/internal/links", "mail/internal/markdown", "mail/internal/message", "mail/internal/rfc5322", "mail/internal/smtp", "mail/internal/wire"}, nil},
	{"mail/internal/rfc5322", "a policy judges headers, so reading one brings no MIME, no HTML and no wire", []string{"internal/plain"}, []string{"github.com/emersion/go-message/charset", "golang.org/x"}},
	{"mail/internal/authres", "a policy judges senders by it, so it reads headers and nothing else", []string{"mail/internal/rfc5322"}, []string{"golang.org/x/net"}},
	{"mail/internal/message", "it reads text as a person does", []string{"mail/internal/rfc5322", "internal/plain", "mail/internal/quoted", "mail/internal/visible"}, nil},
	{"mail/internal/visible", "it shows any HTML document, so it knows nothing of messages", []string{"internal/plain", "mail/internal/quoted"}, nil},
	{"mail/internal/quoted", "it marks any text, so it knows nothing of messages", []string{"internal/plain"}, []string{"golang.org/x/net"}},
	{"mail/internal/codes", "it judges any text, so it knows nothing of messages", []string{}, []string{"golang.org/x/text"}},
	{"mail/internal/compose", "what is written has to read back as what is read", []string{"mail/internal/markdown", "mail/internal/message", "mail/internal/rfc5322"}, nil},
	{"mail/internal/links", "it reads any text, so it knows nothing of messages", []string{}, []string{"golang.org/x"}},
	{"mail/internal/markdown", "it makes HTML of any text, so it knows nothing of messages", []string{"internal/plain"}, []string{"github.com/yuin/goldmark"}},
	{"mail/internal/graph", "it hands messages over with the outcomes of the submission wire", []string{"mail/internal/smtp", "mail/internal/wire"}, nil},
	{"mail/internal", "a wire knows its protocol and nothing of accounts or policy", []string{"mail/internal/wire"}, nil},
	{"internal/child", "it runs programs for anybody, so it knows nothing of what they are for", []string{}, []string{"golang.org/x/sys"}},
	{"internal/testmain", "the tests of any package use it, so it knows none", []string{}, []string{}},
	{"internal/plain", "everybody asks it what a person does not see, so it asks nobody", []string{}, []string{}},
	{"mail/autoconfig", "it proposes where an address's mail is and asks a domain alone; nothing that logs in is near", []string{"mail"}, nil},
	{"mail/demo", "the sample servers stand outside, like any server", []string{"mail"}, nil},
	{"mail/pdftext", "it reads hostile files in a process of its own, which has nothing to do with mail", []string{"internal/child"}, nil},
	{"mail/servertest", "test servers stand outside, like any server", []string{"internal/testmain"}, nil},
	{"mail/servertest/mailtest", "it is what the tests of mailbox and outbox share", []string{"internal/testmain", "mail", "mail/login", "mail/mailbox", "mail/servertest"}, nil},
	{"mail/servertest/scripted", "scripted servers stand outside, like any server", []string{"mail/internal/wire", "mail/servertest"}, []string{}},
	{"packaging", "it packs what was built and calls none of it", []string{}, []string{}},
	{"conformance", "it must judge any server, so it can know nothing of ours", []string{}, []string{"github.com/modelcontextprotocol/go-sdk", "github.com/santhosh-tekuri/jsonschema"}},
}

// common is what any package of the house may import: one rule for all. The
// conformance suite is the exception, since it shares nothing with what it judges.
var common = []string{"internal/plain"}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if name := e.Name(); name == "testdata" || name != ".." && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		p, err := build.ImportDir(dir, build.IgnoreVendor)
		if err != nil {
			if _, none := err.(*build.NoGoError); none {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		seen++
		checkImports(t, filepath.ToSlash(rel), p.Imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 6 {
		t.Fatalf("found only %d packages", seen)
	}
}

func checkImports(t *testing.T, pkg string, imports []string) {
	t.Helper()
	rule := -1
	for i, a := range arrows {
		if (pkg == a.pkg || strings.HasPrefix(pkg, a.pkg+"/")) && (rule < 0 || len(a.pkg) > len(arrows[rule].pkg)) {
			rule = i
		}
	}
	if rule < 0 {
		t.Errorf("%s has no place in the house: add it to the arrows, with the reason", pkg)
		return
	}
	a := arrows[rule]
	may := a.may
	if a.pkg != "conformance" {
		may = append(slices.Clone(may), common...)
	}
	for _, imported := range imports {
		inside, ours := strings.CutPrefix(imported, module)
		switch {
		case ours && inside != a.pkg && !slices.Contains(may, inside):
			t.Errorf("%s imports %s: %s", pkg, inside, a.why)
		case !ours && a.external != nil && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") &&
			!slices.ContainsFunc(a.external, func(p string) bool { return strings.HasPrefix(imported, p) }):
			t.Errorf("%s imports %s: %s", pkg, imported, a.why)
		case (imported == "text/template" || imported == "html/template") && pkg != "mail/servertest":
			t.Errorf("%s imports %s: its calls by reflection keep every method of every type, an eighth of the binary", pkg, imported)
		}
	}
}
