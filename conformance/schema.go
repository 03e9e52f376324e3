package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Mismatch is one place where a value differs from the expected one.
type Mismatch struct {
	At   string `json:"at"` // JSON pointer
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Bounds of what is told of one answer, and of the work for a schema that a server
// sent: one that refers to itself twice doubles the work at every level of a value, and
// the time to compile one grows with the square of its size.
const (
	maxMismatches = 5
	maxChecks     = 200_000
	maxSubschemas = 5_000
)

// compile makes a schema of doc, in which urn:sent:0 and so on are the schemas that a
// server sent. With any of these a validation panics after maxChecks.
func compile(doc any, sent ...any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if len(sent) > 0 {
		left := checks(maxChecks)
		c.AssertFormat()
		c.UseRegexpEngine(lenientRegexp)
		c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "urn:bound", Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return &left, nil
		}})
		c.AssertVocabs()
	}
	for i, s := range sent {
		if n := countObjects(s); n > maxSubschemas {
			return nil, fmt.Errorf("the schema has %d parts; at most %d are looked at", n, maxSubschemas)
		}
		if err := c.AddResource(fmt.Sprintf("urn:sent:%d", i), s); err != nil {
			return nil, err
		}
	}
	if err := c.AddResource("urn:pattern", doc); err != nil {
		return nil, err
	}
	return c.Compile("urn:pattern")
}

// noLoader keeps a server's schema from having files or addresses read.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("nothing outside a schema is read")
}

// checks is how many subschemas may still be applied.
type checks int

// Validate implements jsonschema.SchemaExt.
func (c *checks) Validate(*jsonschema.ValidatorContext, any) {
	if *c--; *c < 0 {
		panic("too many checks")
	}
}

// lenientRegexp treats a pattern that RE2 does not support as one that matches
// everything: the value is not at fault.
func lenientRegexp(s string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(s); err == nil {
		return re, nil
	}
	return regexp.MustCompile(""), nil
}

func countObjects(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += countObjects(e)
		}
	case map[string]any:
		n = 1
		for _, e := range v {
			n += countObjects(e)
		}
	}
	return n
}

// mismatches holds a value to a schema. The deepest places come first.
func mismatches(schema *jsonschema.Schema, value any) (list []Mismatch) {
	defer func() {
		// The library panics at a number that is too large to compute with, and we when
		// the checks are too many.
		if recover() != nil {
			list = []Mismatch{{Want: "a schema that ends, for a value of a few thousand parts", Got: show(value)}}
		}
	}()
	var failed *jsonschema.ValidationError
	if !errors.As(schema.Validate(value), &failed) {
		return nil
	}
	var collect func(*jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			collect(cause)
		}
		if len(e.Causes) == 0 {
			list = append(list, told(e, value)...)
		}
	}
	collect(failed)
	slices.SortFunc(list, func(a, b Mismatch) int {
		return cmp.Or(strings.Count(b.At, "/")-strings.Count(a.At, "/"), strings.Compare(a.At, b.At), strings.Compare(a.Want, b.Want))
	})
	return list[:min(len(list), maxMismatches)]
}

// told describes in words how a part of a value violates the schema.
func told(e *jsonschema.ValidationError, value any) []Mismatch {
	m := Mismatch{}
	for _, token := range e.InstanceLocation {
		m.At += "/" + escapePointer(token)
	}
	if got, ok := pointer(value, m.At); ok {
		m.Got = show(got)
	}
	if k, ok := e.ErrorKind.(*kind.Required); ok {
		var list []Mismatch
		for _, name := range k.Missing {
			list = append(list, Mismatch{At: m.At + "/" + escapePointer(name), Want: "a value", Got: "nothing"})
		}
		return list
	}
	m.Want = clip(e.DetailedOutput().Error.String(), 300)
	return []Mismatch{m}
}
