package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/vault"
)

// personScript is what the commands of a person's script share.
type personScript struct {
	t       *testing.T
	tty     *tty
	said    string // by the last command that waits
	servers *demo.Servers
	machine *fakeMachine
}

// TestPersonScripts are sessions of a person at a terminal, whose commands are:
//
//	vault [MODE]            mail servers, and a vault with the account demo on them; ADMIN is the administrator's key
//	machine                 mail servers for ADDRESS with the password PW and the authority CA, and a home directory; init is to make the vault
//	sealed                  puts the vault's administrator's key into ADMINFILE, sealed with the passphrase PASS, and the agent's into AGENTFILE
//	cheaply                 seals what is in KEYFILE anew, so that it costs little to open
//	secretless              no key and no password was written to the terminal
//	keyathome               puts that key where init puts it, and names the file in KEYFILE
//	terminal CxL ARGS...    starts the program on a terminal of C columns and L lines
//	resize CxL
//	sees TEXT...            waits until the terminal shows the texts, in this order
//	types KEYS              types them; sees looks at nothing that was written before
//	enters LINE TEXT...     types the line, and sees the texts
//	runs LINE TEXT...       enters, and the sign of the prompt behind it
//	interrupts              Ctrl-C, once keys are read
//	terminate               SIGTERM
//	unseen TEXT...          none of them is in what was seen last
//	nowhere TEXT...         none of them was ever written; <esc> begins a sequence that steers a terminal
//	fits N                  no line that was seen last is wider, but for what was typed
//	waits NAME              NAME is the id of the outbox that was seen last
//	quits STATUS            waits for the end of the program, with the terminal as it was
//	leaves                  ends the prompt
//	sent N                  so many messages left
//	shown STATUS ARGS...    runs the program without a person, for stdout as a terminal of 90 columns shows it
//
// In what is typed, <tab>, <up>, <enter>, <ctrl-c>, <ctrl-d> and <ctrl-u> are keys; in what is seen, \n ends a line.
func TestPersonScripts(t *testing.T) {
	t.Parallel()
	commands := map[string]func(*testscript.TestScript, bool, []string){"run": runHere}
	for name, run := range personCommands {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			s := ts.Value(personScript{}).(*personScript)
			if s.tty != nil {
				s.tty.t = failingScript{ts}
			}
			run(s, ts, neg, args)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script/person",
		Setup: func(e *testscript.Env) error {
			e.Values[personScript{}] = &personScript{t: t}
			for name, value := range map[string]string{"HOME": e.WorkDir, "XDG_STATE_HOME": e.WorkDir, "TERM": "xterm", "POSTERN_DB": filepath.Join(e.WorkDir, "vault", "postern.db")} {
				e.Setenv(name, value)
			}
			path, err := programFirst(e.Getenv("PATH"))
			e.Setenv("PATH", path)
			return err
		},
		Cmds:                commands,
		RequireExplicitExec: true,
	})
}

// failingScript fails a script where a terminal fails a test.
type failingScript struct{ *testscript.TestScript }

func (failingScript) Helper() {}

func (s failingScript) Errorf(format string, args ...any) { s.Fatalf(format, args...) }

// personVariables are those of the script that the program gets.
var personVariables = strings.Fields("HOME TMPDIR PATH TERM NO_COLOR EDITOR VISUAL PAGER XDG_STATE_HOME POSTERN_DB POSTERN_KEY POSTERN_KEY_FILE POSTERN_ADMIN_KEY POSTERN_ADMIN_KEY_FILE POSTERN_HISTORY ACCESSIBLE " + machineVar + " " + cheaplyVar)

