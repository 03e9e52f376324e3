package testmain

import (
	"bufio"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Table reads the cases of a test from a file, so that they stand one a line and nothing else
// does. Each line has the fields of a T in their order, strings, numbers and booleans; a last
// field that is a slice of strings takes what is left of the line. A field is a word, or Go
// strings that may be repeated and joined: "a\n"*3+"b". Lines that begin with # are comments.
func Table[T any](t testing.TB, path string) (cases []T) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		var c T
		if err := fill(reflect.ValueOf(&c).Elem(), line); err != nil {
			t.Fatalf("%s:%d: %v", path, n, err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil || len(cases) == 0 {
		t.Fatalf("%s: %d cases, %v", path, len(cases), err)
	}
	return cases
}

// fill sets the fields of a struct to those of a line.
func fill(c reflect.Value, line string) error {
	var s string
	var err error
	for i := range c.NumField() {
		switch v := c.Field(i); v.Kind() {
		case reflect.Slice:
			for line != "" && err == nil {
				if s, line, err = field(line); err == nil {
					v.Set(reflect.Append(v, reflect.ValueOf(s)))
				}
			}
		case reflect.Bool, reflect.Int:
			var n int
			if s, line, err = field(line); err == nil && v.Kind() == reflect.Int {
				n, err = strconv.Atoi(s)
				v.SetInt(int64(n))
			} else if err == nil {
				var yes bool
				yes, err = strconv.ParseBool(s)
				v.SetBool(yes)
			}
		default:
			s, line, err = field(line)
			v.SetString(s)
		}
		if err != nil {
			return err
		}
	}
	if line != "" {
		return errors.New("more than the fields of a case: " + line)
	}
	return nil
}

// field returns the first field of a line and what is behind it.
func field(line string) (value, rest string, err error) {
	if line == "" {
		return "", "", errors.New("less than the fields of a case")
	}
	if line[0] != '"' && line[0] != '`' {
		value, rest, _ = strings.Cut(line, " ")
		return value, strings.TrimLeft(rest, " "), nil
	}
	for {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return "", "", errors.New("no string begins with " + line)
		}
		s, _ := strconv.Unquote(quoted)
		line = line[len(quoted):]
		if behind, ok := strings.CutPrefix(line, "*"); ok {
			end := len(behind) - len(strings.TrimLeft(behind, "0123456789"))
			times, err := strconv.Atoi(behind[:end])
			if err != nil {
				return "", "", err
			}
			s, line = strings.Repeat(s, times), behind[end:]
		}
		value += s
		var more bool
		if line, more = strings.CutPrefix(line, "+"); !more {
			return value, strings.TrimLeft(line, " "), nil
		}
	}
}
