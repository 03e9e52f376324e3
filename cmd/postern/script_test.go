package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/vaulttest"
)

func TestMain(m *testing.M) {
	// A child that reads a PDF or runs an extension has no environment to be told by.
	if os.Getenv(actAsPostern) != "" || len(os.Args) > 1 && (os.Args[1] == house.PDFVerb || os.Args[1] == house.ExtensionVerb) {
		if racing {
			fmt.Fprintln(os.Stderr, "a child has the race detector: it has to be childProgram")
			os.Exit(70)
		}
		start(onMachine(systemProcess()))
	}
	// Who runs the tests may have a vault and accounts of their own. As a script's postern the
	// binary gets the script's environment.
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") != "postern" &&
			(strings.HasPrefix(name, "POSTERN_") && name != servertest.RequireServers || strings.HasPrefix(name, "MAIL_IMAP_")) {
			_ = os.Unsetenv(name)
		}
	}
	testscript.Main(onEngine{m}, map[string]func(){"postern": main})
}

// onEngine runs the tests where their vaults are to be.
type onEngine struct{ *testing.M }

func (m onEngine) Run() int { return vaulttest.Main(m.M) }

// TestScripts runs the program as a process, one behaviour per file.
func TestScripts(t *testing.T) {
	commands := map[string]func(*testscript.TestScript, bool, []string){"run": runHere, "truncate": truncate, "lines": lines}
	maps.Copy(commands, agentCommands)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("POSTERN_DB", e.WorkDir+"/vault/postern.db")
			path, err := programFirst(e.Getenv("PATH"))
			e.Setenv("PATH", path)
			return err
		},
		Cmds:                commands,
		RequireExplicitExec: true,
	})
}

// runHere is run ARGS: it runs the program as exec does. With -short its own code runs in this process, which
// costs a hundredth of one, unless the script has gone to another directory, where no test can follow.
func runHere(ts *testscript.TestScript, neg bool, args []string) {
	var failed bool
	if testing.Short() && ts.MkAbs(".") == ts.Getenv("WORK") {
		status, _, _ := runInside(ts, args)
		failed = status != 0
	} else {
		failed = ts.Exec("postern", args...) != nil
	}
	if failed != neg {
		ts.Fatalf("postern %s: failed %v", strings.Join(args, " "), failed)
	}
}

// truncate FILE SIZE cuts a file short.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate FILE SIZE")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// lines FILE N holds when the file has exactly N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE N")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if n := bytes.Count(data, []byte("\n")); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, not %s", args[0], n, args[1])
	}
}
