// Package vaulttest says where the vaults of tests are: in files, or with the flag
// -engine NAME with another engine. It knows no vault, so that package vault's own tests
// can use it. A package whose tests make vaults calls [Main] from TestMain, [New] for each
// vault, and has one test that calls [Again]. [Must], [WantErr] and [Size] are short ways to say
// what most of these tests say.
package vaulttest

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/servertest"
)

var (
	engineFlag = flag.String("engine", "", "keep the vaults of the tests with this engine, whose server is started for them: "+strings.Join(slices.Sorted(maps.Keys(engines)), ", ")+"; in files if left out")
	engineAll  = flag.Bool("engine-all", false, "run all tests once more in a database, and not only what the engine decides")

	server    *servertest.PostgresServer
	serverErr error
	start     = sync.OnceFunc(func() { server, serverErr = servertest.StartPostgres() })
)

// engine is what tests do with the vaults of an engine, beside what a vault does.
type engine struct {
	installed func() error // not nil where its server is not
	start     func()       // its server, for all tests of the package

	place     func(t testing.TB) string // see New
	content   func(t testing.TB, place string) []byte
	remove    func(t testing.TB, place string)
	endLeases func(t testing.TB, place string)
}

// engines are those of a server, by their name in -engine.
var engines = map[string]engine{
	"postgres": {installed: servertest.HasPostgres, start: start, place: newSchema, content: rows, remove: emptySchema, endLeases: func(t testing.TB, place string) {
		server.Exec(t, "UPDATE "+schema(t, place)+".postern_leases SET until = now()")
	}},
}

var file = engine{
	start: func() {},
	place: func(t testing.TB) string { return filepath.Join(t.TempDir(), "new", "postern.db") },
	content: func(t testing.TB, place string) []byte {
		b, err := os.ReadFile(place)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return b
	},
	remove:    func(t testing.TB, place string) { Must(t, os.Remove(place)) },
	endLeases: func(testing.TB, string) {},
}

// chosen is the engine of this run.
func chosen() engine {
	if *engineFlag == "" {
		return file
	}
	e, ok := engines[*engineFlag]
	if !ok {
		panic("there is no engine " + *engineFlag)
	}
	return e
}

// Main runs the tests of a package, and the server meanwhile where they need it. It returns
// the exit code.
func Main(m *testing.M) int {
	return servertest.Main(func() int {
		chosen().start()
		defer func() {
			if server != nil {
				_ = server.Stop()
			}
		}()
		return m.Run()
	})
}

// Server returns the database server of all tests of the package. A test that kills its server
// has one of its own.
func Server(t testing.TB) *servertest.PostgresServer {
	t.Helper()
	start()
	servertest.Check(t, serverErr)
	return server
}

// Again runs tests of the package once more with each engine of a server, in another process
// and without -short: those that why names, each with what a database decides of it, or with
// -engine-all all of them. It ends the test there, and where servers are not to be started.
func Again(t *testing.T, why map[string]string) {
	t.Helper()
	if InDatabase() {
		t.Skip("this is that run")
	}
	for name, e := range engines {
		servertest.Check(t, e.installed())
		again(t, name, why)
	}
}

func again(t *testing.T, name string, why map[string]string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pattern := ""
	if !*engineAll {
		there, err := exec.CommandContext(t.Context(), self, "-test.list=.").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(why)) {
			if !slices.Contains(strings.Fields(string(there)), name) {
				t.Errorf("there is no test %s to run in a database", name)
			}
			pattern += "|" + name
		}
		pattern = "^(" + strings.TrimPrefix(pattern, "|") + ")$"
	}
	args := []string{"-engine=" + name, "-test.run=" + pattern, "-test.short=false", "-test.shuffle=" + flag.Lookup("test.shuffle").Value.String()}
	if end, ok := t.Deadline(); ok { // it has to say itself what takes too long
		left := time.Until(end) * 9 / 10
		args = append(args, "-test.timeout="+left.String())
	}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	out, err := exec.CommandContext(t.Context(), self, args...).CombinedOutput()
	if err != nil {
		t.Errorf("with %s: %v\n%s", name, err, out)
	} else if testing.Verbose() {
		t.Logf("with %s:\n%s", name, out)
	}
}

