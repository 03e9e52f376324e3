package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/postern-mail/postern/internal/plain"
)

// Definition is the part of a command that has no Go types, because somebody wrote
// it down elsewhere, such as in a file.
type Definition struct {
	// Arguments are the command's arguments in their order. Every exported field of
	// an Argument counts. A Default is a string, a bool or a json.Number, as the kind
	// has it; an array has none. A string with an Enum is an enum.
	Arguments []Argument

	// Output is what the answer looks like. Nil promises nothing: the answer may be
	// any JSON value then, and --fields has nothing to choose from.
	Output *Shape
}

// Everything stands in a list of untrusted fields for all of the answer.
const Everything = "*"

// safeInteger is the largest integer that every reader of JSON takes for what it
// is (RFC 8259 section 6), and the bound of a defined integer that names none.
const safeInteger = json.Number("9007199254740991")

// Define makes a command of a definition. It is bound, helped and described as one
// that New made is, by the same code. What it answers is untrusted as a whole.
//
// run gets the bound arguments as a JSON object whose members bear the arguments'
// names. What was not given and has no default is absent, but for flags, which are
// false. Datetimes are RFC 3339. What run returns is one JSON value.
//
// d must not change any more. A mistake in it is kept, like one in what New is given,
// and says which part of d is wrong.
func Define(s Spec, d Definition, run func(ctx context.Context, call *Call, args json.RawMessage) (json.RawMessage, error)) *Command {
	c := &Command{Spec: s, shape: d.Output, defined: true}
	c.run = func(ctx context.Context, call *Call, args any) (any, error) {
		given, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		return run(ctx, call, given)
	}
	set, err := defineArguments(d.Arguments)
	if c.err = err; err != nil {
		return c
	}
	c.args = func() *argumentSet { return set }
	if err := c.shape.valid(0); err != nil {
		c.err = fmt.Errorf("output: %w", err)
		return c
	}
	if c.err = c.check(); c.err == nil {
		c.err = set.setTimeout(s)
	}
	return c
}

// defineArguments makes the struct that a command's author would have written, and
// the schema that reflection would have made of it.
func defineArguments(definitions []Argument) (*argumentSet, error) {
	s := &argumentSet{byName: map[string]*Argument{}, byShort: map[string]*Argument{},
		schema: &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}}
	fields := make([]reflect.StructField, len(definitions))
	for i := range definitions {
		a := definitions[i] // a copy: the caller keeps its own
		if err := a.define(); err != nil {
			return nil, fmt.Errorf("argument %s: %w", plain.Excerpt(a.Name, 40), err)
		}
		a.index = []int{i}
		if err := s.insert(&a); err != nil {
			return nil, fmt.Errorf("argument %s: %w", plain.Excerpt(a.Name, 40), err)
		}
		if err := a.checkExamples(); err != nil {
			return nil, fmt.Errorf("argument %s: %w", a.Name, err)
		}
		tag := a.Name
		if a.optional() {
			tag += ",omitempty"
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("Argument%d", i), Type: a.typ, Tag: reflect.StructTag(fmt.Sprintf("json:%q", tag))}
		s.schema.Properties.Set(a.Name, a.property())
		if a.Required {
			s.schema.Required = append(s.schema.Required, a.Name)
		}
	}
	s.typ = reflect.StructOf(fields)
	return s, s.addCommon()
}

// define checks what the caller wrote and settles what follows from it.
func (a *Argument) define() error {
	a.Common = false
	if len(a.Enum) > 0 {
		switch {
		case a.Kind == KindString:
			a.Kind = KindEnum
		case a.Kind == KindArray && a.Item == KindString:
			a.Item = KindEnum
		case a.Kind != KindEnum && a.Item != KindEnum:
			return errors.New("only strings can be enumerated")
		}
	}
	value := a.Kind
	if a.Kind == KindArray {
		value = a.Item
	} else if a.Item != "" || a.MinItems != nil || a.MaxItems != nil {
		return errors.New("only an array has items")
	}
	types, ok := valueTypes[value]
	switch {
	case !ok || value == KindFlag && a.Kind == KindArray:
		return errors.New("its type is not one of string, integer, number, boolean, flag, datetime, array, enum, or that of its items is missing or not supported")
	case a.Description == "":
		return errors.New("it has no description")
	case a.Kind == KindFlag && (a.Positional || a.Required):
		return errors.New("a flag is neither required nor positional")
	case a.Kind == KindArray && a.Default != nil:
		return errors.New("an array has no default")
	case value == KindEnum && len(a.Enum) == 0:
		return errors.New("it does not say which values it takes")
	case value != KindInteger && value != KindNumber && (a.Minimum != "" || a.Maximum != ""):
		return errors.New("only numbers have a minimum and a maximum")
	case value != KindString && (a.MinLength != nil || a.MaxLength != nil || a.Pattern != nil):
		return errors.New("only strings have lengths and a pattern")
	case value != KindString && a.Path:
		return errors.New("only a string is a path")
	}
	if value == KindInteger {
		if a.Minimum == "" {
			a.Minimum = "-" + safeInteger
		}
		if a.Maximum == "" {
			a.Maximum = safeInteger
		}
	}
	if err := a.checkBounds(value == KindInteger); err != nil {
		return err
	}
	if err := a.checkDefault(); err != nil {
		return err
	}
	switch {
	case a.Kind == KindArray:
		a.typ = reflect.SliceOf(types.typ)
	case a.optional():
		a.typ = reflect.PointerTo(types.typ)
	default:
		a.typ = types.typ
	}
	return nil
}

