package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
)

// prefix begins the names of programs that are this test binary; the name of a behaviour
// follows. Programs do not get the environment variables with which other tests do this.
const prefix = "does-"

// behaviours are the functions that such a program can run, by name. Each ends the process,
// or returns to end it with status 0.
var behaviours = map[string]func(){}

func TestMain(m *testing.M) {
	if name, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), prefix); ok {
		behaviours[name]()
		syscall.Exit(0) // os.Exit would have the race detector wait a second
	}
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		os.Exit(Launch(os.Args[2:]))
	}
	os.Exit(testmain.Run(m.Run))
}

// directory makes an empty directory of extensions that nobody else can change.
func directory(t testing.TB) string {
	t.Helper()
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "extensions")
	must(t, os.Mkdir(dir, 0o755))
	for _, d := range []string{filepath.Dir(tmp), tmp, dir} {
		if err := os.Chmod(d, 0o755); err != nil { // independent of the umask
			t.Fatal(err)
		}
	}
	return dir
}

// manifestOf returns a manifest of one command with arguments of several types.
func manifestOf(name, program, effect string) string {
	return fmt.Sprintf(`{"name":%q,"summary":"Do something","program":%q,"effect":%q,"examples":[%q],"arguments":[
		{"name":"words","type":"array","items":"string","positional":true,"description":"Words"},
		{"name":"key","type":"string","sensitive":true,"description":"A secret"},
		{"name":"since","type":"datetime","description":"A time"},
		{"name":"count","type":"integer","default":3,"maximum":9,"description":"A number"}]}`, name, program, effect, name)
}

// nearby is this test binary on the file system of the extensions, where it can be linked.
var nearby = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	file := filepath.Join(os.TempDir(), "postern-extension.test")
	return file, os.WriteFile(file, b, 0o755)
})

// install writes an extension with a program that runs one of the behaviours.
func install(t testing.TB, dir, name, does, manifest string) string {
	t.Helper()
	return installFile(t, dir, name, manifest, func(at string) error {
		self, err := nearby()
		return errors.Join(err, os.Link(self, filepath.Join(at, prefix+does)))
	})
}

// installScript writes an extension with a script as its program.
func installScript(t testing.TB, dir, name, manifest, script string) string {
	t.Helper()
	return installFile(t, dir, name, manifest, func(at string) error {
		file := filepath.Join(at, "run")
		return errors.Join(os.WriteFile(file, []byte(script), 0o755), os.Chmod(file, 0o755))
	})
}

func installFile(t testing.TB, dir, name, manifest string, program func(at string) error) string {
	t.Helper()
	at := filepath.Join(dir, name)
	file := filepath.Join(at, manifestName)
	must(t, errors.Join(os.Mkdir(at, 0o755), os.Chmod(at, 0o755), os.WriteFile(file, []byte(manifest), 0o644), os.Chmod(file, 0o644), program(at)))
	return at
}

// one makes a directory with one extension, x-it, with the given behaviour and effect.
func one(t testing.TB, does, effect string) string {
	t.Helper()
	dir := directory(t)
	install(t, dir, "x-it", does, manifestOf("x-it", prefix+does, effect))
	return dir
}

// notes is a fake auditor that keeps the entries.
type notes struct {
	mu      sync.Mutex
	entries []gateway.AuditEntry
}

func (n *notes) Record(_ context.Context, e gateway.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.entries = append(n.entries, e)
	return nil
}

// server is a gateway over a directory of extensions.
type server struct {
	*gateway.Gateway
	set   *Set
	notes *notes
}

func serve(t testing.TB, dir string, o Options) *server {
	t.Helper()
	s, err := Load(dir, o)
	must(t, err)
	r, err := discovery.NewRegistry(discovery.Info{Name: "test", Version: "1", Description: "Test", Groups: s.Groups}, s.Commands...)
	must(t, err)
	n := &notes{}
	g, err := gateway.New(gateway.Options{Registry: r, Profile: gateway.FullProfile(), Auditor: n, Settings: gateway.FixedSettings{CommandsPerMinute: 1e6}})
	must(t, err)
	return &server{g, s, n}
}

// whole is serve for extensions without problems.
func whole(t testing.TB, dir string, o Options) *server {
	t.Helper()
	s := serve(t, dir, o)
	if len(s.set.Problems) > 0 {
		t.Fatalf("%v", s.set.Problems)
	}
	return s
}

type reply struct {
	Success bool
	Data    json.RawMessage
	Error   struct {
		Code          discovery.Code
		Message, Hint string
		Examples      []string
	}
	Meta struct {
		Command   string
		Untrusted []string
	} `json:"_meta"`
	raw string
}

func (s *server) do(t testing.TB, line string) reply {
	t.Helper()
	return s.as(t, t.Context(), gateway.Principal{Name: "agent"}, line)
}

func (s *server) as(t testing.TB, ctx context.Context, p gateway.Principal, line string) reply {
	t.Helper()
	a := s.Do(ctx, gateway.Request{Principal: p, Line: line, Full: true})
	var r reply
	if err := json.Unmarshal(a.JSON, &r); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r.raw = string(a.JSON)
	return r
}

// messages returns the problems as a person reads them.
func (s *Set) messages() []string {
	var out []string
	for _, p := range s.Problems {
		out = append(out, p.String())
	}
	return out
}

// given is what a program with the behaviour echo received.
type given struct {
	Input struct {
		Command   string
		Arguments map[string]any
		Principal string
		Admin     bool
		Deadline  string
	}
	Environ   []string
	Dir       string
	Arguments []string
}

func init() {
	behaviours["echo"] = func() {
		raw, err := io.ReadAll(os.Stdin)
		if err != nil {
			os.Exit(3)
		}
		dir, _ := os.Getwd()
		environ := slices.Sorted(slices.Values(os.Environ()))
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"input": json.RawMessage(raw), "environ": environ, "dir": dir, "arguments": os.Args})
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