// InDatabase reports whether the tests' vaults are in a database, and not in files.
func InDatabase() bool { return *engineFlag != "" }

// Process returns the program of the tests as another process, with variables in its environment.
func Process(env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Must ends a test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantErr checks that an error matches another. what names the call in the failure.
func WantErr(t testing.TB, err, want error, what string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", fmt.Sprintf(what, args...), err, want)
	}
}

// Size returns how much a test does: short with -short, else whole.
func Size(whole, short int) int {
	if testing.Short() || InDatabase() { // there, each step is a round trip
		return short
	}
	return whole
}

// OnlyFile skips a test that is about a vault's file, and says why no other engine can run it.
func OnlyFile(t testing.TB, why string) {
	t.Helper()
	if InDatabase() {
		t.Skip("only on a file: " + why)
	}
}

// Password is a part of every address, for which the server does not ask. Nothing may show it.
const Password = "password-of-the-database"

// New returns a place for a vault, where there is none yet: a file in a directory that is
// not there either, or the address of an empty schema.
func New(t testing.TB) (place string) {
	t.Helper()
	return chosen().place(t)
}

// Fixture returns the place of a copy of a vault's file that an earlier version made. Where
// the tests' vaults are in a database, move moves it there.
func Fixture(t testing.TB, file string, move func(from, to string) error) (place string) {
	t.Helper()
	b, err := os.ReadFile(file)
	place = filepath.Join(t.TempDir(), "postern.db")
	// Version control does not keep the file mode.
	err = errors.Join(err, os.WriteFile(place, b, 0o600))
	if copied := place; err == nil && InDatabase() {
		place = New(t)
		err = move(copied, place)
	}
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// Content returns all bytes of a vault as who holds its file or its database has them: the
// file, or all rows with their values one after another. It is nil where there is nothing.
func Content(t testing.TB, place string) (all []byte) {
	t.Helper()
	return chosen().content(t, place)
}

// Remove removes the vault at a place, as who holds its file or its database can.
func Remove(t testing.TB, place string) {
	t.Helper()
	chosen().remove(t, place)
}

// EndLeases ends the locks at a place that processes left when they were killed. In a file
// they end with the process; in a database when their time is over, for which a test need
// not wait.
func EndLeases(t testing.TB, place string) {
	t.Helper()
	chosen().endLeases(t, place)
}

func newSchema(t testing.TB) string {
	servertest.Check(t, serverErr)
	return strings.Replace(server.NewSchema(t), "@", ":"+Password+"@", 1)
}

func rows(t testing.TB, place string) (all []byte) {
	for _, table := range server.Exec(t, "SELECT table_name FROM information_schema.tables WHERE table_schema = '"+schema(t, place)+"' ORDER BY 1") {
		for _, row := range server.Exec(t, "SELECT r.* FROM "+schema(t, place)+"."+table[0]+" r ORDER BY r") {
			for _, value := range row {
				b := []byte(value)
				if digits, ok := strings.CutPrefix(value, `\x`); ok {
					var err error
					if b, err = hex.DecodeString(digits); err != nil {
						t.Fatal(err)
					}
				}
				all = append(append(all, b...), '\n')
			}
		}
		all = append(append(all, table[0]...), '\n')
	}
	return all
}

func emptySchema(t testing.TB, place string) {
	server.Exec(t, "DROP SCHEMA "+schema(t, place)+" CASCADE")
	server.Exec(t, "CREATE SCHEMA "+schema(t, place))
}

func schema(t testing.TB, place string) string {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("search_path")
}
