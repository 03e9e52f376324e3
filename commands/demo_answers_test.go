package commands_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
)

// changing are what differs from run to run.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`--cursor [\w-]+`), "--cursor CURSOR"},
	{regexp.MustCompile(`"next_cursor":"[\w-]+"`), `"next_cursor":"CURSOR"`},
	{regexp.MustCompile(`"latency_ms":\d+`), `"latency_ms":0`},
	{regexp.MustCompile(`"port":\d+`), `"port":993`},
}

// flagsOf are the flags of a message, which the sample server gives in any order.
var flagsOf = regexp.MustCompile(`"flags":\[([^\]]+)\]`)

// TestAnswersOnTheDemo runs the lines that begin with > in the files of testdata/demo on the
// sample servers: what follows a line is the data of its answer, or its error. Each answer has
// the schema of its command, and each line that an answer goes on with binds.
func TestAnswersOnTheDemo(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/demo/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b := newDemo(t)
			var got bytes.Buffer
			for line := range strings.Lines(string(old)) {
				if command, is := strings.CutPrefix(line, "> "); is {
					got.WriteString(line + b.demoAnswer(t, strings.TrimSpace(command)) + "\n")
				} else if strings.HasPrefix(line, "#") {
					got.WriteString(line)
				}
			}
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			was, is := strings.Split(string(old), "\n"), strings.Split(got.String(), "\n")
			for i := range min(len(was), len(is)) {
				if was[i] != is[i] && !*update {
					t.Fatalf("%s:%d (if that is meant, run with -update):\n%s\nwant\n%s", file, i+1, is[i], was[i])
				}
			}
		})
	}
}

// demoAnswer is an answer without what changes.
func (b *fixture) demoAnswer(t *testing.T, line string) string {
	t.Helper()
	a := b.gateway.Do(t.Context(), gateway.Request{Principal: b.principal, Line: line})
	var e struct {
		Data  json.RawMessage
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatal(err)
	}
	if !a.Success() {
		return e.Error.Code + ": " + e.Error.Message + " " + e.Error.Hint
	}
	var data struct {
		More       string
		NextAction struct{ Arguments struct{ Command string } } `json:"next_action"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatal(err)
	}
	command := b.binds(t, line)
	if !strings.Contains(line, "--fields") {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Data))
		if err != nil {
			t.Fatal(err)
		}
		if err := gatewaytest.Schema(t, command.OutputSchema(strings.Contains(line, "--full"))).Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", line, err, e.Data)
		}
	}
	for _, next := range []string{data.More, data.NextAction.Arguments.Command} {
		if next != "" {
			b.binds(t, next)
		}
	}
	text := string(e.Data)
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.by)
	}
	text = flagsOf.ReplaceAllStringFunc(text, func(flags string) string {
		sorted := strings.Split(flagsOf.FindStringSubmatch(flags)[1], ",")
		slices.Sort(sorted)
		return `"flags":[` + strings.Join(sorted, ",") + "]"
	})
	return text
}

// binds is the command of a line, which must bind.
func (b *fixture) binds(t *testing.T, line string) *discovery.Command {
	t.Helper()
	tokens, err := gateway.Tokenize(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	found, err := b.registry.Resolve(tokens, everything)
	if err != nil || found.Command == nil {
		t.Fatalf("%s: %v", line, err)
	}
	if _, err := found.Command.Bind(found.Rest, time.UTC); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return found.Command
}