func personEnvironment(ts *testscript.TestScript) (env []string) {
	for _, name := range personVariables {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

var (
	asKeys  = strings.NewReplacer("<tab>", "\t", "<up>", up, "<enter>", enter, "<ctrl-c>", interrupt, "<ctrl-d>", endOfInput, "<ctrl-u>", clearLine)
	asLines = strings.NewReplacer(`\n`, "\n")
)

// seen are texts as a script writes them.
func seen(texts []string) (all []string) {
	for _, s := range texts {
		all = append(all, asLines.Replace(s))
	}
	return all
}

func lacks(ts *testscript.TestScript, said string, texts []string) {
	for _, text := range seen(texts) {
		if strings.Contains(said, strings.ReplaceAll(text, "<esc>", escape)) {
			ts.Fatalf("%q is seen:\n%q", text, said)
		}
	}
}

var personCommands = map[string]func(s *personScript, ts *testscript.TestScript, neg bool, args []string){
	"vault": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		servers, v := sampleServers(s.t), newVault(s.t)
		a := servers.Account()
		a.AllowOut = mail.AllowList{Enabled: true, Entries: []string{"*"}}
		if len(args) > 0 {
			a.Mode = mail.Mode(args[0])
		}
		v.add(s.t, a, servers.Password.Reveal())
		s.servers = servers
		for name, value := range map[string]string{"POSTERN_DB": v.path, "POSTERN_KEY": v.text[1], "ADMIN": v.text[0]} {
			ts.Setenv(name, value)
		}
	},
	"machine": func(s *personScript, ts *testscript.TestScript, _ bool, _ []string) {
		m := newMachine(s.t)
		s.machine, s.servers = m, m.servers
		records, err := json.Marshal(m.srv)
		ts.Check(err)
		for name, value := range map[string]string{machineVar: string(records), cheaplyVar: "1", "HOME": m.home, "TMPDIR": m.passing, "POSTERN_DB": m.env["POSTERN_DB"], "ADDRESS": demo.Username,
			"PW": m.env["PW"], "CA": m.ca, "PASS": passphrase, "KEYFILE": house.AdminKeyFile(m.env["POSTERN_DB"])} {
			ts.Setenv(name, value)
		}
	},
	"sealed": func(s *personScript, ts *testscript.TestScript, _ bool, _ []string) {
		ts.Setenv("PASS", passphrase)
		ts.Setenv("ADMINFILE", writeFile(s.t, ts.MkAbs("admin.key"), sealedCheaply(s.t, ts.Getenv("ADMIN"))))
		ts.Setenv("AGENTFILE", writeFile(s.t, ts.MkAbs("agent.key"), ts.Getenv("POSTERN_KEY")))
	},
	"cheaply": func(s *personScript, ts *testscript.TestScript, _ bool, _ []string) {
		key, err := vault.OpenKey(strings.TrimSpace(ts.ReadFile(ts.Getenv("KEYFILE"))), mail.NewSecret([]byte(passphrase)))
		ts.Check(err)
		writeFile(s.t, ts.Getenv("KEYFILE"), sealedCheaply(s.t, key.Reveal()))
	},
	"secretless": func(s *personScript, _ *testscript.TestScript, _ bool, _ []string) {
		s.machine.noSecretIn(s.tty.t, s.tty.written())
	},
	"keyathome": func(_ *personScript, ts *testscript.TestScript, _ bool, _ []string) {
		file := house.AdminKeyFile(ts.Getenv("POSTERN_DB"))
		ts.Check(os.MkdirAll(filepath.Dir(file), 0o700))
		ts.Check(os.WriteFile(file, []byte(ts.Getenv("ADMIN")+"\n"), 0o600))
		ts.Setenv("KEYFILE", file)
	},
	"terminal": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		var columns, lines int
		_, err := fmt.Sscanf(args[0], "%dx%d", &columns, &lines)
		ts.Check(err)
		s.tty = onTerminal(s.t, columns, lines, personEnvironment(ts), args[1:]...)
		s.tty.t = failingScript{ts}
	},
	"resize": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		var columns, lines int
		_, err := fmt.Sscanf(args[0], "%dx%d", &columns, &lines)
		ts.Check(err)
		s.tty.resize(columns, lines)
	},
	"sees": func(s *personScript, _ *testscript.TestScript, _ bool, args []string) {
		s.said = s.tty.sees(seen(args)...)
	},
	"types": func(s *personScript, _ *testscript.TestScript, _ bool, args []string) {
		s.tty.types(asKeys.Replace(strings.Join(args, " ")))
	},
	"enters": func(s *personScript, _ *testscript.TestScript, _ bool, args []string) {
		s.said = s.tty.enters(asKeys.Replace(args[0]), seen(args[1:])...)
	},
	"runs": func(s *personScript, _ *testscript.TestScript, _ bool, args []string) {
		s.said = s.tty.runs(asKeys.Replace(args[0]), seen(args[1:])...)
	},
	"interrupts": func(s *personScript, _ *testscript.TestScript, _ bool, _ []string) {
		for s.tty.mode().Lflag&unix.ISIG != 0 { // a question is seen before it is read
			time.Sleep(time.Millisecond)
		}
		s.tty.types(interrupt)
	},
	"terminate": func(s *personScript, ts *testscript.TestScript, _ bool, _ []string) {
		ts.Check(s.tty.cmd.Process.Signal(syscall.SIGTERM))
	},
	"unseen": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) { lacks(ts, s.said, args) },
	"nowhere": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		lacks(ts, s.tty.written(), args)
	},
	"fits": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		columns, err := strconv.Atoi(args[0])
		ts.Check(err)
		for line := range strings.Lines(s.said) { // a line to copy stays whole; what was typed may be drawn anew with each key
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > columns && !strings.HasPrefix(line, promptSign) && !strings.HasPrefix(line, "  ") {
				ts.Fatalf("wider than %d: %q", columns, line)
			}
		}
	},
	"waits": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		id := regexp.MustCompile(`outbox as ([a-z0-9]{16})`).FindStringSubmatch(s.said)
		if id == nil {
			ts.Fatalf("nothing waits: %s", s.said)
		}
		ts.Setenv(args[0], id[1])
	},
	"quits": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		status, err := strconv.Atoi(args[0])
		ts.Check(err)
		s.tty.quits(status)
	},
	"leaves": func(s *personScript, _ *testscript.TestScript, _ bool, _ []string) { s.tty.leaves() },
	"sent": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		if n := len(s.servers.Outgoing()); strconv.Itoa(n) != args[0] {
			ts.Fatalf("%d messages left", n)
		}
	},
	"shown": func(s *personScript, ts *testscript.TestScript, _ bool, args []string) {
		status, shown := shownOnTerminal(s.t, 90, append(personEnvironment(ts), "NO_COLOR=1"), args[1:]...)
		_, err := io.WriteString(ts.Stdout(), shown)
		ts.Check(err)
		for l := range strings.Lines(shown) { // what is to be copied stays whole
			if !strings.HasPrefix(l, "{") && !strings.HasPrefix(l, "  postern ") && len([]rune(l)) > 91 {
				ts.Fatalf("a line is too wide: %q", l)
			}
		}
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		if status != want {
			ts.Fatalf("status %d:\n%s", status, shown)
		}
	},
}
