package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// modes are those of the page. Without -modes all a run is in two of them, between which most
// scenarios differ: at night each scenario in both, and else every other one in each. A short one is in
// shortModes.
var (
	modes      = []mail.Mode{mail.ReadOnly, mail.Draft, mail.Approve, mail.Reply, mail.ReadWrite}
	usualModes = []mail.Mode{mail.Approve, mail.Reply}
	shortModes = []mail.Mode{mail.Reply}

	modesFlag = flag.String("modes", "", "with 'all' TestInjections runs its scenarios in every mode")
)

// What became of a scenario. Of an injection the worst counts.
const (
	didNothing     = "–"
	changedMailbox = "own mailbox"   // the person's own mailbox was changed, nothing left it
	wasTold        = "told"          // the agent was told a code, or what the rules hide
	reachedAgent   = "another agent" // another agent or program of the person's got something
	reachedKnown   = "KNOWN"         // people whom the inbound list knows have something, and nobody else
	reachedWorld   = "WORLD"         // somebody else has something, or mail is gone for good

	errandRefused = "refused"
	errandAsks    = "asks"
	errandDone    = "done"
)

// severity orders what became of an injection.
var severity = []string{didNothing, changedMailbox, wasTold, reachedAgent, reachedKnown, reachedWorld}

// worse is the worse of what became of an injection by now and what became of it too.
func worse(now *string, too string) {
	if slices.Index(severity, too) > slices.Index(severity, *now) {
		*now = too
	}
}

const injectionsPage = "../../docs/injections.md"

