package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault/agentmail"
)

// TestKilledReadersLoseNothing kills the bare process at random moments of its short
// life. Whatever of an answer did not come out is unread once its lease is over.
func TestKilledReadersLoseNothing(t *testing.T) {
	t.Parallel()
	slow(t, "TestOverMCPWhatWasNotWrittenIsUnreadAgain")
	path := filepath.Join(t.TempDir(), "mail.db")
	messages, kills := 60, testmain.Rounds(10, 25)
	seen := map[string]bool{}
	v, err := openMailbox(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		to := "p:b"
		if i%3 == 1 {
			to = agentmail.Everyone
		}
		m, err := agentmail.New(v).Send(t.Context(), agentmail.Message{Sender: "p:a", Recipient: to})
		if err != nil {
			t.Fatal(err)
		}
		seen[m.ID] = false
	}
	whole := 0
	for range kills {
		c := program(t, []string{agentDBVar + "=" + path}, "agent", "read", "p:b", "--limit", "2")
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(rand.N(200*time.Millisecond), func() { _ = c.Process.Kill() })
		_ = c.Wait() // killed, or done before
		kill.Stop()
		var list []agentmail.Message
		if json.Unmarshal(out.Bytes(), &list) == nil {
			whole++
			for _, m := range list {
				seen[m.ID] = true
			}
		}
	}
	t.Logf("%d of %d answers came out", whole, kills)
	later, err := openMailbox(path, 2*agentmail.Lease)
	if err != nil {
		t.Fatal(err)
	}
	in, err := agentmail.New(later).Read(t.Context(), agentmail.Query{Agent: "p:b", Limit: messages})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range in.Messages {
		seen[m.ID] = true
	}
	for id, was := range seen {
		if !was {
			t.Errorf("%s was lost", id)
		}
	}
	if err := later.Check(t.Context()); err != nil || len(seen) != messages {
		t.Errorf("%d messages, %v", len(seen), err)
	}
}

// FuzzPlainUnicode proves that writing characters in place of their escapes changes no
// value and leaves what steers a terminal escaped.
func FuzzPlainUnicode(f *testing.F) {
	for _, s := range []string{"", "é\u200d\u2028", `\u00e9`, `\\u00e9"`, "\U000e0041\u202e", "\x7f\u009b\u0000", "\ufffd\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		escaped := []byte{'"'}
		for _, r := range s {
			if r > 0xffff {
				escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				escaped = fmt.Appendf(escaped, `\u%04x`, r)
			}
		}
		escaped = append(escaped, '"')
		var want string
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]byte{plain, escaped} {
			var got string
			if err := json.Unmarshal(plainUnicode(in), &got); err != nil || got != want {
				t.Errorf("%q became %q: %v", in, plainUnicode(in), err)
			}
		}
		for _, r := range string(plainUnicode(escaped)) {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Errorf("%U stands in %q", r, plainUnicode(escaped))
			}
		}
	})
}
