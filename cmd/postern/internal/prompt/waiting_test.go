package prompt

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
)

// typist types lines and notes what was written up to each prompt.
type typist struct {
	lines   []string
	written *strings.Builder
}

func (p *typist) Prompt(text string) (string, error) {
	p.written.WriteString(text)
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	p.written.WriteString(line + "\n")
	return line, nil
}

func (*typist) AppendHistory(string) {}

// A person without the administrator's key is told what waits, when that has changed, and
// 'approve' decides as the administrator.
func TestThePromptSaysWhatWaits(t *testing.T) {
	c := talk(t)
	admin := c.Door
	c.Principal = gateway.Principal{Name: "person"}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nothing.Close() })
	c.Stdin = nothing
	opened, ended := 0, 0
	c.Administrator = func(context.Context) (Door, func(), error) { opened++; return admin, func() { ended++ }, nil }
	sit := func(lines ...string) string {
		var out strings.Builder
		c.Stdout, c.prompt = &out, &typist{lines, &out}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const send = "mail send --to ann@example.com --subject Hi --body x"
	for _, subject := range []string{"One", "Two"} {
		c.run1(t, strings.Replace(send, "Hi", subject, 1))
	}
	const two, one = "2 messages wait for you: 'approve' shows them.\n", "1 message waits for you: 'approve' shows it.\n"
	got := sit("version", send, "approve", "y", "n", "", "approve nothing")
	for _, want := range []string{two + "postern> version", "3 messages wait for you", "postern> approve", "1 of 3", "One", "It was sent", "2 of 3", "is rejected", "3 of 3", "Still waiting: 1.", one + "postern> approve nothing", "Nothing that waits has this id"} {
		_, rest, found := strings.Cut(got, want)
		if !found {
			t.Fatalf("%q is not among the rest:\n%s", want, got)
		}
		got = rest
	}
	if strings.Contains(got, "wait") || opened != 2 || ended != 2 {
		t.Errorf("the administrator's door was opened %d times and closed %d times; at the end: %s", opened, ended, got)
	}
	if got := sit("approve", "y", "version"); strings.HasPrefix(got, "1 message") || strings.Contains(got, "wait for") {
		t.Errorf("what was said is said again: %s", got)
	}
	c.Administrator = func(context.Context) (Door, func(), error) {
		return Door{}, nil, &discovery.Fault{Code: discovery.PermissionDenied, Message: "No key.", Hint: "Get one."}
	}
	for _, line := range []string{"approve", "approve nothing"} { // nobody needs a key for that
		if got := sit(line); !strings.Contains(got, "\nNothing ") || strings.Contains(got, "key") {
			t.Errorf("nothing waits: %s", got)
		}
	}
	c.run1(t, send)
	if got := sit("approve"); !strings.Contains(got, "No key.\nGet one.\npostern> ") {
		t.Errorf("without a key: %s", got)
	}
	c.Waiting, c.announced = nil, 7
	if got := sit("version"); !strings.HasPrefix(got, "postern> ") {
		t.Errorf("nothing counts: %s", got)
	}
	c.Waiting = func(_ context.Context) (int, error) { return 3, errors.New("no vault") }
	if got := sit("version"); !strings.HasPrefix(got, "postern> ") {
		t.Errorf("it cannot be counted: %s", got)
	}
	c.Waiting, c.JSON = admin.Waiting, true
	if got := sit("approve"); !strings.Contains(got, "COMMAND_NOT_FOUND") {
		t.Errorf("a script's answers: %s", got)
	}
}
