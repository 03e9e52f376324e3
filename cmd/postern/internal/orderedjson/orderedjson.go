// Package orderedjson reads JSON and keeps the members of an object in the order in
// which they were written, which is the order a person should read them in.
//
// It is for answers of this program, whose size and depth are bounded where they are
// made: Decode keeps all of a text and goes as deep as the text does. The package
// knows nothing of what an answer says. Its functions are safe for concurrent use, as
// long as nobody changes a value meanwhile.
package orderedjson

import (
	"bytes"
	"encoding/json"
)

// Object is a JSON object. A name may be there twice, as JSON allows; the first of
// them counts. The zero value has no members.
type Object []Member

// Member is a member of an object. Its value is an Object, []any of such values,
// string, json.Number, bool or nil.
type Member struct {
	Name  string
	Value any
}

// Decode reads the JSON value that a text begins with, which is one that the Value of
// a Member can be, and looks at nothing behind it. A number stays as it is written.
// The error is one of encoding/json, io.EOF or io.ErrUnexpectedEOF; what is returned
// beside it is of no use.
func Decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return decode(d)
}

func decode(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := Object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decode(d)
			if err != nil {
				return nil, err
			}
			o = append(o, Member{name.(string), value})
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decode(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

// Get returns the value of the first member of that name, or nil.
func (o Object) Get(name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Str returns a member that is a string; empty for any other.
func (o Object) Str(name string) string {
	s, _ := o.Get(name).(string)
	return s
}

// Strings returns a member that is a string, or the strings of one that is a list;
// nil for any other.
func (o Object) Strings(name string) []string {
	switch v := o.Get(name).(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// Objects returns a member that is a list of objects; ok is false when it is anything
// else.
func (o Object) Objects(name string) (list []Object, ok bool) {
	v, ok := o.Get(name).([]any)
	for _, x := range v {
		e, isObject := x.(Object)
		if !isObject {
			return nil, false
		}
		list = append(list, e)
	}
	return list, ok
}
