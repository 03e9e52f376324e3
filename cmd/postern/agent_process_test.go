package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/vault/agentmail"
)

// TestAServerMayBeBoundToAnIdentity gives serve --identity, which wins over the
// environment, and refuses to start with one that is none.
func TestAServerMayBeBoundToAnIdentity(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	env := append(v.environment(false), agentIdentityVar+"=p:other")
	for _, c := range []struct {
		env    []string
		args   []string
		status int
		says   string
	}{
		{env, []string{"--identity", "nobody"}, 2, "nobody"},
		{env, []string{"--identity", "p:b\n"}, 2, "project:name"},
		{env, []string{"--identity", "*"}, 2, "project:name"},
		{env, []string{"--identity="}, 2, "project:name"},
		{append(env, agentIdentityVar+"=nobody"), nil, 3, agentIdentityVar},
		{env, []string{"-h"}, 0, "-identity PROJECT:NAME"},
	} {
		status, stdout, stderr := inThisProcess(t, c.env, append([]string{"serve"}, c.args...))
		if status != c.status || len(stdout) > 0 || !strings.Contains(string(stderr), c.says) {
			t.Errorf("serve %q: status %d, %q", c.args, status, stderr)
		}
	}
	serve := func(args ...string) (said map[int]string) {
		c := gatewaytest.Start(t, program(t, env, append([]string{"serve"}, args...)...))
		said = map[int]string{}
		for _, command := range []string{"agent send --from p:other --to p:b --subject x", "agent send --from p:b --to p:other --subject x", "agent read p:other --peek", "agent read p:b --peek"} {
			m := c.Call(command)
			said[*m.ID] = m.Text()
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return said
	}
	for _, c := range []struct {
		args    []string
		allowed map[int]bool
	}{{nil, map[int]bool{1: true, 3: true}}, {[]string{"--identity", "p:b"}, map[int]bool{2: true, 4: true}}} {
		said := serve(c.args...)
		for id := 1; id <= 4; id++ {
			ok, refused := strings.HasPrefix(said[id], `{"success":true`), strings.Contains(said[id], `"PERMISSION_DENIED"`)
			if ok != c.allowed[id] || refused == c.allowed[id] {
				t.Errorf("serve %q, call %d: %s", c.args, id, said[id])
			}
		}
	}
}

// TestAWaitingReadHoldsUpNobody sends a waiting read over MCP and then, on the same
// connection, what it waits for.
func TestAWaitingReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := serving(t, v)
	const waiting = 70 // more than may be at work at once
	for i := range waiting {
		c.Begin(fmt.Sprintf("agent read p:r%d --wait 200s", i))
	}
	sent, status := c.Begin("agent send --from p:a --to p:b --subject direct"), c.Begin("agent status")
	for _, want := range []int{sent, status} {
		if m := c.Next(); *m.ID != want {
			t.Fatalf("answer %d comes before %d: %s", *m.ID, want, m.Line)
		}
	}
	all := c.Begin("agent send --from p:a --to '*' --subject all")
	for id := range waiting {
		if text := c.Answer(id + 1).Text(); !strings.Contains(text, `"subject":"all"`) {
			t.Errorf("waiting read %d: %s", id+1, text)
		}
	}
	if m := c.Answer(all); m.IsError() {
		t.Errorf("%s", m.Line)
	}
	// An answer that was written counts as read.
	if m := c.Call("agent read p:r0"); !strings.Contains(m.Text(), `"data":[]`) {
		t.Errorf("%s", m.Line)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	later := v.opened(t, 2*agentmail.Lease)
	for i := range waiting {
		q := agentmail.Query{Agent: fmt.Sprintf("p:r%d", i)}
		if list, err := agentmail.New(later).Read(t.Context(), q); err != nil || len(list.Messages) != 0 {
			t.Errorf("%s: %d are unread again, %v", q.Agent, len(list.Messages), err)
		}
	}
}

// TestAnAnswerThatNobodyTookIsUnread has the process write to a pipe without a reader.
func TestAnAnswerThatNobodyTookIsUnread(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mail.db")
	send := []string{"agent", "send", "--from", "p:a", "--to", "p:b", "--subject", "x"}
	if status, _, stderr := inThisProcess(t, []string{agentDBVar + "=" + path}, send); status != 0 {
		t.Fatalf("%s", stderr)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := program(t, []string{agentDBVar + "=" + path}, "agent", "read", "p:b")
	c.Stdout = w
	if err := errors.Join(r.Close(), c.Run(), w.Close()); err != nil {
		t.Logf("it ends with %v", err)
	}
	for ahead, want := range map[time.Duration]int{0: 0, 2 * agentmail.Lease: 1} { // until then somebody holds it
		v, err := openMailbox(path, ahead)
		if err != nil {
			t.Fatal(err)
		}
		if in, err := agentmail.New(v).Read(t.Context(), agentmail.Query{Agent: "p:b", Peek: true}); err != nil || len(in.Messages) != want {
			t.Errorf("%v later: %+v, %v", ahead, in, err)
		}
	}
}

// TestFirstUsesAtOnceMakeOneMailbox starts the first processes together.
func TestFirstUsesAtOnceMakeOneMailbox(t *testing.T) {
	t.Parallel()
	env, processes := []string{agentDBVar + "=" + filepath.Join(t.TempDir(), "new", "mail.db")}, 8
	if testing.Short() {
		processes = 4
	}
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			if status, _, failure := asProcess(t, env, []string{"agent", "send", "--from", "p:a", "--to", "p:b", "--subject", "x"}); status != 0 {
				t.Errorf("%s", failure)
			}
		})
	}
	all.Wait()
	if _, list, _ := inThisProcess(t, env, []string{"agent", "read", "p:b"}); bytes.Count(list, []byte(`"id"`)) != processes {
		t.Errorf("%s", list)
	}
}
