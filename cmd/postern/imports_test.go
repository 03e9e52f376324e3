package main

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-mail/postern/internal/testmain"
)

const module = "github.com/postern-mail/postern/"

// arrow says, for a package of the house, which others it may import and why no more; or which
// alone import Pkg, which is not of the house.
type arrow struct {
	Pkg, Modules, Why string
	May               []string // behind "+", what it may import of other modules
}

func (a *arrow) contains(pkg string) bool { return pkg == a.Pkg || strings.HasPrefix(pkg, a.Pkg+"/") }

// common is what any package of the house may import: one rule for all. The
// conformance suite is the exception, since it shares nothing with what it judges.
var common = []string{"internal/plain"}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	arrows, seen := testmain.Table[arrow](t, "testdata/cases/imports.txt"), 0
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
		checkImports(t, arrows, filepath.ToSlash(rel), p.Imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 6 {
		t.Fatalf("found only %d packages", seen)
	}
}

func checkImports(t *testing.T, arrows []arrow, pkg string, imports []string) {
	t.Helper()
	rule := -1
	for i, a := range arrows {
		if a.contains(pkg) && (rule < 0 || len(a.Pkg) > len(arrows[rule].Pkg)) {
			rule = i
		}
	}
	if rule < 0 {
		t.Errorf("%s has no place in the house: add it to testdata/cases/imports.txt, with the reason", pkg)
		return
	}
	a := arrows[rule]
	may, external := a.May, []string(nil)
	if i := slices.Index(may, "+"); i >= 0 {
		may, external = may[:i], may[i+1:]
	}
	if a.Pkg != "conformance" {
		may = append(slices.Clone(may), common...)
	}
	for _, imported := range imports {
		inside, ours := strings.CutPrefix(imported, module)
		switch {
		case ours && inside != a.Pkg && !slices.Contains(may, inside):
			t.Errorf("%s imports %s: %s", pkg, inside, a.Why)
		case !ours && a.Modules == "only" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") &&
			!slices.ContainsFunc(external, func(p string) bool { return strings.HasPrefix(imported, p) }):
			t.Errorf("%s imports %s: %s", pkg, imported, a.Why)
		}
		for _, a := range arrows {
			if a.Modules == "alone" && a.contains(imported) && !slices.Contains(a.May, pkg) {
				t.Errorf("%s imports %s: %s", pkg, imported, a.Why)
			}
		}
	}
}
