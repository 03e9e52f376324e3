package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

type numbersArgs struct {
	N int `json:"n,omitempty" jsonschema:"minimum=1,maximum=9,default=5" jsonschema_description:"How many"`
}

func numbers(t *testing.T) *discovery.Registry {
	t.Helper()
	r, err := discovery.NewRegistry(discovery.Info{Name: "t", Version: "1", Description: "T"},
		discovery.New(discovery.Spec{Path: "count", Summary: "Count", Effect: discovery.Write, Examples: []string{"count --n 3"}},
			func(context.Context, *discovery.Call, *numbersArgs) (struct{}, error) { return struct{}{}, nil }))
	must(t, err)
	return r
}

// TestHelpIsValidUnderItsOwnSchema holds what help answers of a command with bounds
// to the output schema that schema answers of help.
func TestHelpIsValidUnderItsOwnSchema(t *testing.T) {
	r := numbers(t)
	found, err := r.Resolve([]string{"help", "count"}, everything)
	must(t, err)
	bound, err := found.Command.Bind(found.Rest, nil)
	must(t, err)
	result, err := found.Command.Run(context.Background(), &discovery.Call{Caller: discovery.Caller{Visible: everything}}, bound)
	must(t, err)
	for _, full := range []bool{true, false} {
		b, err := json.Marshal(found.Command.View(result, full))
		must(t, err)
		if !strings.Contains(string(b), `"effect":"write"`) || !strings.Contains(string(b), `"default":5`) {
			t.Errorf("full %v: %s", full, b)
		}
		for _, part := range []string{`"minimum":1`, `"maximum":9`, `"--timeout"`, `"usage":"count [--n 5]"`} {
			if strings.Contains(string(b), part) != full {
				t.Errorf("full %v: %s in %s", full, part, b)
			}
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		must(t, err)
		if err := gatewaytest.Schema(t, found.Command.OutputSchema(full)).Validate(value); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsRepeatNoControlCharacters(t *testing.T) {
	r := numbers(t)
	const hostile = "x\x1b[31m\u202e\u200b\x00"
	_, err := r.Resolve([]string{hostile}, everything)
	faults := []error{err}
	found, err := r.Resolve([]string{"count"}, everything)
	must(t, err)
	for _, token := range []string{"--" + hostile, "-\x1b"} {
		_, err := found.Command.Bind([]string{token}, nil)
		faults = append(faults, err)
	}
	for _, err := range faults {
		f := discovery.AsFault(err)
		if f == nil {
			t.Fatalf("error %v", err)
		}
		if strings.ContainsFunc(f.Message+f.Hint, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q", f.Message+f.Hint)
		}
	}
}

// TestRootHelpFoldsExtensions fills the overview with more names than it has room
// for: they become one line, and everything else stays.
func TestRootHelpFoldsExtensions(t *testing.T) {
	for _, n := range []int{1, 20, 60} {
		list := []*discovery.Command{thing()}
		for i := range n {
			list = append(list, discovery.Define(discovery.Spec{Path: fmt.Sprintf("x-extension-number-%d", i), Summary: "Something useful that takes some words to say", Effect: discovery.Read,
				Examples: []string{"x"}}, discovery.Definition{}, echo))
		}
		r, err := discovery.NewRegistry(discovery.Info{Name: "test", Description: "A description"}, list...)
		must(t, err)
		help := r.Lookup("help")
		answer, err := help.Run(t.Context(), &discovery.Call{Caller: discovery.Caller{Visible: everything}}, &discovery.Bound{Args: &discovery.HelpArgs{}})
		must(t, err)
		raw, err := json.Marshal(help.View(answer, false))
		if err != nil || len(raw) > 2900 || !strings.Contains(string(raw), `"thing do"`) || !strings.Contains(string(raw), `"version"`) {
			t.Errorf("%d: %d bytes, %v: %s", n, len(raw), err, raw)
		}
		if folded := strings.Contains(string(raw), fmt.Sprintf(`"name":"x-…","description":"%d commands of extensions; `, n)); folded != (n == 60) {
			t.Errorf("%d: %s", n, raw)
		}
	}
}
