package orderedjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// What is written keeps its order, and a number its digits.
func TestOrder(t *testing.T) {
	text := `{"z":1.50,"a":{"y":[{"c":null,"b":true},"\u001b"],"x":{}},"":[],"n":12345678901234567890}`
	v, err := Decode([]byte(text + " what follows"))
	if err != nil {
		t.Fatal(err)
	}
	want := Object{{"z", json.Number("1.50")}, {"a", Object{{"y", []any{Object{{"c", nil}, {"b", true}}, "\x1b"}}, {"x", Object{}}}}, {"", []any{}}, {"n", json.Number("12345678901234567890")}}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%#v", v)
	}
}

func TestMembers(t *testing.T) {
	v, err := Decode([]byte(`{"s":"x","s":"y","list":["a",1,"b"],"objects":[{"n":1},{}],"mixed":[{},1],"none":[],"null":null,"o":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	o := v.(Object)
	if o.Str("s") != "x" || o.Str("list") != "" || o.Str("missing") != "" || o.Get("null") != nil || o.Get("missing") != nil || Object(nil).Get("s") != nil {
		t.Error("Get or Str")
	}
	for name, want := range map[string][]string{"s": {"x"}, "list": {"a", "b"}, "objects": nil, "none": nil, "null": nil, "missing": nil} {
		if got := o.Strings(name); !reflect.DeepEqual(got, want) {
			t.Errorf("strings of %s: %q", name, got)
		}
	}
	for name, want := range map[string]int{"objects": 2, "none": 0, "mixed": -1, "list": -1, "s": -1, "o": -1, "missing": -1} {
		if list, ok := o.Objects(name); ok != (want >= 0) || len(list) != max(want, 0) {
			t.Errorf("objects of %s: %v, %v", name, list, ok)
		}
	}
}

// What is decoded says the same as what encoding/json reads.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", " ", "null", "{", "}", "{}x", `{"a":`, `{"a":1,}`, `{"a" 1}`, `[1,[2,{"b":-0.0e9}]]`, `"\ud800"`, `{"a":1,"a":2}`, "1 2", "tru", `{1:2}`, "[,]", "\xff", `{"<&>":"\u2028"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Decode(text)
		if !json.Valid(text) {
			return // it may begin with a value
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := unordered(v); !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %v", text, got)
		}
	})
}

// unordered is a value as encoding/json has it.
func unordered(v any) any {
	switch v := v.(type) {
	case Object:
		o := map[string]any{}
		for _, m := range v {
			o[m.Name] = unordered(m.Value)
		}
		return o
	case []any:
		list := []any{}
		for _, x := range v {
			list = append(list, unordered(x))
		}
		return list
	}
	return v
}
