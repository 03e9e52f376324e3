package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

const root = "../.."

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	markdownHead = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile("[^a-z0-9 _-]")
	typedCommand = regexp.MustCompile(`(?m)^(?:\$|   ) postern ([a-z].*)$`)
	fenced       = regexp.MustCompile("(?ms)^```.*?^```")
)

// documents are the README, what stands beside it, and all pages of docs, by their path
// below the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{"README.md": "", "SECURITY.md": "", "CHANGELOG.md": "", "conformance/README.md": ""}
	found, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		pages["docs/"+filepath.Base(p)] = ""
	}
	for p := range pages {
		b, err := os.ReadFile(filepath.Join(root, p))
		if err != nil {
			t.Fatal(err)
		}
		pages[p] = string(b)
	}
	return pages
}

// Every link within the tree leads to a file that exists, and to a heading that it has.
func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	pages := documents(t)
	for page, text := range pages {
		pages[page] = fenced.ReplaceAllString(text, "") // a comment of a shell is no heading
	}
	for page, text := range pages {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			has := anchor == ""
			for _, h := range markdownHead.FindAllStringSubmatch(pages[to], -1) {
				has = has || strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor
			}
			if !has {
				t.Errorf("%s: %s has no heading #%s", page, to, anchor)
			}
		}
	}
}

// Every command that a page has somebody type exists, with these arguments.
func TestCommandsOfTheDocumentsExist(t *testing.T) {
	p := &process{getenv: func(string) string { return "" }}
	h, err := p.house(house.Plan{Profile: gateway.FullProfile()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	all := func(*discovery.Command) bool { return true }
	bound := 0
	for page, text := range documents(t) {
		for _, m := range typedCommand.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			words, err := gateway.Tokenize(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
				continue
			}
			if run, _ := p.verb(words); run != nil || words[0] == "inbox" {
				continue // not a command of the registry
			}
			found, err := h.Registry.Resolve(words, all)
			if err == nil {
				_, err = h.Registry.Bind(found.Command, found.Rest, time.UTC, all)
			}
			if err != nil {
				t.Errorf("%s: postern %s: %v", page, m[1], err)
			}
			bound++
		}
	}
	if bound < 20 {
		t.Errorf("only %d commands were found", bound)
	}
}

// A reader finds every page from the index, a developer every package from its table, and
// the README stays a page to decide and to start.
func TestTheDocumentsAreComplete(t *testing.T) {
	pages := documents(t)
	for page := range pages {
		name, ok := strings.CutPrefix(page, "docs/")
		if ok && name != "README.md" && !strings.Contains(pages["docs/README.md"], "("+name+")") {
			t.Errorf("docs/README.md does not name %s: give it a line there", name)
		}
	}
	if n := strings.Count(pages["README.md"], "\n"); n > 110 {
		t.Errorf("README.md has %d lines, more than 110: move some to docs", n)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" || d.Name() == "docs" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		sources, _ := filepath.Glob(filepath.Join(path, "*.go"))
		if len(sources) > 0 && !regexp.MustCompile("(?m)^\\| [^|]*`([a-z0-9/]*/)?"+regexp.QuoteMeta(d.Name())+"`").MatchString(pages["docs/development.md"]) {
			t.Errorf("docs/development.md has no line for %s: say there what it is for", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
