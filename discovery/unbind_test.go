package discovery_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/testmain"
)

func TestUnbindWritesWhatWasGivenAndNoMore(t *testing.T) {
	c := thing()
	for _, test := range testmain.Table[struct {
		Want string
		In   []string
	}](t, "testdata/cases/unbound.txt") {
		b, err := c.Bind(test.In, time.UTC)
		if err != nil {
			t.Fatalf("%q: %v", test.In, err)
		}
		if got := strings.ReplaceAll(strings.Join(c.Unbind(b.Args, b.Common), " "), "  ", " '' "); got != test.Want {
			t.Errorf("%q: %s, want %s", test.In, got, test.Want)
		}
	}
}

// FuzzUnbindIsTheInverseOfBind takes any token list that binds, writes it anew, and
// binds that: the arguments must be the same.
func FuzzUnbindIsTheInverseOfBind(f *testing.F) {
	for _, seed := range []string{
		"a\x00-n-3\x00--text=-x", "--\x00-a\x00--", "a\x00--list=x\\,y,z\\\x00--list=\\", "a\x00--ratio=1e-7\x00--numbers=1,2",
		"a\x00--when=2026-02-02T10:30\x00--optional=false", "a\x00--day=2026-02-02\x00--pattern=\x00--secret=", "-\x00--fields=total\x00--timeout=300",
		"a\x00--when=1850-01-01T00:00\x00--list=\\,",
	} {
		f.Add(seed)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	must(f, err)
	c := thing()
	f.Fuzz(func(t *testing.T, joined string) {
		if !utf8.ValidString(joined) {
			t.Skip("tokens are valid UTF-8, which the gateway sees to")
		}
		b, err := c.Bind(strings.Split(joined, "\x00"), zone)
		if err != nil || b.Help {
			return
		}
		tokens := c.Unbind(b.Args, b.Common)
		again, err := c.Bind(tokens[2:], zone)
		if err != nil {
			t.Fatalf("%q: %q does not bind: %v", joined, tokens, err)
		}
		was, is := *b.Args.(*Args), *again.Args.(*Args)
		if !was.When.Equal(is.When.Time) || was.When.DateOnly != is.When.DateOnly {
			t.Fatalf("%q: when %v became %v", joined, was.When, is.When)
		}
		was.When, is.When = discovery.Datetime{}, discovery.Datetime{}
		if !reflect.DeepEqual(was, is) || !reflect.DeepEqual(b.Common, again.Common) {
			t.Fatalf("%q: %q binds to\n%+v, not\n%+v", joined, tokens, is, was)
		}
	})
}

type pickyArgs struct {
	Wide  bool   `json:"wide,omitempty" jsonschema_description:"Wide"`
	Width int    `json:"width,omitempty" acli:"requires=wide" jsonschema:"minimum=1,maximum=9,default=5" jsonschema_description:"Width, with --wide"`
	Word  string `json:"word,omitempty" jsonschema_description:"Word"`
}

func picky(run func(*discovery.Call, *pickyArgs)) *discovery.Command {
	return discovery.New(discovery.Spec{Path: "picky", Summary: "Pick", Effect: discovery.Read, Examples: []string{"picky"}},
		func(_ context.Context, call *discovery.Call, args *pickyArgs) (Result, error) {
			if run != nil {
				run(call, args)
			}
			return Result{}, nil
		})
}

func TestAnOptionThatRequiresAnotherIsRefusedWithoutIt(t *testing.T) {
	c := picky(nil)
	for _, tokens := range [][]string{{"--width", "5"}, {"--width=3", "--word", "wide"}} {
		_, err := c.Bind(tokens, nil)
		if f := discovery.AsFault(err); f == nil || f.Code != discovery.ValidationError || f.Message != "--width works only together with --wide." {
			t.Errorf("%q: %v", tokens, err)
		}
	}
	b, err := c.Bind([]string{"--width", "3", "--wide"}, nil)
	if err != nil || b.Args.(*pickyArgs).Width != 3 {
		t.Errorf("with both: %+v, %v", b, err)
	}
	if b, err = c.Bind(nil, nil); err != nil || b.Args.(*pickyArgs).Width != 5 {
		t.Errorf("default without either: %+v, %v", b, err)
	}
	type bad struct {
		X string `json:"x,omitempty" acli:"requires=y" jsonschema_description:"X"`
	}
	c = discovery.New(discovery.Spec{Path: "x", Summary: "X", Effect: discovery.Read, Examples: []string{"x"}},
		func(context.Context, *discovery.Call, *bad) (Result, error) { return Result{}, nil })
	if c.Err() == nil {
		t.Error("an option may require one that does not exist")
	}
}

func TestAgainKeepsTheCommonOptions(t *testing.T) {
	var got []string
	c := picky(func(call *discovery.Call, args *pickyArgs) {
		next := *args
		next.Word = "it's here"
		got = append(got, call.Again(&next))
	})
	for _, tokens := range [][]string{nil, {"--wide", "--timeout", "7", "--fields", "items.size,total"}} {
		b, err := c.Bind(tokens, nil)
		must(t, err)
		if _, err := c.Run(t.Context(), &discovery.Call{}, b); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`picky --word "it's here"`, `picky --wide --word "it's here" --fields items.size,total --timeout 7`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
