package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/servertest"
)

// On a line that falls silent an agent has what came in time, and a way on that runs.
func TestALineThatFallsSilent(t *testing.T) {
	t.Parallel()
	s := servertest.SharedDovecot(t)
	user := servertest.User("silent")
	var letters [][]byte
	for i := range 60 {
		letters = append(letters, fmt.Appendf(nil, "From: bob@example.org\r\nTo: ann@example.org\r\nSubject: about %d\r\nDate: Mon, 2 Mar 2026 10:00:%02d +0000\r\n\r\n%s", i, i, strings.Repeat("A line of text.\r\n", 100)))
	}
	s.Deliver(t, user, "INBOX", letters...)
	var left atomic.Int64
	left.Store(1 << 40)
	proxy := servertest.NewProxy(t, fmt.Sprintf("localhost:%d", s.IMAPSPort), servertest.ProxyOptions{Lifetime: func() int64 { return left.Load() }, Stalls: true})
	v := newVault(t)
	a := dovecotAccount(s, user)
	a.IMAP.Port = proxy.Port
	v.add(t, a, servertest.Password)
	for line, bytes := range map[string]int64{"mail list --limit 60": 22_000, "mail list --snippet 100": 60_000, "mail search about --limit 50": 60_000, "mail get 60 59 58 57 56 55 54 53 52 51": 22_000} {
		left.Store(1 << 40)
		h := newHouse(t, v)
		h.do(t, "mail list --limit 1", nil) // the ids are known
		left.Store(bytes)
		proxy.Cut()
		start := time.Now()
		var got listData
		a := h.do(t, line+" --timeout 2", &got)
		if took := time.Since(start); took > 4*time.Second || got.Status != "partial" || len(got.Issues) == 0 || len(got.Messages) < 4 || got.NextAction == nil {
			t.Errorf("%s: after %v %s", line, took, a.raw)
			continue
		}
		left.Store(1 << 40)
		if a := h.do(t, got.NextAction.Arguments.Command, nil); !a.Success {
			t.Errorf("%s: %s: %s", line, got.NextAction.Arguments.Command, a.raw)
		}
	}
}
