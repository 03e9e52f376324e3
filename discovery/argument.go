package discovery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/invopop/jsonschema"
)

// Kind is an argument's type as 002 section 7.2 names it.
type Kind string

// The kinds.
const (
	KindString   Kind = "string"
	KindInteger  Kind = "integer"
	KindNumber   Kind = "number"
	KindBoolean  Kind = "boolean"
	KindFlag     Kind = "flag"
	KindDatetime Kind = "datetime"
	KindArray    Kind = "array"
	KindEnum     Kind = "enum"
)

// Datetime is a bound datetime argument. DateOnly says that only a date was
// written; Time is then the start of that day in the zone that binding used.
type Datetime struct {
	time.Time
	DateOnly bool
}

// MarshalJSON writes the instant as RFC 3339.
func (d Datetime) MarshalJSON() ([]byte, error) { return []byte(`"` + rfc3339(d.Time) + `"`), nil }

// rfc3339 writes an instant. RFC 3339 has no offsets of seconds, which clocks once
// had.
func rfc3339(t time.Time) string {
	if _, offset := t.Zone(); offset%60 != 0 {
		t = t.UTC()
	}
	return t.Format(time.RFC3339Nano)
}

// Date is a bound argument that is a day of the calendar, written YYYY-MM-DD. A
// day has no zone: Time is its midnight in UTC, whatever zone binding used.
type Date struct{ time.Time }

// MarshalJSON writes the day as binding reads it.
func (d Date) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// String returns the day as binding reads it.
func (d Date) String() string { return d.Format(time.DateOnly) }

// Form is the syntax that the strings of several arguments share, or what is decided elsewhere
// of a number. The tags of a field can narrow it.
type Form struct {
	Pattern              *regexp.Regexp
	Words                string // see Argument.Form
	Value                string // see Argument.Value
	MinLength, MaxLength uint64 // in characters; 0 for none

	Minimum, Maximum, Default json.Number // of a number; empty for none

	// Account returns the account that a value names, for the audit entry of a command that
	// does not run; empty for none. nil where values name no account.
	Account func(value string) string
}

// Common are the options every command takes; the gateway acts on them.
type Common struct {
	Full    bool     `json:"full,omitempty" jsonschema_description:"The whole answer, every field of it"`
	Fields  []string `json:"fields,omitempty" jsonschema:"minLength=1,maxLength=256,maxItems=100" jsonschema_description:"Only these fields or columns of the answer, dotted for nested ones"`
	Timeout int      `json:"timeout,omitempty" jsonschema:"minimum=1,maximum=300,default=30" jsonschema_description:"Seconds until the command is stopped"`
}

// Argument is one option or positional of a command.
type Argument struct {
	Name        string // without dashes
	Kind        Kind
	Item        Kind // of an array's elements
	Short       string
	Description string
	Required    bool
	Default     any // nil when there is none
	Enum        []string
	Examples    []string
	Positional  bool
	Sensitive   bool
	Path        bool
	Directory   string   // that a Path is below, as errors name it; empty means "directory for files"
	Requires    string   // name of the option it belongs to; it is refused without that one
	Also        []string // other names that people try; only errors know them
	With        string   // path of a command without which the option is of no use, and does not exist

	// How help tells it. Value stands for a value in the command's usage: F in
	// "--folder F". The usage leaves out what is Rare; what is Global means the same in
	// every command that takes it and is told once, in the root help.
	Value        string
	Rare, Global bool

	Needed bool // the usage shows it as required: only another argument can stand for it

	// Bounds; nil or empty means none. For an array the value bounds hold for
	// each element.
	Minimum, Maximum     json.Number
	MinLength, MaxLength *uint64
	MinItems, MaxItems   *uint64
	Pattern              *regexp.Regexp

	// Form says what a value that does not match Pattern ought to be, in words that
	// follow the argument's label: "must be one line".
	Form string

	Common bool  // taken by every command, see the type Common
	index  []int // of the field in its struct

	account func(string) string // of its Form; may be nil
	typ     reflect.Type
}

// Label is the name as a person writes it: --name, or the bare name of a
// positional.
func (a *Argument) Label() string {
	if a.Positional {
		return a.Name
	}
	return "--" + a.Name
}

// each is the kind of one value: of an element, for an array.
func (a *Argument) each() Kind {
	if a.Kind == KindArray {
		return a.Item
	}
	return a.Kind
}

func (a *Argument) directory() string { return cmp.Or(a.Directory, "directory for files") }

type argumentSet struct {
	typ         reflect.Type
	list        []*Argument
	byName      map[string]*Argument
	byShort     map[string]*Argument
	positionals []*Argument
	schema      *jsonschema.Schema
}

// letters are what a short form is made of (002 appendix A).
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

