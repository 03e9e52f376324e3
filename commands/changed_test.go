package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
)

var batches = map[string]string{"ack": "", "mark-read": "", "flags": ` --add '\Flagged'`, "copy": " --to Archive", "move": " --to Archive", "trash": "", "delete": " --confirm"}

func TestMessagesOfABatchAreNamedInTwoWays(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite), work("other", mail.ReadWrite))
	b.OK(t, "config set default_account other")
	many, named := make([]string, 101), make([]string, 90)
	for i := range many {
		many[i] = fmt.Sprint(i + 1)
	}
	for i := range named {
		named[i] = ref(uint32(i + 1)).String()
	}
	for verb, rest := range batches {
		b.OK(t, "mail "+verb+" imap:work:INBOX:7:3 imap:work:inbox:7:1"+rest)
		want := []mail.Ref{ref(3), ref(1)}
		want[1].Folder = "inbox"
		if b.account != "work" || !slices.Equal(b.refs, want) || b.calls[len(b.calls)-1] != verb {
			t.Errorf("%s by id: %s %v", verb, b.account, b.refs)
		}
		b.OK(t, "mail "+verb+" --folder 'a,b' --uid 3,1 --uid 2"+rest)
		want = nil
		for _, u := range []uint32{3, 1, 2} {
			want = append(want, mail.Ref{Protocol: mail.IMAP, Account: "other", Folder: "a,b", UID: u})
		}
		if b.account != "other" || !slices.Equal(b.refs, want) {
			t.Errorf("%s by UID: %s %v", verb, b.account, b.refs)
		}
		if b.OK(t, "mail "+verb+" --uid "+strings.Join(many[:100], ",")+rest); len(b.refs) != 100 || b.refs[0].Folder != "INBOX" {
			t.Errorf("%s: %d messages of %s", verb, len(b.refs), b.refs[0].Folder)
		}
		if b.OK(t, "mail "+verb+" "+strings.Join(named, " ")+rest); len(b.refs) != 90 {
			t.Errorf("%s: %d messages by id", verb, len(b.refs))
		}
		calls := len(b.calls)
		for args, says := range map[string]string{
			"":                                "No message is named",
			" --folder INBOX":                 "No message is named",
			" imap:work:INBOX:7:3 --uid 3":    "named twice",
			" imap:work:INBOX:7:3 --folder x": "named twice",
			" imap:work:INBOX:7:3 imap:other:INBOX:7:4": "not all of one account and one folder",
			" imap:work:INBOX:7:3 imap:work:a:7:4":      "not all of one account and one folder",
			" imap:work:INBOX:7:3 pop3:work:abc":        "not all of one account and one folder",
			" imap:work:INBOX:7:0":                      "malformed",
			" imap:work:INBOX:7:3 --account other":      "another account",
			" --uid " + strings.Join(many, ","):         "at most 100",
			" --uid 0":                                  "between 1",
		} {
			b.Fails(t, "mail "+verb+args+rest, discovery.ValidationError, says)
		}
		if len(b.calls) != calls {
			t.Errorf("%s was done all the same", verb)
		}
	}
}

func TestABatchOfWhichSomeFailIsPartial(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	issue := mail.Issue{Kind: mail.KindNotFound, Stage: "fetch", Message: "There is no such message.", UID: 9, MessageID: ref(9).String()}
	for verb, rest := range batches {
		line := "mail " + verb + " --uid 3,9" + rest
		for status, c := range map[string]mailbox.Changed{
			"ok":      {Messages: []mailbox.ChangedMessage{{Ref: ref(3)}, {Ref: ref(9)}}},
			"partial": {Messages: []mailbox.ChangedMessage{{Ref: ref(3), Flags: []string{}}}, Issues: []mail.Issue{issue}},
			"failed":  {Issues: []mail.Issue{issue}},
		} {
			b.changed = c
			e := b.OK(t, line)
			if e.Data["status"] != status || len(e.Data["messages"].([]any)) != len(c.Messages) || len(e.Data["issues"].([]any)) != len(c.Issues) {
				t.Errorf("%s: %v, want %s", line, e.Data, status)
			}
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	for args, says := range map[string]string{
		"--add " + strings.Repeat("x", 65):                           "at most 64",
		"--add " + strings.TrimSuffix(strings.Repeat("x,", 21), ","): "at most 20",
	} {
		b.Fails(t, "mail flags --uid 1 "+args, discovery.ValidationError, says)
	}
	for _, args := range []string{`--remove '\Deleted'`, `--add '$Forwarded'`, `--add '\Seen' --remove project-x`, "--add " + strings.Repeat("x", 64)} {
		b.OK(t, "mail flags --uid 1 "+args)
	}
	// A system flag needs no backslash, which the tokenizer drops outside quotes.
	for _, args := range []string{"--add flagged --remove Seen", `--add \Flagged --remove \seen`, `--add '\flagged' --remove '\Seen'`} {
		if b.OK(t, "mail flags --uid 1 "+args); !slices.Equal(b.add, []string{`\Flagged`}) || !slices.Equal(b.remove, []string{`\Seen`}) {
			t.Errorf("%s: %q %q", args, b.add, b.remove)
		}
	}
}

func TestDeleteHasToBeMeant(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	for _, line := range []string{"mail delete --uid 1", "mail delete --uid 1 --confirm=false", "mail delete imap:work:INBOX:7:1"} {
		e := b.Fails(t, line, discovery.ValidationError, "--confirm")
		if len(e.Error.Examples) == 0 || !strings.HasSuffix(e.Error.Examples[0], " --confirm") {
			t.Errorf("%s: examples %q", line, e.Error.Examples)
		}
	}
	if len(b.calls) != 0 {
		t.Errorf("it was done: %q", b.calls)
	}
	b.OK(t, "mail delete --uid 1 --confirm")
	if !slices.Equal(b.calls, []string{"delete"}) {
		t.Errorf("%q", b.calls)
	}
}

// What changes a mailbox counts by its messages; an acknowledgement changes none.
func TestChangedMessagesAreCounted(t *testing.T) {
	b := newFixture(t, nil, work("work", mail.ReadWrite))
	left := 6
	b.deps.TakeChanges = func(_ context.Context, principal string, n int) (time.Duration, error) {
		if principal != "admin" || n > left {
			return 90 * time.Second, nil
		}
		left -= n
		return 0, nil
	}
	for verb, rest := range batches {
		left = 3
		line := "mail " + verb + " --uid 3,4" + rest
		if b.OK(t, line); verb == "ack" && left != 3 || verb != "ack" && left != 1 {
			t.Errorf("%s: %d are left of 3", line, left)
		}
		if calls := len(b.calls); verb != "ack" {
			if e := b.Fails(t, line, discovery.RateLimited, "Wait 90 s"); !strings.Contains(e.Error.Message, "None was changed") || left != 1 || len(b.calls) != calls {
				t.Errorf("%s: %+v, %d are left", line, e.Error, left)
			}
		}
	}
	b.Do(t, "account edit work --destroy off")
	left = 3
	if b.Do(t, "mail delete --uid 3,4 --confirm"); left != 3 {
		t.Errorf("a deletion that may not be counts: %d are left of 3", left)
	}
}
