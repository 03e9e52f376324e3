package conformance

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// FormatVersion is the version of the case format that this package reads.
const FormatVersion = 1

//go:embed cases/*.json
var embedded embed.FS

//go:embed clauses.json
var clausesJSON []byte

// file is a file of cases.
type file struct {
	Format int               `json:"format"`
	Suite  string            `json:"suite"`
	Cases  []json.RawMessage `json:"cases"`

	// Document is the number of the specification whose clauses the cases name; 002
	// where it is left out, as it must be in the suite acli.
	Document string `json:"document,omitempty"`
}

// The suites. "acli" is specification 002 itself and holds for any server; "mail"
// needs the commands of a mail server.
var suites = []string{"acli", "mail"}

// Embedded returns the cases that come with the package, in the order of their
// files. They have been loaded strictly; a fault in one is an error.
func Embedded() ([]*Case, error) {
	sub, err := fs.Sub(embedded, "cases")
	if err != nil {
		return nil, err
	}
	return Load(sub)
}

// Load reads every *.json file at the root of a file system, by name. An unknown
// member or matcher, an id used twice, or anything else that would make a case
// prove less than it says is an error.
func Load(fsys fs.FS) ([]*Case, error) {
	names, err := fs.Glob(fsys, "*.json")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []*Case
	seen := map[string]string{}
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		list, err := parseFile(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range list {
			if other, twice := seen[c.ID]; twice {
				return nil, fmt.Errorf("%s: case %s is there already, in %s", name, c.ID, other)
			}
			seen[c.ID], c.File = name, path.Base(name)
		}
		all = append(all, list...)
	}
	return all, nil
}

func parseFile(b []byte) ([]*Case, error) {
	var f file
	if err := strictly(b, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Format != FormatVersion:
		return nil, fmt.Errorf("format %d is not %d", f.Format, FormatVersion)
	case !slices.Contains(suites, f.Suite):
		return nil, fmt.Errorf("suite %q is none of %v", f.Suite, suites)
	case (f.Suite == "acli") != (f.Document == ""):
		return nil, fmt.Errorf("suite %q with document %q: acli is of 002 and says no document, any other says one", f.Suite, f.Document)
	case f.Document != "" && !documentPattern.MatchString(f.Document):
		return nil, fmt.Errorf("document %q is no number of three digits", f.Document)
	case len(f.Cases) == 0:
		return nil, fmt.Errorf("there are no cases")
	}
	var list []*Case
	for i, raw := range f.Cases {
		c := &Case{Suite: f.Suite, Document: cmp.Or(f.Document, "002"), Strength: Must}
		if err := strictly(raw, c); err != nil {
			return nil, fmt.Errorf("case %d (%s): %w", i+1, c.ID, err)
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("case %d (%s): %w", i+1, c.ID, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// Clause is what a specification demands in one place: a section, an appendix, or an
// item that it numbers.
type Clause struct {
	Document   string   `json:"document,omitempty"` // number of the specification; empty stands for 002
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	By         []string `json:"by,omitempty"`         // clauses of the document whose cases are about this one too
	Untestable string   `json:"untestable,omitempty"` // why no case can observe it
	Partly     string   `json:"partly,omitempty"`     // what of it no case can observe
}

// Clauses returns the table of what the specifications demand: of 002 sections 3 to 9
// and the appendices, of the others what the suite mail is about. Each has a case or a
// reason why it can have none. Document is set in all of them.
func Clauses() ([]Clause, error) {
	var list []Clause
	if err := strictly(clausesJSON, &list); err != nil {
		return nil, fmt.Errorf("clauses.json: %w", err)
	}
	for i := range list {
		list[i].Document = cmp.Or(list[i].Document, "002")
	}
	return list, nil
}
