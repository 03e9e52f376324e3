package mcpserve

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-mail/postern/gateway"
)

// Each notification carries the token of its call and more than the one before, whatever
// the command counts.
func TestProgressGoesToWhoAskedUntilCancelled(t *testing.T) {
	for name, token := range map[string]string{"string": `"t"`, "number": `7`} {
		bubble(t, name, func(t *testing.T) {
			s := startInitialized(t, fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
				if c.Progress == nil {
					return gateway.Answer{JSON: []byte("silent")}
				}
				c.Progress(1, 3, "one of three")
				c.Progress(2, 0, "")
				c.Progress(2, 0, "as many")
				c.Progress(1, 2, "fewer")
				if c.Line == "forever" {
					<-ctx.Done()
					c.Progress(3, 3, "too late")
				}
				return gateway.Answer{JSON: []byte("done")}
			}), Server{})
			s.send(callLine(1, "x"))
			if got := s.one(); !strings.Contains(got, "silent") {
				t.Errorf("not asked: %s", got)
			}
			ask := func(id int, command string) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cli","arguments":{"command":%q},"_meta":{"progressToken":%s}}}`, id, command, token)
			}
			var want []string
			for _, told := range []string{`"message":"one of three","progress":1,"total":3`, `"progress":2`, `"message":"as many","progress":2.001`, `"message":"fewer","progress":2.002`} {
				want = append(want, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+token+`,`+told+`}}`)
			}
			want = append(want, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}`)
			s.send(ask(2, "x"))
			if got := s.take(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			s.send(ask(3, "forever"))
			if got := s.take(); strings.Join(got, "\n") != strings.Join(want[:4], "\n") {
				t.Errorf("got %q", got)
			}
			s.send(cancelLine(3))
			if got := s.take(); len(got) != 0 {
				t.Errorf("after the cancellation: %q", got)
			}
		})
	}
}