var (
	namePattern  = regexp.MustCompile(`\A[a-z][a-z0-9-]*\z`)
	datetimeType = reflect.TypeFor[Datetime]()
	dateType     = reflect.TypeFor[Date]()
	commonType   = reflect.TypeFor[Common]()
	documentType = reflect.TypeFor[JSONSchema]()
)

func reflectSchema(t reflect.Type) *jsonschema.Schema {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: t.Kind() == reflect.Struct, Mapper: ownSchema}
	s := r.ReflectFromType(t)
	s.Version = ""
	return s
}

// commonSchema is the schema of the options that every command takes. It is not to be changed.
var commonSchema = sync.OnceValue(func() *jsonschema.Schema { return reflectSchema(commonType) })

// ownSchema is the schema of a type that is not a plain Go value, and nil for all others.
func ownSchema(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == datetimeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == dateType:
		return &jsonschema.Schema{Type: "string", Format: "date"}
	case t == documentType:
		return &jsonschema.Schema{Type: "object"}
	}
	return nil
}

func newArgumentSet(t reflect.Type, spec Spec) (*argumentSet, error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("the arguments are not a struct")
	}
	s := &argumentSet{typ: t, byName: map[string]*Argument{}, byShort: map[string]*Argument{}, schema: reflectSchema(t)}
	if err := s.add(t, s.schema, spec, false); err != nil {
		return nil, err
	}
	return s, s.addCommon()
}

// addCommon ends the list with the options that every command takes, and checks
// what can be checked only of a whole list.
func (s *argumentSet) addCommon() error {
	common := commonSchema()
	if err := s.add(commonType, common, Spec{}, true); err != nil {
		return err
	}
	for p := common.Properties.Oldest(); p != nil; p = p.Next() {
		property := *p.Value // setDefault changes it
		s.schema.Properties.Set(p.Key, &property)
	}
	for _, a := range s.list {
		if other := s.byName[a.Requires]; a.Requires != "" && (other == nil || other.Positional || a.Required) {
			return fmt.Errorf("argument %s: it requires %q, which does not exist, is positional or is required itself", a.Name, a.Requires)
		}
	}
	return nil
}

func (s *argumentSet) add(t reflect.Type, schema *jsonschema.Schema, spec Spec, common bool) error {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		prop, ok := schema.Properties.Get(name)
		if !ok {
			return fmt.Errorf("field %s has no json name", f.Name)
		}
		a, err := newArgument(f, name, prop, spec.Forms)
		if err != nil {
			return fmt.Errorf("argument %s: %w", name, err)
		}
		a.Common, a.Global, a.Path = common, a.Global || common, a.Path && !spec.HostPaths
		a.Required = slices.Contains(schema.Required, name)
		if err := s.insert(a); err != nil {
			return fmt.Errorf("argument %s: %w", name, err)
		}
	}
	return nil
}

// drop takes optional arguments away.
func (s *argumentSet) drop(gone func(*Argument) bool) {
	s.list = slices.DeleteFunc(s.list, func(a *Argument) bool {
		if !gone(a) {
			return false
		}
		delete(s.byName, a.Name)
		delete(s.byShort, a.Short)
		s.schema.Properties.Delete(a.Name)
		return true
	})
}

func (s *argumentSet) insert(a *Argument) error {
	if !namePattern.MatchString(a.Name) || a.Name == "help" {
		return errors.New("the name is not allowed")
	}
	if s.byName[a.Name] != nil {
		return errors.New("the name is taken")
	}
	if a.Required && a.Default != nil {
		return errors.New("it is required and has a default: add omitempty")
	}
	if a.Short != "" {
		if len(a.Short) != 1 || !strings.Contains(letters, a.Short) || a.Positional || s.byShort[a.Short] != nil {
			return errors.New("the short form is not allowed or taken")
		}
		s.byShort[a.Short] = a
	}
	if a.Positional {
		if n := len(s.positionals); n > 0 && s.positionals[n-1].Kind == KindArray {
			return errors.New("it follows a positional that takes all that remain")
		} else if n > 0 && a.Required && !s.positionals[n-1].Required {
			return errors.New("it is required and follows a positional that may be missing")
		}
		s.positionals = append(s.positionals, a)
	}
	s.byName[a.Name] = a
	s.list = append(s.list, a)
	if a.Default != nil {
		v := reflect.New(a.typ).Elem()
		if msg := a.set(v, []string{fmt.Sprint(a.Default)}, time.UTC); msg != "" {
			return fmt.Errorf("its default %s", msg)
		}
	}
	return nil
}

// setDefault gives one command another default of an option, in its schema too.
func (s *argumentSet) setDefault(name string, value any) error {
	a := s.byName[name]
	if msg := a.set(reflect.New(a.typ).Elem(), []string{fmt.Sprint(value)}, time.UTC); msg != "" {
		return fmt.Errorf("the default of %s %s", name, msg)
	}
	property, _ := s.schema.Properties.Get(name)
	a.Default, property.Default = value, value
	return nil
}

