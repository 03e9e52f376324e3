package discovery_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

// FuzzBind shows that no token list makes binding panic, that every refusal is a
// complete fault, and that neither a refusal nor the redacted form repeats a
// sensitive value.
func FuzzBind(f *testing.F) {
	for _, seed := range []string{
		"a", "a\x00--text\x00x", "a\x00-n10", "--help", "--\x00--text", "a\x00--list=a,b\\,c", "a\x00--secret\x00hunter2hunter2",
		"a\x00--secret=hunter2hunter2\x00--secret=x", "-", "a\x00--file\x00../x", "a\x00--when\x002026-02-30", "a\x00-\xff", "a\x00--=x", "a\x00--optional=x",
	} {
		f.Add(seed)
	}
	c := thing()
	f.Fuzz(func(t *testing.T, joined string) {
		tokens := strings.Split(joined, "\x00")
		b, err := c.Bind(tokens, time.UTC)
		redacted := strings.Join(c.Redact(tokens), " ")
		if err != nil {
			fault := discovery.AsFault(err)
			if fault == nil || fault.Message == "" || fault.Hint == "" || len(fault.Examples) == 0 || !fault.Usage() {
				t.Fatalf("%q: incomplete fault %+v", tokens, err)
			}
			redacted += fault.Message + fault.Hint + strings.Join(fault.Examples, " ")
		} else if !b.Help && b.Args == nil {
			t.Fatalf("%q: bound to nothing", tokens)
		}
		const canary = "hunter2hunter2"
		if strings.Contains(joined, "--secret\x00"+canary) && strings.Count(joined, canary) == 1 && !strings.Contains(joined, "--\x00") && strings.HasPrefix(joined, "a\x00--secret\x00") && strings.Contains(redacted, canary) {
			t.Fatalf("%q: %s", tokens, redacted)
		}
	})
}

var jsonNumber = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\z`)

// jsonForm is the JSON value that a text stands for under a kind; a text that
// stands for none is the string itself, which the schema then refuses.
func jsonForm(kind discovery.Kind, text string) any {
	switch kind {
	case discovery.KindInteger, discovery.KindNumber:
		if jsonNumber.MatchString(text) {
			return json.Number(text)
		}
	case discovery.KindBoolean, discovery.KindFlag:
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

// A datetime may be written in more ways than RFC 3339; only its own ways can be
// compared with the schema's format.
var rfc3339 = regexp.MustCompile(`\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})\z`)

var integerForm = regexp.MustCompile(`\A-?[0-9]+\z`)

// FuzzBindAgreesWithSchema gives one argument the same value as tokens and as an
// instance of the generated schema: both take it or both refuse it.
func FuzzBindAgreesWithSchema(f *testing.F) {
	for i := range 20 {
		for _, v := range []string{"", "x", "12345", "123456", "0", "-3", "-4", "10", "11", "4294967296", "1.5", "true", "low", "abc", "a,b", "2026-02-02T10:00:00Z", "2026-02-30T10:00:00Z", "é日"} {
			f.Add(uint8(i), v, "")
		}
		f.Add(uint8(i), "a", "b,c")
	}
	c := thing()
	schema := gatewaytest.Schema(f, c.InputSchema())
	arguments := c.Arguments()
	f.Fuzz(func(t *testing.T, which uint8, first, second string) {
		if !utf8.ValidString(first) || !utf8.ValidString(second) {
			t.Skip("tokens are valid UTF-8, which the gateway sees to")
		}
		a := arguments[int(which)%len(arguments)]
		texts := []string{first}
		kind := a.Kind
		if kind == discovery.KindArray {
			kind = a.Item
			if second != "" {
				texts = append(texts, second)
			}
		}
		var values []any
		for _, text := range texts {
			switch {
			case a.Path:
				t.Skip("a schema cannot say where a path leads")
			case kind == discovery.KindDatetime && strings.HasPrefix(text, "0000"):
				t.Skip("the year 0 is refused, which a format cannot say")
			case kind == discovery.KindDatetime && a.Name != "day" && !rfc3339.MatchString(text):
				t.Skip("not the schema's way to write a time")
			case kind == discovery.KindInteger && jsonNumber.MatchString(text) && !integerForm.MatchString(text):
				t.Skip("1.0 is an integer to a schema, and not the form of one in a command")
			}
			values = append(values, jsonForm(kind, text))
		}
		instance := map[string]any{"names": []any{"a"}}
		tokens := []string{}
		switch {
		case a.Positional:
			tokens = append(tokens, append([]string{"--"}, texts...)...)
			instance[a.Name] = values
		case a.Kind == discovery.KindArray:
			for _, text := range texts {
				// A backslash before a comma would be read with it, and
				// needs no escape of its own anywhere else.
				tokens = append(tokens, "--"+a.Name+"="+strings.ReplaceAll(text, ",", `\,`))
			}
			tokens = append(tokens, "--", "a")
			instance[a.Name] = values
		default:
			tokens = append(tokens, "--"+a.Name+"="+first, "--", "a")
			instance[a.Name] = values[0]
		}
		_, bindErr := c.Bind(tokens, time.UTC)
		schemaErr := schema.Validate(instance)
		if (bindErr == nil) != (schemaErr == nil) {
			t.Fatalf("%q\nbinding: %v\nschema of %s: %v", tokens, bindErr, a.Name, schemaErr)
		}
	})
}
