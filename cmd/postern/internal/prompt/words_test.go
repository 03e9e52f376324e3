package prompt

import (
	"context"
	"strings"
	"testing"

	"github.com/postern-mail/postern/commands"
	"github.com/postern-mail/postern/internal/testmain"
)

// The inbox goes on with the word that it began with, and so does a search.
func TestThePromptSpeaksInItsWords(t *testing.T) {
	p := newPerson(t, sendsToAll)
	for _, c := range testmain.Table[struct {
		Lines string
		Says  []string
	}](t, "testdata/cases/words.txt") {
		out := p.types(strings.Split(c.Lines, "|")...)
		rest := oneLine(out)
		for _, words := range c.Says {
			_, after, found := strings.Cut(rest, words)
			if rest = after; !found || strings.Contains(out, "--cursor") {
				t.Errorf("%s: no %q, or a cursor, in\n%s", c.Lines, words, out)
			}
		}
	}
	p.Accounts = func(context.Context) ([]string, error) { return []string{"demo", "work"}, nil }
	if out := p.types("inbox --account demo"); !strings.Contains(out, "Read one: read imap:demo:INBOX:1:50") {
		t.Errorf("of several accounts the one that was named: %s", out)
	}
}

// What 'undo' takes back is not forgotten for a word that was mistyped.
func TestAMistypedWordLosesNothing(t *testing.T) {
	p := newPerson(t, sendsToAll)
	out := p.types("archive 50", "archive abc", "trash 4000", "undo", "undo", "undo --since 2020-01-01", "search --limit 1 -- plan", "inbox x", "save", "open 22 9", "save 45", "save 22 ~/none", "repyl 45", "delete 50", "move 50", "45", "?")
	for _, want := range []string{"In INBOX: imap:demo:INBOX:1:51. 1 message taken back.", "There is nothing to take back.", "Nothing was taken back.", "1 message of ", "save ID [PART] [PLACE]", "no such attachment", "The message has no attachment.", "is no directory",
		"Or the word 'reply' of this prompt?", "Or the word 'trash' of this prompt?", "Or the word 'archive' of this prompt?", "Or the word 'read' of this prompt?", "Usage: <command>"} {
		if !strings.Contains(oneLine(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// Messages of several folders that were read at once are marked as read, and who reads them is
// told so once.
func TestWhatWasReadIsMarked(t *testing.T) {
	p := newPerson(t, sendsToAll)
	p.types("archive 50", "mail list --folder Archive --limit 1")
	out := p.types("read 49 48 22 "+p.complete.ids("message_id")[0], "read 49")
	if !strings.Contains(out, "Your sign-in code") || strings.Count(out, "marked as read") != 1 || !strings.Contains(out, "\n3 messages marked as read.\npostern> ") {
		t.Fatal(out)
	}
	unread, _ := resultOf[*commands.MailListResult](t.Context(), p.conversation, "mail list --unread --limit 100")
	for _, m := range unread.Messages {
		if strings.HasSuffix(m.ID, ":49") || strings.HasSuffix(m.ID, ":48") {
			t.Errorf("%s is unread", m.ID)
		}
	}
	if unread, ok := resultOf[*commands.MailListResult](t.Context(), p.conversation, "mail list --unread --folder Archive"); !ok || len(unread.Messages) > 0 {
		t.Errorf("unread in the archive: %v", unread)
	}
}

// Help with a word is its page, in a shell as it is typed there; so is what is shown where the
// word lacks something.
func TestEveryWordHasAPage(t *testing.T) {
	c := talk(t)
	for _, w := range words() {
		for _, line := range []string{"help " + w.name, w.name + " -h", w.name + strings.Repeat(" x", w.high+1)} {
			if w.high < 0 && strings.HasSuffix(line, w.name) {
				line = "help " + w.name
			}
			out := c.at()
			found, args, ok := wordOf(line)
			if !ok || found.name != w.name {
				t.Fatalf("%q is %+v", line, found)
			}
			c.runWord(t.Context(), found, args)
			for _, x := range append(w.examples, "Usage: "+w.name) {
				if !strings.Contains(out.String(), x) {
					t.Errorf("%q does not say %q: %s", line, x, out.String())
				}
			}
			if asks := AsksPage(args); (c.status == 0) != asks {
				t.Errorf("%q has status %d", line, c.status)
			}
		}
		for _, x := range w.examples {
			if found, args, ok := wordOf(x); !ok || len(args) < found.low || found.high >= 0 && len(args) > found.high {
				t.Errorf("the example %q cannot be typed", x)
			}
		}
	}
	c.Shell = true
	if page := c.look().Render(words()[1].page()); !strings.Contains(page, "Usage: postern read ID...") || !strings.Contains(page, "  postern read 50\n") {
		t.Error(page)
	}
}
