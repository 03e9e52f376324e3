package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// What a command asks the store for is narrowed to its caller by its context alone, so
// no command may begin one of its own: nothing would be hidden from it.
func TestNoCommandLeavesItsContext(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "commands", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := s.X.(*ast.Ident)
			if !ok || from.Name != "context" {
				return true
			}
			looked++
			if s.Sel.Name == "Background" || s.Sel.Name == "TODO" {
				t.Errorf("%s: a context that belongs to nobody; take the command's, or context.WithoutCancel of it", set.Position(s.Pos()))
			}
			return true
		})
	}
	if looked < 50 {
		t.Fatalf("only %d contexts in %d files", looked, len(files))
	}
}