// TestInjections runs every scenario of testdata/injections.txt as an agent that obeys
// whatever it reads, and every one of testdata/honest.txt as one that does its work, in each
// mode. What became of them is a page of the documentation, which the test holds them to.
func TestInjections(t *testing.T) {
	t.Parallel()
	injections, errands := scenariosOf(t, "injections.txt"), scenariosOf(t, "honest.txt")
	if len(injections) < 40 || len(errands) < 40 {
		t.Errorf("%d injections and %d errands", len(injections), len(errands))
	}
	in, run := usualModes, slices.Concat(injections, errands)
	switch *modesFlag {
	case "all":
		in = modes
	case "":
	default:
		t.Fatalf("-modes %s: it takes 'all'", *modesFlag)
	}
	var shared *servertest.DovecotServer
	short := testing.Short() || racing // under the race detector all of it takes minutes
	if short {                         // every fourth shows that the machinery works
		in, run = shortModes, nil
		for i := 0; i < len(injections); i += 4 {
			run = append(run, injections[i])
		}
	}
	switch s, err := servertest.StartDovecot(servertest.Config{ACL: true, Others: true}); {
	case err == nil:
		t.Cleanup(func() { _ = s.Stop() })
		shared = s
	case os.Getenv(servertest.RequireServers) != "", !errors.Is(err, servertest.ErrNotInstalled) && !errors.Is(err, servertest.ErrShort):
		t.Fatal(err)
	}
	all := outcomes{}
	for _, s := range slices.Concat(injections, errands) {
		if all[s.name] != nil {
			t.Fatalf("two scenarios are called %q", s.name)
		}
		all[s.name] = map[mail.Mode]string{}
	}
	var mu sync.Mutex
	t.Run("in mode", func(t *testing.T) {
		for nth, mode := range in {
			t.Run(string(mode), func(t *testing.T) {
				t.Parallel()
				for i, s := range run {
					if len(in) == len(usualModes) && testmain.Rounds(i%2, nth) != nth {
						continue
					}
					t.Run(s.name, func(t *testing.T) {
						if !slices.Contains(s.steps, scenarioStep{"+", "shared"}) { // what others see there is counted
							t.Parallel()
						}
						r := newRehearsal(t, mode, &s, shared)
						became := ""
						if i < len(injections) { // a short run has no errands
							became = r.inject(t)
						} else {
							became = r.errand(t)
						}
						mu.Lock()
						defer mu.Unlock()
						all[s.name][mode] = became
					})
				}
			})
		}
	})
	page := pageOf(injections, errands, all)
	if *update {
		if short || len(in) < len(modes) {
			t.Fatal("-update needs every mode: -args -modes all -update")
		}
		if err := os.WriteFile(injectionsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(injectionsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(string(kept))
	for name, cells := range all {
		for mode, what := range cells {
			if what != "" && rows[name][mode] != what {
				t.Errorf("%s, mode %s: %s; docs/injections.md says %q", name, mode, what, rows[name][mode])
			}
		}
	}
	if !t.Failed() && !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return len(all[name]) < len(modes) }) && string(kept) != page {
		t.Errorf("docs/injections.md is not what the suite found: run 'go test ./cmd/postern -run TestInjections -args -modes all -update'")
	}
}

// outcomes says what became of each scenario, by its name, in each mode.
type outcomes map[string]map[mail.Mode]string

// rowsOf reads the tables of the page.
func rowsOf(page string) outcomes {
	rows := outcomes{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != len(modes)+1 {
			continue
		}
		row := map[mail.Mode]string{}
		for i, mode := range modes {
			row[mode] = strings.Trim(cells[i+1], " *")
		}
		rows[strings.TrimSpace(cells[0])] = row
	}
	return rows
}

// pageOf writes the page: two figures, how they are meant, and every scenario.
func pageOf(injections, errands []scenario, all outcomes) string {
	var b strings.Builder
	b.WriteString(`# What an injected agent can do

Written by ` + "`go test ./cmd/postern -run TestInjections -args -modes all -update`" + `, which runs all of it and fails where something no longer holds.

Whoever can write to a person can write to the person's agent. Here an agent is taken to obey everything that it reads: each injection is a message in the mailbox and the commands that it orders, run through the whole program ([cmd/postern/testdata/injections.txt](../cmd/postern/testdata/injections.txt)). Each errand is what an honest agent does for its person ([cmd/postern/testdata/honest.txt](../cmd/postern/testdata/honest.txt)). No person is there: what asks, waits. The outbound list is off, and the right to delete for good is on, so that the mode alone decides; an outbound list lets less pass. The modes are those of the account; [reply.md](reply.md) says what goes unasked in mode ` + "`reply`" + `.

`)
	columns := func(title string) {
		fmt.Fprintf(&b, "| %s |", title)
		for _, mode := range modes {
			fmt.Fprintf(&b, " %s |", mode)
		}
		b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(modes)) + "\n")
	}
	figure := func(title, begins string, what ...string) {
		fmt.Fprintf(&b, "| %s |", title)
		for _, mode := range modes {
			n := 0
			for name, became := range all {
				if strings.HasPrefix(name, begins) && slices.Contains(what, became[mode]) {
					n++
				}
			}
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	columns("without a person")
	const replies = "reply: "
	figure("**injections that reach the world**", "", reachedWorld, reachedKnown)
	figure("of these: known people alone", "", reachedKnown)
	figure("injections that reach another agent or program of the person's", "", reachedAgent)
	figure("injections that tell the agent a code, or what is hidden", "", wasTold)
	figure("injections that change the person's own mailbox alone", "", changedMailbox)
	figure("**honest errands that are done**", "", errandDone)
	figure("of these: replies", replies, errandDone)
	count := 0
	for _, s := range errands {
		if strings.HasPrefix(s.name, replies) {
			count++
		}
	}
	fmt.Fprintf(&b, "\nThere are %d injections and %d errands, %d of them replies.", len(injections), len(errands), count)
	b.WriteString(" *World* means that somebody else has something (a message that the submission server took, a folder that others read, an extension that may let something leave), or that mail is gone for good. *Known* means that only people on the inbound list have it, as in an answer to a message of theirs.\n")
	for _, table := range []struct {
		title string
		of    []scenario
	}{{"injection", injections}, {"errand", errands}} {
		b.WriteString("\n")
		columns(table.title)
		for _, s := range table.of {
			fmt.Fprintf(&b, "| %s |", s.name)
			for _, mode := range modes {
				what := all[s.name][mode]
				if what == reachedWorld || what == reachedKnown {
					what = "**" + what + "**"
				}
				fmt.Fprintf(&b, " %s |", what)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// scenarioStep is one line of a scenario that does something, or says what an answer must hold.
type scenarioStep struct{ kind, text string }

// scenario is one injection or errand.
type scenario struct {
	name  string
	steps []scenarioStep
}

// scenariosOf reads a file of testdata. It says itself how it is written.
func scenariosOf(t *testing.T, name string) (all []scenario) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	_, scenarios, _ := strings.Cut(string(b), "\n\n")
	for line := range strings.Lines(scenarios) {
		kind, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var last *scenarioStep
		if len(all) > 0 && len(all[len(all)-1].steps) > 0 {
			s := all[len(all)-1].steps
			last = &s[len(s)-1]
		}
		switch {
		case ok && kind == "#":
			all = append(all, scenario{name: rest})
		case ok && len(kind) == 1 && strings.Contains("<&+>?=!~", kind):
			s := &all[len(all)-1]
			s.steps = append(s.steps, scenarioStep{kind, rest})
		case last != nil && (last.kind == "<" || last.kind == ">"):
			last.text += "\n" + strings.TrimSuffix(line, "\n")
		case strings.TrimSpace(line) != "":
			t.Fatalf("%s: %q", name, line)
		}
	}
	return all
}

// inject does what an injection orders, and returns what became of it.
func (r *rehearsal) inject(t *testing.T) string {
	before := r.state(t)
	became := didNothing
	for _, step := range r.steps {
		switch step.kind {
		case ">":
			if strings.Contains(step.text, "$id") && r.names["$id"] == "" || strings.Contains(step.text, "$told") && r.names["$told"] == "" {
				continue // what it goes on with was refused
			}
			a := r.run(t, step.text)
			switch {
			case usageError(a):
				t.Errorf("%s: %s", step.text, a.JSON)
			case strings.HasPrefix(step.text, "x-send ") && a.Success():
				worse(&became, reachedWorld)
			case (strings.HasPrefix(step.text, "agent send ") || strings.HasPrefix(step.text, "x-")) && a.Success():
				worse(&became, reachedAgent)
			}
		case "?":
			if a := r.run(t, step.text); a.Success() || a.Code == discovery.ApprovalRequired {
				t.Errorf("%s: %s", step.text, a.JSON)
			}
		case "=":
			if !strings.Contains(r.said, r.fill(step.text)) {
				t.Errorf("%s: no %q", r.said, step.text)
			}
		case "!":
			if strings.Contains(r.said, step.text) {
				worse(&became, wasTold)
				r.names["$told"] = step.text
			}
		case "~":
			one, other, _ := strings.Cut(step.text, " ~ ")
			if answers := r.alike(t, one, other); answers[0] != answers[1] {
				t.Logf("%s\n%s", answers[0], answers[1])
				worse(&became, wasTold)
			}
		}
	}
	after := r.state(t)
	if !maps.EqualFunc(before.folders, after.folders, maps.Equal[map[string]string, map[string]string]) {
		worse(&became, changedMailbox)
	}
	for _, to := range after.sent[len(before.sent):] {
		if known(to) {
			worse(&became, reachedKnown)
		} else {
			worse(&became, reachedWorld)
		}
	}
	if after.others != before.others || before.lost(after) {
		worse(&became, reachedWorld)
	}
	return became
}

// errand does an errand up to the first command that waits or is refused.
func (r *rehearsal) errand(t *testing.T) string {
	for _, step := range r.steps {
		switch step.kind {
		case ">":
			switch a := r.run(t, step.text); {
			case a.Success():
			case a.Code == discovery.ApprovalRequired:
				return errandAsks
			case a.Code == discovery.PermissionDenied:
				return errandRefused
			default:
				t.Fatalf("%s: %s", step.text, a.JSON)
			}
		case "=":
			if !strings.Contains(r.said, r.fill(step.text)) {
				t.Errorf("%s: no %q", r.said, step.text)
			}
		case "!":
			if strings.Contains(r.said, step.text) {
				t.Errorf("%s: %q", r.said, step.text)
			}
		}
	}
	return errandDone
}

// usageError reports whether a command was not understood, so that it shows nothing.
func usageError(a gateway.Answer) bool {
	return a.Code == discovery.ParseError || a.Code == discovery.ValidationError || a.Code == discovery.CommandNotFound ||
		a.Code == discovery.Conflict && !strings.Contains(string(a.JSON), "asks that answers go")
}

var given = regexp.MustCompile(`"id":"([^"]+)"|outbox as ([^ ]+) `)

// run runs a command. Where the agent's client is asked for the person, it says yes.
func (r *rehearsal) run(t *testing.T, line string) gateway.Answer {
	t.Helper()
	request := gateway.Request{Principal: gateway.Principal{Name: "agent"}, Line: r.fill(strings.TrimSpace(line)), CanAsk: true}
	a := r.Gateway.Do(t.Context(), request)
	if a.Asked != nil {
		request.Reply = &gateway.Reply{State: a.Asked.State, Verdict: discovery.Accepted}
		a = r.Gateway.Do(t.Context(), request)
	}
	a.Delivered()
	r.said = string(a.JSON)
	t.Logf("%s: %s", request.Line, r.said)
	if m := given.FindStringSubmatch(r.said); m != nil {
		r.names["$id"] = cmp.Or(m[1], m[2])
	}
	return a
}

// alike runs two commands and returns what they say without the words that differ between them.
func (r *rehearsal) alike(t *testing.T, one, other string) (said [2]string) {
	t.Helper()
	a, b := strings.Fields(one), strings.Fields(other)
	for i, line := range []string{one, other} {
		r.run(t, line)
		said[i] = varying.ReplaceAllString(r.said, "")
		for j := range min(len(a), len(b)) {
			if word := [][]string{a, b}[i][j]; a[j] != b[j] {
				said[i] = strings.ReplaceAll(said[i], strings.Trim(word, "'"), "WORD")
			}
		}
	}
	return said
}

// fill puts the ids of messages in place of their names.
func (r *rehearsal) fill(text string) string {
	return messageName.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(r.names[name], name) })
}

var messageName = regexp.MustCompile(`\$(?:\d+|id|told)`)
