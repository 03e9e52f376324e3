package commands_test

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// FuzzEveryCommandBindsBothWays takes any tokens for any command: a refusal is
// complete, and what binds can be written anew and binds to the same, also through
// a command string.
func FuzzEveryCommandBindsBothWays(f *testing.F) {
	list := newRegistry(f).Commands()
	for i, c := range list {
		for _, e := range c.Examples {
			tokens, err := gateway.Tokenize(e)
			must(f, err)
			f.Add(uint8(i), strings.Join(tokens[len(strings.Fields(c.Path)):], "\x00"))
		}
		f.Add(uint8(i), "deny\x00")
		f.Add(uint8(i), "--folder=\x00--uid=1,2\x00--timeout\x00300\x00--fields=a\\,b,c")
		f.Add(uint8(i), "--\x00imap:a:b:1:2\x00-x\x00it's \"q\" \\")
	}
	f.Fuzz(func(t *testing.T, which uint8, joined string) {
		if !utf8.ValidString(joined) {
			t.Skip("tokens are valid UTF-8, which the gateway sees to")
		}
		c := list[int(which)%len(list)]
		bound, err := c.Bind(strings.Split(joined, "\x00"), time.UTC)
		if err != nil {
			if fault := discovery.AsFault(err); fault == nil || fault.Message == "" || fault.Hint == "" || len(fault.Examples) == 0 || !fault.Usage() {
				t.Fatalf("%s %q: incomplete fault %+v", c.Path, joined, err)
			}
			return
		}
		if bound.Help {
			return
		}
		line := discovery.JoinCommand(c.Unbind(bound.Args, discovery.Common{Timeout: bound.Common.Timeout}))
		tokens, err := gateway.Tokenize(line)
		if err != nil {
			if utf8.RuneCountInString(line) > gateway.MaxCommandChars || len(strings.Split(joined, "\x00")) > 80 {
				return // what came as tokens need not fit into one string
			}
			t.Fatalf("%q: %v", line, err)
		}
		again, err := c.Bind(tokens[len(strings.Fields(c.Path)):], time.UTC)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !reflect.DeepEqual(bound.Args, again.Args) || again.Common.Timeout != bound.Common.Timeout {
			t.Fatalf("%s: %+v became %+v", line, bound.Args, again.Args)
		}
	})
}
