package prompt

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
)

// fakeTerminal types lines and notes what was written up to each prompt.
type fakeTerminal struct {
	lines   []string
	written *strings.Builder
}

func (p *fakeTerminal) Prompt(_ context.Context, text string, _ aids) (string, error) {
	p.written.WriteString(text)
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	p.written.WriteString(line + "\n")
	return line, nil
}

func (*fakeTerminal) Discard()              {}
func (*fakeTerminal) Aside() (again func()) { return func() {} }

// A person without the administrator's key is told what waits, when that has changed, and
// 'approve' decides as the administrator.
func TestThePromptSaysWhatWaits(t *testing.T) {
	c := talk(t)
	admin := c.Door
	c.Principal = gateway.Principal{Name: "person"}
	opened, ended := 0, 0
	c.Administrator = func(context.Context) (Door, func(), error) { opened++; return admin, func() { ended++ }, nil }
	sit := func(lines ...string) string {
		out := c.at(lines...)
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
	long := strings.Repeat("too long ", 30)
	got := sit("version", send, "approve", "sure", "y", "n", long, "Ask her first", "", "approve nothing")
	for _, want := range []string{two + "postern> version", "3 messages wait for you", "postern> approve", "1 of 3", "One", "That is no answer", "It was sent", "2 of 3", "Why, for person to read? Enter for no reason: " + long, "must be at most 200 characters long", "Why, for person to read?", "is rejected", "3 of 3", "Still waiting: 1.", one + "postern> approve nothing", "Nothing that waits has this id"} {
		_, rest, found := strings.Cut(got, want)
		if !found {
			t.Fatalf("%q is not among the rest:\n%s", want, got)
		}
		got = rest
	}
	if strings.Contains(got, "wait") || opened != 2 || ended != 2 {
		t.Errorf("the administrator's door was opened %d times and closed %d times; at the end: %s", opened, ended, got)
	}
	if r, ok := resultOf[*commands.OutboxListResult](t.Context(), c, "outbox list --state rejected"); !ok || r.Messages[0].Why != "Ask her first" {
		t.Errorf("what was refused does not say why: %v", r)
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
	for _, waiting := range []func(context.Context) (int, error){nil, func(context.Context) (int, error) { return 3, errors.New("no vault") }} {
		c.Waiting, c.announced = waiting, 7
		if got := sit("version"); !strings.HasPrefix(got, "postern> ") {
			t.Errorf("it cannot be counted: %s", got)
		}
	}
	c.Waiting, c.JSON = admin.Waiting, true
	if got := sit("approve"); !strings.Contains(got, "COMMAND_NOT_FOUND") {
		t.Errorf("a script's answers: %s", got)
	}
}

// Who says yes at the same moment as somebody else learns what became of the message.
func TestTwoPersonsDecideAtOnce(t *testing.T) {
	for _, yes := range []string{"y", "n"} {
		taken, taking := make(chan struct{}), make(chan struct{})
		d := newPerson(t, func(a *mail.Account) {
			asksAboutAll(a)
			a.SMTP = letterServer(t, func() string { close(taken); <-taking; return "250 taken\r\n" })
		})
		d.run1(t, "mail send --to ann@example.com --subject Hi --body x")
		ids, _ := d.waiting(t.Context(), "")
		entry, _ := d.entry(t.Context(), ids[0])
		first := make(chan gateway.Answer)
		go func() { first <- d.do(t.Context(), approval(entry)) }()
		<-taken
		go func() { // until the second is refused
			for !strings.Contains(string(d.do(t.Context(), "audit list --limit 5").JSON), `"CONFLICT"`) {
				time.Sleep(time.Millisecond)
			}
			close(taking)
		}()
		out := d.at(yes)
		d.said(t.Context(), map[string]string{"y": approval(entry), "n": command("outbox", "reject", ids[0])}[yes], entry)
		if got := out.String(); got != "Somebody else decided about it. It was sent.\n" {
			t.Errorf("%s: %s", yes, got)
		}
		if a := <-first; !a.Success() {
			t.Errorf("%s", a.JSON)
		}
	}
}
