package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// agentCommands are those of the scripts about the agent mailbox, as the bare process has it. The
// conformance suite asks the same of the gateway.
//
//	mailbox              there is none yet, and AGENT_MAIL_DB names where it will be; KEY and ADMIN are keys
//	agent ARGS...        succeeds, and says nothing but JSON
//	refused STATUS ARGS  fails so, and says nothing but why
//	reads SUBJECTS ARGS  is agent read, which gives these messages
//	id NAME              NAME is the id of what was said last, and NAME_UPPER that id in upper case
//	keys NAME...         are those of the object that was said last, or of the first of a list, in this order
//	describes NAME...    are the commands that agent describe tells of, and of each alone
//	replies N FROM TO ID sends so many answers
//	expired FROM TO SUBJECT sent a message a day and a bit ago, whose id is OLD
//	gone ID              it was removed
//	file NAME TEXT [N]   writes a file that only its owner reads, with the text so many times
//	tree NAME...         are all files here, which nobody but their owner may use
//	private NAME...      are files that nobody but their owner may use
//
// What stands in double quotes is a Go string.
var agentCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"mailbox": func(ts *testscript.TestScript, _ bool, _ []string) {
		for name, value := range map[string]string{agentDBVar: ts.MkAbs("new/mail.db"), "POSTERN_DB": "", "HOME": ts.MkAbs("."), "XDG_CONFIG_HOME": ts.MkAbs(".")} {
			ts.Setenv(name, value)
		}
		for _, name := range []string{"KEY", "ADMIN"} {
			key, err := vault.NewKey()
			ts.Check(err)
			ts.Setenv(name, key)
		}
	},
	"agent": func(ts *testscript.TestScript, _ bool, args []string) {
		answersOf(ts, args, new(any))
	},
	"refused": func(ts *testscript.TestScript, _ bool, args []string) {
		status, stdout, stderr := runsAgent(ts, args[1:])
		var e map[string]string
		if err := json.Unmarshal(stderr, &e); err != nil || len(e) != 1 || e["error"] == "" || len(stdout) > 0 || strconv.Itoa(status) != args[0] {
			ts.Fatalf("status %d: %s%s", status, stdout, stderr)
		}
	},
	"reads": func(ts *testscript.TestScript, _ bool, args []string) {
		var list []agentmail.Message
		answersOf(ts, append([]string{"read"}, args[1:]...), &list)
		var subjects []string
		for _, m := range list {
			subjects = append(subjects, m.Subject)
		}
		if got := strings.Join(subjects, " "); got != args[0] {
			ts.Fatalf("these are %q", got)
		}
	},
	"id": func(ts *testscript.TestScript, _ bool, args []string) {
		var m struct{ ID string }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &m))
		ts.Setenv(args[0], m.ID)
		ts.Setenv(args[0]+"_UPPER", strings.ToUpper(m.ID))
	},
	"keys": func(ts *testscript.TestScript, _ bool, args []string) {
		if got := keysOf(ts, ts.ReadFile("stdout")); !slices.Equal(got, args) {
			ts.Fatalf("they are %q", got)
		}
	},
	"describes": func(ts *testscript.TestScript, _ bool, args []string) {
		var all struct{ Commands map[string]any }
		answersOf(ts, []string{"describe"}, &all)
		for _, name := range args {
			var one map[string]any
			if answersOf(ts, []string{"describe", name}, &one); len(all.Commands) != len(args) || !reflect.DeepEqual(one, map[string]any{name: all.Commands[name]}) {
				ts.Fatalf("%d commands, and of %s alone it tells %v", len(all.Commands), name, one)
			}
		}
	},
	"replies": func(ts *testscript.TestScript, _ bool, args []string) {
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		for range n {
			_, err := agentmail.New(mailboxAt(ts, 0)).Send(context.Background(), agentmail.Message{Sender: args[1], Recipient: args[2], Subject: "reply", ReplyTo: args[3]})
			ts.Check(err)
		}
	},
	"expired": func(ts *testscript.TestScript, _ bool, args []string) {
		m, err := agentmail.New(mailboxAt(ts, -agentmail.TTL-time.Second)).Send(context.Background(), agentmail.Message{Sender: args[0], Recipient: args[1], Subject: args[2]})
		ts.Check(err)
		ts.Setenv("OLD", m.ID)
	},
	"gone": func(ts *testscript.TestScript, _ bool, args []string) {
		if _, err := agentmail.New(mailboxAt(ts, -agentmail.TTL)).Thread(context.Background(), agentmail.Thread{Agent: "p:a", ID: args[0]}); !errors.Is(err, agentmail.ErrNoMessage) {
			ts.Fatalf("it is there: %v", err)
		}
	},
	"file": func(ts *testscript.TestScript, _ bool, args []string) {
		times := 1
		if len(args) > 2 {
			times, _ = strconv.Atoi(args[2])
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(unquoted(args)[1], times)), 0o600))
	},
	"tree": func(ts *testscript.TestScript, _ bool, args []string) {
		var names []string
		ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, e fs.DirEntry, err error) error {
			if name, _ := filepath.Rel(ts.MkAbs("."), path); name != "." && name != ".tmp" {
				names = append(names, filepath.ToSlash(name))
			}
			return err
		}))
		if private(ts, names); !slices.Equal(names, args) {
			ts.Fatalf("there are %q", names)
		}
	},
	"private": func(ts *testscript.TestScript, _ bool, args []string) { private(ts, args) },
}

