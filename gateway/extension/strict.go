package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// decodeStrict reads JSON that a person wrote into v, a pointer to a struct. What v
// has no field for is an error, which encoding/json alone does not see where a name
// is written in other letters or twice; so is a null, which would leave open whether
// something was meant.
func decodeStrict(raw []byte, v any) error {
	plain, err := scrub(raw)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return errNotJSON
	}
	if err := known(tree, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	// From what came, since scrub has changed its strings: one that is not clean is
	// refused where it is used.
	d = json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("its member %q is not of the right type", wrong.Field)
		}
		return errNotJSON
	}
	return nil
}

// known reports the first member of v that t has no place for.
func known(v any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case nil:
		return errNull
	case []any:
		for _, e := range v {
			item := t
			if t.Kind() == reflect.Slice {
				item = t.Elem()
			}
			if err := known(e, item); err != nil {
				return err
			}
		}
	case map[string]any:
		members := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			for _, f := range reflect.VisibleFields(t) {
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
					members[name] = f.Type
				}
			}
		}
		for name, e := range v {
			member, ok := members[name]
			if t.Kind() == reflect.Map {
				member, ok = t.Elem(), true
			}
			if !ok && t.Kind() == reflect.Struct {
				return fmt.Errorf("nothing is known of its member %q", name)
			}
			if !ok {
				continue // the wrong type, as decoding will tell
			}
			if err := known(e, member); err != nil {
				return err
			}
		}
	}
	return nil
}