func (s *argumentSet) setTimeout(spec Spec) error {
	if spec.Timeout == 0 {
		return nil
	}
	return s.setDefault("timeout", spec.Timeout)
}

func newArgument(f reflect.StructField, name string, p *jsonschema.Schema, forms map[string]Form) (*Argument, error) {
	a := &Argument{Name: name, Description: p.Description, Default: p.Default, typ: f.Type, index: f.Index,
		MinItems: p.MinItems, MaxItems: p.MaxItems}
	var form Form
	boolean := false
	for opt := range strings.SplitSeq(f.Tag.Get("acli"), ",") {
		key, val, _ := strings.Cut(opt, "=")
		switch key {
		case "":
		case "positional":
			a.Positional = true
		case "short":
			a.Short = val
		case "sensitive":
			a.Sensitive = true
		case "path":
			a.Path, a.Directory = true, val
		case "boolean":
			boolean = true
		case "requires":
			a.Requires = val
		case "with":
			a.With = val
		case "also":
			a.Also = strings.Split(val, "|")
		case "value":
			a.Value = val
		case "needed":
			a.Needed = true
		case "rare":
			a.Rare = true
		case "global":
			a.Global = true
		case "form":
			known := false
			if form, known = forms[val]; !known {
				return nil, fmt.Errorf("there is no form %q", val)
			}
		default:
			return nil, fmt.Errorf("unknown acli tag %q", key)
		}
	}
	if a.Description == "" {
		return nil, errors.New("it has no jsonschema_description")
	}
	var err error
	if a.Kind, err = kindOf(f.Type, boolean); err != nil {
		return nil, err
	}
	value := p
	if a.Kind == KindArray {
		if a.Item, err = kindOf(f.Type.Elem(), boolean); err != nil || a.Item == KindArray || a.Item == KindFlag {
			return nil, errors.New("its element type is not supported")
		}
		value = p.Items
	}
	if form.Minimum != "" || form.Maximum != "" { // common options have one schema for all commands
		value.Minimum, value.Maximum = cmp.Or(value.Minimum, form.Minimum), cmp.Or(value.Maximum, form.Maximum)
	}
	a.Minimum, a.Maximum = value.Minimum, value.Maximum
	if p.Default == nil && form.Default != "" {
		a.Default, p.Default = form.Default, form.Default
	}
	if isUnsigned(f.Type) && a.Minimum == "" {
		return nil, errors.New("an unsigned integer needs a minimum, so that the schema says what binding does")
	}
	if form.MinLength > 0 && value.MinLength == nil {
		value.MinLength = &form.MinLength
	}
	if form.MaxLength > 0 && value.MaxLength == nil {
		value.MaxLength = &form.MaxLength
	}
	a.Value = cmp.Or(a.Value, form.Value)
	a.MinLength, a.MaxLength = value.MinLength, value.MaxLength
	a.account = form.Account
	a.Pattern, a.Form = form.Pattern, cmp.Or(f.Tag.Get("form"), form.Words)
	if value.Pattern != "" {
		if a.Pattern, err = regexp.Compile(value.Pattern); err != nil {
			return nil, err
		}
	}
	if a.Pattern != nil {
		if a.Form == "" {
			return nil, errors.New("its pattern has no form that says it in words")
		}
		value.Pattern = a.Pattern.String()
	}
	for _, e := range value.Enum {
		a.Enum = append(a.Enum, fmt.Sprint(e))
	}
	for _, e := range p.Examples {
		a.Examples = append(a.Examples, fmt.Sprint(e))
	}
	if len(a.Enum) > 0 {
		if a.Kind == KindString {
			a.Kind = KindEnum
		} else if a.Item == KindString {
			a.Item = KindEnum
		} else {
			return nil, errors.New("only strings can be enumerated")
		}
	}
	return a, nil
}

func isUnsigned(t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64
}

func kindOf(t reflect.Type, boolean bool) (Kind, error) {
	if t.Kind() == reflect.Pointer && slices.Contains([]reflect.Kind{reflect.Bool, reflect.String, reflect.Int}, t.Elem().Kind()) {
		t = t.Elem()
	}
	switch {
	case t == datetimeType, t == dateType:
		return KindDatetime, nil
	case t.Kind() == reflect.String:
		return KindString, nil
	case t.Kind() == reflect.Bool && boolean:
		return KindBoolean, nil
	case t.Kind() == reflect.Bool:
		return KindFlag, nil
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return KindInteger, nil
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return KindNumber, nil
	case t.Kind() == reflect.Slice:
		return KindArray, nil
	}
	return "", fmt.Errorf("type %s is not supported", t)
}
