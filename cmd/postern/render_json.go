package main

import "encoding/json"

// A field is a member of a JSON object; an object keeps the order it was written
// in, which is the order a person should read it in.
type field struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

type object []field

func (o object) get(name string) any {
	for _, f := range o {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// decode reads one JSON value and keeps the order of members.
func decode(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decode(d)
			if err != nil {
				return nil, err
			}
			o = append(o, field{name.(string), value})
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

// str is a member that is a string; empty for any other.
func (o object) str(name string) string {
	s, _ := o.get(name).(string)
	return s
}

// strings is a member that is a list of strings, or one.
func (o object) strings(name string) []string {
	switch v := o.get(name).(type) {
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

// objects is a member that is a list of objects; not ok when it is anything else.
func (o object) objects(name string) (list []object, ok bool) {
	v, ok := o.get(name).([]any)
	for _, x := range v {
		e, isObject := x.(object)
		if !isObject {
			return nil, false
		}
		list = append(list, e)
	}
	return list, ok
}
