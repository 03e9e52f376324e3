// Typecheck loads every package of this module, with its tests, as the systems of its
// arguments see it (windows/amd64), and prints what would not compile there. It reads the
// declarations alone of what the module depends on, so it takes seconds where a build for
// another system compiles all of it; what is released is built and vetted at night.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	own, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	failed := false
	for _, target := range os.Args[1:] {
		system, processor, _ := strings.Cut(target, "/")
		loaded, err := packages.Load(&packages.Config{
			Mode:  packages.LoadAllSyntax,
			Tests: true,
			Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
			ParseFile: func(set *token.FileSet, name string, source []byte) (*ast.File, error) {
				file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
				if file != nil && !strings.HasPrefix(name, own+"/") {
					for _, d := range file.Decls {
						if f, is := d.(*ast.FuncDecl); is {
							f.Body = nil
						}
					}
				}
				return file, err
			},
		}, "./...")
		if err != nil || len(loaded) == 0 {
			fmt.Fprintln(os.Stderr, target, "no packages:", err)
			os.Exit(1)
		}
		// Tests' variants of a package repeat what it says itself.
		said := map[string]bool{}
		for _, p := range loaded {
			if strings.HasSuffix(p.ID, ".test") {
				continue // the main package that go test generates
			}
			for _, e := range p.Errors {
				if line := target + " " + e.Error(); !said[line] {
					said[line], failed = true, true
					fmt.Fprintln(os.Stderr, line)
				}
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}
