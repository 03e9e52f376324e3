package prompt

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"testing/synctest"
)

// fakeSlowTerminal is a prompt at which lines come when the test says so.
type fakeSlowTerminal struct {
	asked []string
	now   int
	most  int // prompts at once
	types chan string
}

func (p *fakeSlowTerminal) Prompt(text string) (string, error) {
	p.asked = append(p.asked, text)
	p.now++
	p.most = max(p.most, p.now)
	defer func() { p.now-- }()
	line, ok := <-p.types
	if !ok {
		return "", io.EOF
	}
	return line, nil
}

func (*fakeSlowTerminal) AppendHistory(string) {}

// slowly is a conversation at a slow terminal.
func slowly(t *testing.T) (*conversation, *fakeSlowTerminal) {
	t.Helper()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nothing.Close() })
	p := &fakeSlowTerminal{types: make(chan string)}
	t.Cleanup(func() { close(p.types) })
	return &conversation{Options: Options{Stdin: nothing, Stdout: io.Discard, Getenv: func(string) string { return "" }}, prompt: p}, p
}

// What a person types at a question that was given up is no answer to the next one,
// and no two prompts read from the terminal at once.
func TestThereIsOnePromptAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := slowly(t)
		stopped, stop := context.WithCancel(t.Context())
		typed := make(chan string)
		go func() { typed <- c.typed(stopped, "Send this? ") }()
		synctest.Wait()
		stop()
		if got := <-typed; got != "" {
			t.Errorf("typed %q", got)
		}
		if _, err := c.read(stopped, "More? "); !errors.Is(err, context.Canceled) {
			t.Errorf("asked after the end: %v", err)
		}
		go func() { typed <- c.typed(t.Context(), "Send that? ") }()
		synctest.Wait()
		if want := []string{"Send this? "}; !slices.Equal(p.asked, want) {
			t.Errorf("asked %q, want %q", p.asked, want)
		}
		p.types <- "y"
		synctest.Wait()
		p.types <- "n"
		if got := <-typed; got != "n" {
			t.Errorf("typed %q, want the answer to the question", got)
		}
		if want := []string{"Send this? ", "Send that? "}; !slices.Equal(p.asked, want) || p.most != 1 {
			t.Errorf("asked %q, want %q; %d at once", p.asked, want, p.most)
		}
	})
}
