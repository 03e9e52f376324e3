package commandtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
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
	{regexp.MustCompile(`"latency_ms":\d+`), `"latency_ms":0`},
	{regexp.MustCompile(`"port":\d+`), `"port":993`},
}

// flagsOf are the flags of a message, which the sample server gives in any order.
var flagsOf = regexp.MustCompile(`"flags":\[([^\]]+)\]`)

// said is a line of a file of answers that is run, and by whom: the administrator, or one of
// the words in front of it. ask is an agent whose client asks its person, and shows the question.
// accept, decline and wait are what that person says, to the same line.
var said = regexp.MustCompile(`\A(|agent|ask|accept|decline|wait)> (.*)`)

// drawn are names that are drawn at random: an entry of the outbox is OUTBOX1 in a file that names
// it first, and so on.
var drawn = map[string]*regexp.Regexp{
	"CURSOR": regexp.MustCompile(`(?:--cursor |"next_cursor":")([\w-]{20,})`),
	"OUTBOX": regexp.MustCompile(`\b(01[0-9a-z]{14})\b`),
	"CODE":   regexp.MustCompile(`(?:--code |"code":")([0-9a-z]{8})\b`),
	"DIGEST": regexp.MustCompile(`\b([0-9a-f]{64})\b`),
	"NAME":   regexp.MustCompile(`"([a-z0-9]{26}|[a-z0-9]{32})@`),
	"TODAY":  regexp.MustCompile(`Today is (\d{4}-\d\d-\d\d)`),
	"PART":   regexp.MustCompile(`boundary=\\"(=_[0-9a-f]+)`),
}

// Answers runs such lines of the files that match, each as the caller that open returns for its
// name: what follows a line is the data of its answer, or its error, and is written anew with
// update. Each answer has the schema of its command, and each line that an answer goes on with
// binds.
func Answers(t *testing.T, pattern string, update bool, open func(t *testing.T, name string) *Caller) {
	t.Helper()
	files, err := filepath.Glob(pattern)
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
			c := open(t, strings.TrimSuffix(filepath.Base(file), ".txt"))
			var got bytes.Buffer
			names := map[string]string{} // what was drawn, and the reverse
			state := ""
			for line := range strings.Lines(string(old)) {
				if m := said.FindStringSubmatch(line); m != nil {
					command := m[2]
					for kind := range drawn {
						command = regexp.MustCompile(kind+`\d+`).ReplaceAllStringFunc(command, func(name string) string { return cmp.Or(names[name], name) })
					}
					answer := c.answer(t, m[1], command, &state)
					for kind, form := range drawn {
						for _, m := range form.FindAllStringSubmatch(answer, -1) {
							for n := 1; names[m[1]] == ""; n++ {
								if word := fmt.Sprint(kind, n); names[word] == "" {
									names[m[1]], names[word] = word, m[1]
								}
							}
							answer = strings.ReplaceAll(answer, m[1], names[m[1]])
						}
					}
					got.WriteString(line + answer + "\n")
				} else if strings.HasPrefix(line, "#") {
					got.WriteString(line)
				}
			}
			if update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			was, is := strings.Split(string(old), "\n"), strings.Split(got.String(), "\n")
			for i := range min(len(was), len(is)) {
				if was[i] != is[i] && !update {
					t.Fatalf("%s:%d (if that is meant, run with -update):\n%s\nwant\n%s", file, i+1, is[i], was[i])
				}
			}
		})
	}
}

// answer is an answer without what changes, and the question that comes with it. state is
// that of the last question.
func (c *Caller) answer(t *testing.T, role, line string, state *string) string {
	t.Helper()
	r := gateway.Request{Principal: c.Principal, Line: line, CanAsk: role == "ask"}
	if role != "" {
		r.Principal = gateway.Principal{Name: "agent"}
	}
	if verdict, is := map[string]discovery.Verdict{"accept": discovery.Accepted, "decline": discovery.Declined, "wait": discovery.Unanswered}[role]; is {
		r.Reply = &gateway.Reply{State: *state, Verdict: verdict}
	}
	a := c.Gateway.Do(t.Context(), r)
	question := ""
	if a.Asked != nil {
		*state, question = a.Asked.State, strings.ReplaceAll("\n"+strings.TrimSpace(a.Asked.Text), "\n", "\n| ")
	}
	var e struct {
		Data  json.RawMessage
		Error struct {
			Code, Message, Hint string
			Examples            []string
		}
	}
	if err := json.Unmarshal(a.JSON, &e); err != nil {
		t.Fatal(err)
	}
	if !a.Success() {
		if e.Error.Code == "VALIDATION_ERROR" && len(e.Error.Examples) == 0 {
			t.Errorf("%s: no example", line)
		}
		return e.Error.Code + ": " + e.Error.Message + " " + e.Error.Hint + question
	}
	var data struct {
		More       string
		NextAction struct{ Arguments struct{ Command string } } `json:"next_action"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatal(err)
	}
	command := c.Binds(t, line)
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
			c.Binds(t, next)
		}
	}
	text := string(e.Data)
	for _, x := range changing {
		text = x.what.ReplaceAllString(text, x.by)
	}
	text = flagsOf.ReplaceAllStringFunc(text, func(flags string) string {
		sorted := strings.Split(flagsOf.FindStringSubmatch(flags)[1], ",")
		slices.Sort(sorted)
		return `"flags":[` + strings.Join(sorted, ",") + "]"
	})
	return text
}

// Binds is the command of a line, which must bind.
func (c *Caller) Binds(t *testing.T, line string) *discovery.Command {
	t.Helper()
	tokens, err := gateway.Tokenize(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	found, err := c.Registry.Resolve(tokens, func(*discovery.Command) bool { return true })
	if err != nil || found.Command == nil {
		t.Fatalf("%s: %v", line, err)
	}
	if _, err := found.Command.Bind(found.Rest, time.UTC); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return found.Command
}
