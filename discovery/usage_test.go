package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
)

type wordsArgs struct {
	Words   string             `json:"words,omitempty" acli:"positional,also=query" jsonschema_description:"Words"`
	Since   discovery.Datetime `json:"since,omitempty" acli:"also=start-date|after" form:"must be a date or time; --after takes an id" jsonschema_description:"Since"`
	Subject string             `json:"subject,omitempty" jsonschema_description:"Subject"`
	Sort    string             `json:"sort,omitempty" acli:"short=s" jsonschema:"enum=date,enum=size" jsonschema_description:"Order"`
	Limit   int                `json:"limit,omitempty" acli:"short=n" jsonschema:"minimum=1,maximum=50,default=10" jsonschema_description:"Limit"`
	Key     string             `json:"key,omitempty" acli:"sensitive" jsonschema_description:"Key"`
}

func teachers(t *testing.T) *discovery.Registry {
	t.Helper()
	type none struct{}
	find := discovery.New(discovery.Spec{Path: "mail find", Summary: "Find", Effect: discovery.Read, Examples: []string{"mail find x", "mail find --since 2026-02-01"}},
		func(context.Context, *discovery.Call, *wordsArgs) (none, error) { return none{}, nil })
	type showArgs struct {
		ID    string `json:"id" acli:"positional" jsonschema_description:"Id"`
		Shape bool   `json:"shape,omitempty" jsonschema_description:"Shape"`
	}
	show := discovery.New(discovery.Spec{Path: "mail show", Summary: "Show", Effect: discovery.Read, Examples: []string{"mail show 1"}},
		func(context.Context, *discovery.Call, *showArgs) (none, error) { return none{}, nil })
	secret := discovery.New(discovery.Spec{Path: "mail hidden", Summary: "Hide", Effect: discovery.Admin, Examples: []string{"mail hidden 1"}},
		func(context.Context, *discovery.Call, *showArgs) (none, error) { return none{}, nil })
	r, err := discovery.NewRegistry(discovery.Info{Name: "test"}, find, show, secret)
	must(t, err)
	return r
}

func unhidden(c *discovery.Command) bool { return c.Path != "mail hidden" }

// TestAnErrorTeaches holds usage errors to what they say was meant and to an example that
// binds. An empty example stands for one of the command's own.
func TestAnErrorTeaches(t *testing.T) {
	r := teachers(t)
	for _, c := range testmain.Table[struct {
		Message, Hint, Example string
		Line                   []string
	}](t, "testdata/cases/errors_teach.txt") {
		found, err := r.Resolve(c.Line, unhidden)
		if err == nil {
			var b *discovery.Bound
			if b, err = r.Bind(found.Command, found.Rest, nil, unhidden); err == nil {
				_, err = found.Command.Run(t.Context(), &discovery.Call{Caller: discovery.Caller{Visible: unhidden}}, b)
			}
		}
		f := discovery.AsFault(err)
		if f == nil {
			t.Errorf("%q: no fault", c.Line)
			continue
		}
		if !strings.Contains(f.Message, c.Message) || !strings.Contains(f.Hint, c.Hint) || strings.Contains(f.Hint, "mail hidden") {
			t.Errorf("%q: %q, %q", c.Line, f.Message, f.Hint)
		}
		if len(f.Examples) != 1 || c.Example != "" && f.Examples[0] != c.Example || strings.Contains(f.Examples[0], "hunter2") {
			t.Errorf("%q: examples %q, want %q", c.Line, f.Examples, c.Example)
		}
	}
}

