package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/vault/agentmail"
)

// TestTheDefaultLimitIsTwenty is the command contract of read, and AC19.
func TestTheDefaultLimitIsTwenty(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		root := d.send("p:a", "p:b", "0")
		v := d.open(time.Now)
		for i := range 24 {
			if _, err := agentmail.New(v).Send(d.Context(), agentmail.Message{Sender: "p:a", Recipient: "p:b", Subject: fmt.Sprint(i + 1), ReplyTo: root.id()}); err != nil {
				d.Fatal(err)
			}
		}
		if n := len(d.read("p:b", "--peek", "--limit", "25")); n != 25 {
			d.Errorf("--limit 25 gives %d", n)
		}
		if n := len(d.read("p:b", "--thread", root.id(), "--limit", "3")); n != 25 {
			d.Errorf("a whole thread has %d messages", n)
		}
		if first, rest := len(d.read("p:b")), len(d.read("p:b")); first != 20 || rest != 5 {
			d.Errorf("read %d, then %d", first, rest)
		}
		d.fails(2, "read", "p:b", "--limit=-1")
		d.fails(2, "read", "p:b", "--limit=0")
	})
}

// TestWhatIsRefusedTouchesNothing sends and reads in ways that fail: AC9, AC11 to AC13,
// AC24, AC27, AC28 and AC39 to AC41 leave everything as it was.
func TestWhatIsRefusedTouchesNothing(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		m := d.send("p:a", "p:b", "direct")
		d.send("p:a", "*", "all")
		before := d.ok(nil, "read", "p:b", "--all", "--peek")
		counts := fmt.Sprint(d.status())
		for _, args := range [][]string{
			{"read", "p:b", "--fields", "nope"}, {"read", "p:b", "--fields", "id,"}, {"read", "p:b", "--limit", "0"}, {"read", "p:b", "--from", "*"},
			{"read", "p:b", "--thread", "not-a-uuid"}, {"read", "p:b", "--thread", m.id() + "\n"}, {"read", "p:b", "--wait", "1h"}, {"read", "proj:a\n"},
			{"ack", "p:b", "not-a-uuid"}, {"ack", "*", m.id()}, {"ack", "p:b", m.id() + "0"}, {"ack", "p:b", m.id()[1:]},
			{"send", "--from", "p:a", "--to", "p:b"}, {"send", "--from", "*", "--to", "p:b", "--subject", "x"}, {"send", "--from", "p:a", "--to", "p:*", "--subject", "x"},
			{"send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--reply-to", "not-a-uuid"}, {"send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--refs", "{}"},
			{"send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--refs", "[1]"}, {"send", "--from", "p:a", "--to", "p:b", "--subject", "\x1b"},
			{"send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--ttl", "1"}, {"send", "--from", "p:a", "--to", "p:b", "--subject", "x", "--json", "{}"},
			{"status", "--fields", "nope"}, {"status", "--human"}, {"status", "--db", "x"}, {"cleanup", "--all"}, {"nope"},
		} {
			d.fails(2, args...)
		}
		d.fails(5, "ack", "p:b", nobody)
		if after := d.ok(nil, "read", "p:b", "--all", "--peek"); string(after) != string(before) {
			d.Errorf("before: %s\nafter: %s", before, after)
		}
		if got := fmt.Sprint(d.status()); got != counts {
			d.Errorf("status was %s and is %s", counts, got)
		}
		d.reads("direct all", "p:b")
	})
}

// TestHintsOfTheProcessAreForAShell: what a failure says to run is a program's command
// line, and the one for help answers.
func TestHintsOfTheProcessAreForAShell(t *testing.T) {
	t.Parallel()
	d := processDoor(t)
	for _, x := range []struct {
		status int
		hint   string
		args   []string
	}{
		{2, "Usage: postern agent send --from P:NAME", []string{"send", "--from", "p:a"}},
		{2, "Did you mean 'postern agent send'", []string{"sned"}},
		{2, "Usage: postern agent status", []string{"status", "--agent", "*"}},
		{5, "Run 'postern agent read AGENT --all' to", []string{"ack", "p:b", nobody}},
	} {
		if failure := d.fails(x.status, x.args...); !strings.Contains(failure, x.hint) {
			t.Errorf("%v: %s lacks %s", x.args, failure, x.hint)
		}
	}
	if status, stdout, stderr := inThisProcess(t, nil, []string{"help", "agent", "send"}); status != 0 || !strings.Contains(string(stdout), "--reply-to") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// TestValuesMayBeginWithADash where they are attached, and identities hold every
// character of the grammar (TC1).
func TestValuesMayBeginWithADash(t *testing.T) {
	t.Parallel()
	const odd = "0-9-a-z--:9--z-"
	throughBothDoors(t, func(d *door) {
		d.ok(nil, "send", "--from", odd, "--to", odd+"x", "--subject=-x", "--body=-")
		d.fails(2, "send", "--from", odd, "--to", odd+"x", "--subject", "-x")
		if list := d.reads("-x", odd+"x", "--from="+odd); len(list) != 1 || list[0]["body"] != "-" || list[0]["sender"] != odd {
			d.Errorf("%v", list)
		}
	})
}

// TestAReadThatWaits returns what is there at once, what comes when it comes, and an
// empty list when its time is over.
func TestAReadThatWaits(t *testing.T) {
	t.Parallel()
	throughBothDoors(t, func(d *door) {
		d.send("p:a", "p:b", "here")
		d.reads("here", "p:b", "--wait", "200s")
		d.reads("", "p:b", "--wait", "1ms")
		d.reads("here", "p:b", "--wait", "200s", "--all")
		got := make(chan string, 2)
		// Two agents, since what one reader of an inbox has is read for the next.
		for _, who := range [][]string{{"p:v"}, {"p:w", "--from", "p:c", "--peek"}} {
			go func() {
				out, failure, _ := d.run(append([]string{"read", "--wait", "200s", "--fields", "subject"}, who...)...)
				got <- string(out) + failure
			}()
		}
		d.send("p:c", "*", "later")
		for range 2 {
			var list []map[string]string
			if text := <-got; json.Unmarshal([]byte(text), &list) != nil || len(list) != 1 || list[0]["subject"] != "later" {
				d.Errorf("a waiting read says %s", text)
			}
		}
	})
}

// TestNFR3DescribeNeedsNothing but the program: no file, no usable key, no directory
// it could write to.
func TestNFR3DescribeNeedsNothing(t *testing.T) {
	t.Parallel()
	want := processDoor(t).ok(nil, "describe")
	for _, env := range []string{"POSTERN_KEY=garbage", agentDBVar + "=/dev/null/mail.db", "POSTERN_KEY_COMMAND=/no/such/program", agentIdentityVar + "=nobody"} {
		d := processDoor(t, env)
		if got := d.ok(nil, "describe"); string(got) != string(want) {
			d.Errorf("with %s it differs", env)
		}
	}
}
