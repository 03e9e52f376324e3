package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A bundle unpacked as a client would holds a program that runs and a manifest
// that starts it.
func TestABundleHoldsTheProgramAndHowToStartIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it links the whole program")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "postern")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/postern")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := run([]string{"bundle", "--binary", program, "--os", runtime.GOOS, "--arch", runtime.GOARCH, "--version", "1.2.3", "--out", dir}); err != nil {
		t.Fatal(err)
	}
	unpacked := filepath.Join(dir, "unpacked")
	manifest := unpack(t, filepath.Join(dir, fileName(runtime.GOOS, runtime.GOARCH, "1.2.3")), unpacked)

	var m struct {
		Server struct {
			Config struct {
				Command string
				Args    []string
				Env     map[string]string
			} `json:"mcp_config"`
		}
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("${__dirname}", unpacked, "${user_config.profile}", "read", "${user_config.key_file}", filepath.Join(dir, "none.key"))
	args := make([]string, 0, len(m.Server.Config.Args))
	for _, a := range m.Server.Config.Args {
		args = append(args, fill.Replace(a))
	}
	c := exec.CommandContext(t.Context(), fill.Replace(m.Server.Config.Command), args...)
	for name, value := range m.Server.Config.Env {
		c.Env = append(c.Env, name+"="+fill.Replace(value))
	}
	c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cli","arguments":{"command":"help mail"}}}` + "\n")
	out, err := c.Output()
	if err != nil || !bytes.Contains(out, []byte("mail list")) || bytes.Contains(out, []byte("mail send")) {
		t.Errorf("the program of the bundle answered %v: %s", err, out)
	}
	for name := range m.Server.Config.Env {
		if name != "POSTERN_KEY_FILE" {
			t.Errorf("the client is given %s", name)
		}
	}
}

func TestTheSameProgramMakesTheSameBundle(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "postern.exe")
	if err := os.WriteFile(program, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := bundle{binary: program, os: "windows", arch: "arm64", version: "1.2.3"}
	var bundles [2][]byte
	for i := range bundles {
		path, err := b.write(filepath.Join(dir, "bundles"))
		if err != nil {
			t.Fatal(err)
		}
		if bundles[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		validate(t, "mcpb-manifest-0.3.schema.json", unpack(t, path, filepath.Join(dir, "unpacked")))
	}
	if !bytes.Equal(bundles[0], bundles[1]) {
		t.Errorf("two bundles of one program differ")
	}
}

func TestTheServerFileNamesEachBundleOfItsVersionByDigest(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{fileName("linux", "amd64", "1.2.3"), fileName("darwin", "arm64", "1.2.3"), fileName("linux", "amd64", "1.2.2")} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{"server", "--version", "1.2.3", "--out", dir}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Schema                     string `json:"$schema"`
		Name, Description, Version string
		Packages                   []struct{ RegistryType, Identifier, Version, FileSha256 string }
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	// What the registry's schema of 2025-12-11 and its checks hold these to.
	if len(s.Description) > 100 || strings.Count(s.Name, "/") != 1 || s.Version != "1.2.3" || !strings.HasSuffix(s.Schema, "/2025-12-11/server.schema.json") {
		t.Errorf("server.json: %s", b)
	}
	if len(s.Packages) != 2 {
		t.Fatalf("%d packages: %s", len(s.Packages), b)
	}
	for _, p := range s.Packages {
		sum := sha256.Sum256([]byte(p.Identifier[strings.LastIndexByte(p.Identifier, '/')+1:]))
		if p.FileSha256 != hex.EncodeToString(sum[:]) || !strings.Contains(p.Identifier, "/v1.2.3/") || p.RegistryType != "mcpb" || p.Version != "1.2.3" {
			t.Errorf("package %+v", p)
		}
	}
}

func TestMistakesAreTold(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		nil,
		{"bundle"},
		{"other", "--version", "1", "--out", dir},
		{"server", "--version", "9.9.9", "--out", dir},
		{"bundle", "--binary", filepath.Join(dir, "none"), "--os", "linux", "--arch", "amd64", "--version", "1", "--out", dir},
		{"bundle", "--binary", dir, "--os", "plan9", "--arch", "amd64", "--version", "1", "--out", dir},
		{"bundle", "--binary", dir, "--os", "linux", "--arch", "amd64", "--version", "1", "--out", dir}, // a directory is no program
	} {
		if err := run(args); err == nil {
			t.Errorf("%q is no mistake", args)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.mcpb")); len(left) > 0 {
		t.Errorf("half a bundle was left: %q", left)
	}
}

// unpack writes a zip file's content below dir and returns its manifest.
func unpack(t *testing.T, path, dir string) []byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var manifest []byte
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "manifest.json" {
			manifest = b
		}
		to := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, f.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return manifest
}

// validate holds a document to a published schema.
func validate(t *testing.T, schema string, document []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join("testdata", schema))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", schema, err)
	}
}