// A word that people try for a command is answered with it, with an example that has the word
// where there is one, is run under no such name, and is told to nobody who does not see the command.
func TestAWordThatIsTriedNamesTheCommand(t *testing.T) {
	type none struct{}
	command := func(path string, effect discovery.Effect, also []string, examples ...string) *discovery.Command {
		return discovery.New(discovery.Spec{Path: path, Also: also, Summary: "Do", Effect: effect, Examples: examples},
			func(context.Context, *discovery.Call, *struct{}) (none, error) { return none{}, nil })
	}
	r, err := discovery.NewRegistry(discovery.Info{Name: "test"},
		command("mail send", discovery.Send, nil, "mail send"), command("mail raw", discovery.Read, nil, "mail raw"), command("mail lend", discovery.Read, nil, "mail lend"),
		command("mail thread", discovery.Read, nil, "mail thread"), command("mail get", discovery.Read, []string{"read", "show"}, "mail get"),
		command("mail list", discovery.Read, []string{"inbox", "sent"}, "mail list", "mail list --folder Sent"),
		command("mail hidden", discovery.Read, []string{"show"}, "mail hidden"), command("agent read", discovery.Read, []string{"read"}, "agent read"))
	must(t, err)
	const rest = " Run 'help' for the available commands."
	for line, want := range map[string][2]string{
		"mail read 1": {"Did you mean 'mail get'?" + rest, "mail get"}, "read 1": {"Did you mean 'mail get' or 'agent read'?" + rest, "mail get"},
		"email show 1": {"Did you mean 'mail get'?" + rest, "mail get"}, "mail Show": {"Did you mean 'mail get'?" + rest, "mail get"},
		"sent": {"Did you mean 'mail list'?" + rest, "mail list --folder Sent"}, "sent 5": {"Did you mean 'mail list'?" + rest, "mail list --folder Sent"}, "inbox": {"Did you mean 'mail list'?" + rest, "mail list"},
		"help read": {"Did you mean 'mail get' or 'agent read'?" + rest, "help mail get"}, "agent inbox": {"Run 'help agent' for its commands.", "help agent"},
		"mail bend": {"Did you mean 'mail lend' or 'mail send'?" + rest, "mail lend"}, "mail sned": {"Did you mean 'mail send'?" + rest, "mail send"},
		"sned": {"Did you mean 'mail send'?" + rest, "mail send"}, "mail row": {"Did you mean 'mail raw'?" + rest, "mail raw"}, "mail xyz": {"Run 'help mail' for its commands.", "help mail"}, "xyz": {rest[1:], "help"},
	} {
		found, err := r.Resolve(strings.Fields(line), unhidden)
		if err == nil { // a page
			b, _ := found.Command.Bind(found.Rest, nil)
			_, err = found.Command.Run(t.Context(), &discovery.Call{Caller: discovery.Caller{Visible: unhidden}}, b)
		}
		if f := discovery.AsFault(err); f == nil || f.Code != discovery.CommandNotFound || f.Hint != want[0] || len(f.Examples) != 1 || f.Examples[0] != want[1] {
			t.Errorf("%s: %+v, want %q", line, f, want)
		}
	}
}

// A day in words is refused with the day to type, in the zone of days without one.
func TestADayInWordsIsAnsweredWithTheDay(t *testing.T) {
	c := teachers(t).Lookup("mail find")
	synctest.Test(t, func(t *testing.T) { // it is midnight of 2000-01-01 in UTC
		west := time.FixedZone("", -3600)
		for text, want := range map[string]string{
			"today": "Did you mean 1999-12-31? Usage:", "Yesterday": "Did you mean 1999-12-30? Usage:", "tomorrow": "Did you mean 2000-01-01? Usage:",
			"monday": "Today is 1999-12-31. Usage:", "3d": "Today is 1999-12-31. Usage:", "2026-02-30": "Today is 1999-12-31. Usage:", "2026/2/1": "Did you mean 2026-02-01? Usage:",
		} {
			_, err := c.Bind([]string{"--since", text}, west)
			if f := discovery.AsFault(err); f == nil || f.Code != discovery.ValidationError || !strings.HasPrefix(f.Hint, want) {
				t.Errorf("%s: %+v, want %q", text, f, want)
			}
		}
	})
}

func TestHelpAmongTheWordsOfAPath(t *testing.T) {
	r := teachers(t)
	for line, want := range map[string]string{
		"--help": "help", "-h": "help", "--help mail find": "mail find", "mail --help find x": "mail find", "mail -h find": "mail find",
		"mail find -h": "mail find", "mail find x --help": "mail find", "mail --help": "", "--help mail": "", "mail -h": "",
	} {
		found, err := r.Resolve(strings.Fields(line), unhidden)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if want == "" {
			if found.Group != "mail" {
				t.Errorf("%s: %+v", line, found)
			}
			continue
		}
		b, err := found.Command.Bind(found.Rest, nil)
		if found.Command.Path != want || err != nil || b.Help != (want != "help") {
			t.Errorf("%s: %s, %+v, %v", line, found.Command.Path, b, err)
		}
	}
}

func TestAccountIsFoundWhetherOrNotTheArgumentsBind(t *testing.T) {
	type args struct {
		ID      string `json:"id,omitempty" acli:"positional,form=id" jsonschema_description:"Id"`
		Account string `json:"account,omitempty" acli:"form=account" jsonschema_description:"Account"`
		Limit   int    `json:"limit,omitempty" jsonschema_description:"Limit"`
	}
	forms := map[string]discovery.Form{
		"id":      {Account: func(id string) string { name, _, _ := strings.Cut(id, "/"); return name }},
		"account": {Account: func(name string) string { return name }},
	}
	c := discovery.New(discovery.Spec{Path: "get", Summary: "Get", Effect: discovery.Read, Examples: []string{"get"}, Forms: forms},
		func(context.Context, *discovery.Call, *args) (struct{}, error) { return struct{}{}, nil })
	must(t, c.Err())
	for line, want := range map[string]string{
		"": "", "--limit x": "", "--account work": "work", "--limit x --account=work": "work", "--nope --account work": "work",
		"work/5": "work", "--nope x work/5 --account": "x", "home/1 --account work y": "home", "-- work/7": "work",
	} {
		if got := c.Account(strings.Fields(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

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
		must(t, gatewaytest.Schema(t, found.Command.OutputSchema(full)).Validate(value))
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