// valueTypes are the types that the values of defined arguments have, in Go and in JSON
// Schema.
var valueTypes = map[Kind]struct {
	typ  reflect.Type
	json string
}{
	KindString:   {reflect.TypeFor[string](), "string"},
	KindEnum:     {reflect.TypeFor[string](), "string"},
	KindInteger:  {reflect.TypeFor[int64](), "integer"},
	KindNumber:   {reflect.TypeFor[float64](), "number"},
	KindBoolean:  {reflect.TypeFor[bool](), "boolean"},
	KindFlag:     {reflect.TypeFor[bool](), "boolean"},
	KindDatetime: {datetimeType, "string"},
}

// optional reports whether the argument can be without a value.
func (a *Argument) optional() bool { return !a.Required && a.Default == nil && a.Kind != KindFlag }

// checkBounds refuses bounds that nothing meets, and those that binding, which
// compares as float64, would not meet exactly.
func (a *Argument) checkBounds(integer bool) error {
	limit, _ := safeInteger.Float64()
	bound := map[json.Number]float64{}
	for _, n := range []json.Number{a.Minimum, a.Maximum} {
		if n == "" {
			continue
		}
		f, ok := parseNumber(string(n))
		if !ok || f < -limit || f > limit || integer && !integerPattern.MatchString(string(n)) {
			return errors.New("its minimum or maximum is not a number of its type, or is beyond 2^53")
		}
		bound[n] = f
	}
	crossed := func(low, high *uint64) bool { return low != nil && high != nil && *low > *high }
	if a.Minimum != "" && a.Maximum != "" && bound[a.Minimum] > bound[a.Maximum] || crossed(a.MinLength, a.MaxLength) || crossed(a.MinItems, a.MaxItems) {
		return errors.New("its bounds leave no value")
	}
	return nil
}

// checkDefault holds a default to the JSON type of its argument; insert holds it to
// the bounds.
func (a *Argument) checkDefault() error {
	ok := true
	switch a.Default.(type) {
	case nil:
	case string:
		ok = a.Kind == KindString || a.Kind == KindEnum || a.Kind == KindDatetime
	case bool:
		ok = a.Kind == KindBoolean || a.Kind == KindFlag
	case json.Number:
		ok = a.Kind == KindInteger || a.Kind == KindNumber
	default:
		ok = false
	}
	if !ok {
		return errors.New("its default is not of its type")
	}
	return nil
}

func (a *Argument) checkExamples() error {
	for _, e := range a.Examples {
		texts, typ := []string{e}, a.typ
		if a.Kind == KindArray {
			typ = typ.Elem()
		}
		if a.Kind == KindArray && !a.Positional {
			texts = splitList(e)
		}
		for _, t := range texts { // how many there are says nothing of how many an array takes
			if msg := a.setOne(reflect.New(typ).Elem(), a.each(), t, time.UTC); msg != "" {
				return fmt.Errorf("its example %s", msg)
			}
		}
	}
	return nil
}

// property is the argument's schema.
func (a *Argument) property() *jsonschema.Schema {
	kind := a.each()
	value := &jsonschema.Schema{Type: valueTypes[kind].json, Minimum: a.Minimum, Maximum: a.Maximum, MinLength: a.MinLength, MaxLength: a.MaxLength}
	if kind == KindDatetime {
		value.Format = "date-time"
	}
	if a.Pattern != nil {
		value.Pattern = a.Pattern.String()
	}
	for _, e := range a.Enum {
		value.Enum = append(value.Enum, e)
	}
	p := value
	if a.Kind == KindArray {
		p = &jsonschema.Schema{Type: "array", Items: value, MinItems: a.MinItems, MaxItems: a.MaxItems}
	}
	p.Description, p.Default = a.Description, a.Default
	for _, e := range a.Examples {
		p.Examples = append(p.Examples, jsonExample(kind, e))
	}
	return p
}

// jsonExample is an example's value where it is one value of a type that JSON has;
// the others are as they are written in a command.
func jsonExample(kind Kind, text string) any {
	switch kind {
	case KindInteger, KindNumber:
		if numberPattern.MatchString(text) {
			return json.Number(text)
		}
	case KindBoolean, KindFlag:
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return strings.Clone(text)
}