// private fails a script where somebody else may use a file.
func private(ts *testscript.TestScript, names []string) {
	for _, name := range names {
		if info, err := os.Stat(ts.MkAbs(name)); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			ts.Fatalf("%s: %v, %v", name, info, err)
		}
	}
}

func unquoted(args []string) (all []string) {
	for _, a := range args {
		if s, err := strconv.Unquote(a); err == nil && a[0] == '"' {
			a = s
		}
		all = append(all, a)
	}
	return all
}

func runsAgent(ts *testscript.TestScript, args []string) (status int, stdout, stderr []byte) {
	return runInside(ts, append([]string{"agent"}, unquoted(args)...))
}

// answersOf has a command succeed, and takes its answer into data. A note says that there may be more.
func answersOf(ts *testscript.TestScript, args []string, data any) {
	if status, stdout, stderr := runsAgent(ts, args); status != 0 || len(stderr) > 0 && !bytes.HasPrefix(stderr, []byte(`{"note":`)) || json.Unmarshal(stdout, data) != nil {
		ts.Fatalf("status %d: %s%s", status, stdout, stderr)
	}
}

// runInside runs the program's own code with the script's variables in this process, which costs a
// hundredth of one.
func runInside(ts *testscript.TestScript, args []string) (status int, stdout, stderr []byte) {
	null, err := os.Open(os.DevNull)
	ts.Check(err)
	defer null.Close()
	var out, failure bytes.Buffer
	p := systemProcess()
	p.args, p.getenv, p.environ, p.secrets, p.stdin, p.stdout, p.stderr = args, ts.Getenv, nil, nil, null, io.MultiWriter(ts.Stdout(), &out), io.MultiWriter(ts.Stderr(), &failure)
	p.log = slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return p.run(context.Background()), out.Bytes(), failure.Bytes()
}

// mailboxAt is the mailbox of AGENT_MAIL_DB at a time that is so far ahead.
func mailboxAt(ts *testscript.TestScript, ahead time.Duration) *vault.Vault {
	v, err := openMailbox(ts.Getenv(agentDBVar), ahead)
	ts.Check(err)
	return v
}

// openMailbox opens one that the bare process made, or makes it.
func openMailbox(path string, ahead time.Duration) (*vault.Vault, error) {
	p := &process{getenv: func(string) string { return "" }}
	if _, err := p.system().OpenMailbox(context.Background(), path); err != nil {
		return nil, err
	}
	key, err := os.ReadFile(path + house.MailboxKey)
	if err != nil {
		return nil, err
	}
	return vault.Open(context.Background(), path, vault.Keys{Agent: mail.NewSecret(bytes.TrimSpace(key))}, &vault.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
}

// keysOf are the keys of a JSON object, or of the first of a list, in the order they are written.
func keysOf(ts *testscript.TestScript, text string) (names []string) {
	var list []json.RawMessage
	if json.Unmarshal([]byte(text), &list) == nil && len(list) > 0 {
		text = string(list[0])
	}
	dec := json.NewDecoder(strings.NewReader(text))
	_, err := dec.Token()
	for ts.Check(err); dec.More(); {
		name, err := dec.Token()
		ts.Check(err)
		var skip json.RawMessage
		ts.Check(dec.Decode(&skip))
		names = append(names, name.(string))
	}
	return names
}

// inThisProcess runs the program's own code with these variables, which costs a hundredth of a
// process of its own.
func inThisProcess(t testing.TB, env, args []string) (status int, stdout, stderr []byte) {
	var out, failure bytes.Buffer
	p := newProcess(t, env...)
	p.args, p.stdout, p.stderr = args, &out, &failure
	return p.run(t.Context()), out.Bytes(), failure.Bytes()
}

// asProcess runs the program.
func asProcess(t testing.TB, env, args []string) (status int, stdout, stderr []byte) {
	var out, failure bytes.Buffer
	c := program(t, env, args...)
	c.Stdout, c.Stderr = &out, &failure
	if err := c.Run(); err != nil && c.ProcessState.ExitCode() <= 0 {
		t.Errorf("%q: %v", args, err)
	}
	return c.ProcessState.ExitCode(), out.Bytes(), failure.Bytes()
}

func writeFile(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
