package main

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway"
)

var update = flag.Bool("update", false, "write docs/commands.md again")

// referenceAs returns what postern reference prints.
func referenceAs(t *testing.T, format string) string {
	t.Helper()
	var out, errs bytes.Buffer
	p := &process{args: []string{"reference", "--format", format}, getenv: func(string) string { return "" }, stdin: os.Stdin, stdout: &out, stderr: &errs}
	if status := p.run(t.Context()); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	return out.String()
}

func TestThePageOfCommandsIsWhatTheRegistrySays(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "commands.md")
	want := referenceAs(t, "markdown")
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/commands.md is not what 'postern reference' prints: run 'go test ./cmd/postern -run ThePageOfCommands -update'")
	}
}

func TestTheReferenceNamesEveryCommandAndArgument(t *testing.T) {
	h, err := (&process{getenv: func(string) string { return "" }}).house(house.Plan{Profile: gateway.FullProfile()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	page, manualPage := referenceAs(t, "markdown"), strings.ReplaceAll(referenceAs(t, "man"), `\-`, "-")
	for _, c := range h.Registry.Commands() {
		if !strings.Contains(page, "\n## "+c.Path+"\n") || !strings.Contains(manualPage, `.SS \&`+c.Path+"\n") {
			t.Errorf("%s has no section", c.Path)
		}
		for _, a := range c.Arguments() {
			if !strings.Contains(page, a.Label()) || !strings.Contains(manualPage, a.Label()) {
				t.Errorf("%s: %s is not told", c.Path, a.Label())
			}
		}
		for _, e := range c.Examples {
			if !strings.Contains(page, "postern> "+e+"\n") {
				t.Errorf("%s: the example %q is not shown", c.Path, e)
			}
		}
	}
}

// The manual and the page of variables name each variable of Postern that the program reads.
func TestTheManualNamesEveryVariable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "variables.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, environment, _ := strings.Cut(referenceAs(t, "man"), ".SH ENVIRONMENT\n")
	seen := map[string]bool{}
	name := regexp.MustCompile(`"(POSTERN_[A-Z_]*[A-Z])"`)
	err = filepath.WalkDir(filepath.Join("..", ".."), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "servertest" || e.Name() == "testmain"):
			return filepath.SkipDir // for tests alone
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(source), -1) {
			seen[m[1]] = true
		}
		return err
	})
	if err != nil || len(seen) < 8 {
		t.Fatal(seen, err)
	}
	for v := range seen {
		named := regexp.MustCompile(`\b` + v + `\b`)
		if !named.MatchString(environment) || !named.Match(page) {
			t.Errorf("%s is not told", v)
		}
	}
}

// A line that begins with a dot or an apostrophe is a request, and an unknown one
// swallows its text.
func TestTheManualHoldsOnlyRequestsOfItsOwn(t *testing.T) {
	requests := map[string]bool{".TH": true, ".SH": true, ".SS": true, ".TP": true, ".PP": true, ".B": true, ".I": true, ".br": true, ".nf": true, ".fi": true}
	for n, line := range strings.Split(referenceAs(t, "man"), "\n") {
		word, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, ".") && !requests[word] || strings.HasPrefix(line, "'") {
			t.Errorf("line %d is read as a request: %q", n+1, line)
		}
	}
	if got := manual("a\\b\n.SH x\n'y"); got != "\\&a\\eb\n\\&.SH x\n\\&\\(aqy" {
		t.Errorf("manual = %q", got)
	}
}
