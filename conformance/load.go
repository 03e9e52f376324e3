package conformance

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed cases/*.json
var embedded embed.FS

//go:embed case.schema.json
var schemaJSON []byte

// fileSchema is the form of a file of cases.
var fileSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := decode(schemaJSON)
	if err != nil {
		return nil, err
	}
	return compile(doc)
})

// file is a file of cases.
type file struct {
	Suite string            `json:"suite"`
	Cases []json.RawMessage `json:"cases"`

	// Document is the number of the specification whose clauses the cases name; 002
	// where it is left out, as it must be in the suite acli.
	Document string `json:"document,omitempty"`
}

// The suites. "acli" is specification 002 itself and holds for any server; "mail"
// needs the commands of a mail server.
var suites = []string{"acli", "mail"}

// Embedded returns the cases that come with the package, in the order of their
// files. They have been loaded strictly; a fault in one is an error. They must not be
// changed.
func Embedded() ([]*Case, error) {
	all, err := loaded()
	return slices.Clone(all), err
}

var loaded = sync.OnceValues(func() ([]*Case, error) {
	sub, err := fs.Sub(embedded, "cases")
	if err != nil {
		return nil, err
	}
	return Load(sub)
})

// Load reads every *.json file at the root of a file system, by name. An unknown
// member or matcher, an id used twice, or any other fault that would make a case
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
	schema, err := fileSchema()
	if err != nil {
		return nil, err
	}
	doc, err := decode(b)
	if err != nil {
		return nil, err
	}
	if found := mismatches(schema, doc); len(found) > 0 {
		return nil, fmt.Errorf("it has not the form of case.schema.json: at %s, expected %s, not %s", found[0].At, found[0].Want, found[0].Got)
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	if (f.Suite == "acli") != (f.Document == "") {
		return nil, fmt.Errorf("suite %q with document %q: acli is of 002 and says no document, any other says one", f.Suite, f.Document)
	}
	var list []*Case
	for i, raw := range f.Cases {
		c := &Case{Suite: f.Suite, Document: cmp.Or(f.Document, "002"), Strength: Must}
		err := json.Unmarshal(raw, c)
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, fmt.Errorf("case %d (%s): %w", i+1, c.ID, err)
		}
		list = append(list, c)
	}
	return list, nil
}
