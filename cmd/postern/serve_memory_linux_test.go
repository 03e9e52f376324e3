package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/servertest"
)

// maxResident is what a server may use, in kB.
const maxResident = 60 << 10

// peak is the most memory a process has had resident, in kB.
func peak(t testing.TB, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kB int
		if n, _ := fmt.Sscanf(s.Text(), "VmHWM: %d kB", &kB); n == 1 {
			return kB
		}
	}
	t.Fatal("no VmHWM in the process's status")
	return 0
}

// BenchmarkServeMemory works with a folder of 200,000 messages through the program
// as a process, and fails when that ever had more than 60 MB resident. It measures
// memory and not time; it is a benchmark because the race detector would count.
func BenchmarkServeMemory(b *testing.B) {
	s := servertest.Dovecot(b, servertest.Config{Storage: servertest.MDBox})
	const n = 200_000
	servertest.Fill(b, s, "ann", "INBOX", n)
	v := newVault(b)
	a := dovecotAccount(s, "ann")
	a.Mode = "RW"
	v.add(b, a, servertest.Password)
	c := serving(b, v)
	call := func(commands ...string) {
		b.Helper()
		for _, command := range commands {
			c.Begin(command)
		}
		for range commands {
			if m := c.Next(); !strings.Contains(m.Text(), `"success":true`) {
				b.Fatalf("%q: %.500s", commands, m.Line)
			}
		}
	}
	for b.Loop() {
		call("mail list", "mail list --limit 500 --full", "mail folders --counts", "mail list --unread --limit 500",
			"mail search --subject '#1999' --limit 50 --snippet 200", "mail thread --folder INBOX --uid 100000",
			"mail list --since 2019-02-01 --until 2019-02-02", "mail list --new", "mail mark-read --folder INBOX --uid 5")
		var gets []string
		for i := range 100 {
			gets = append(gets, fmt.Sprintf("mail get --folder INBOX --uid %d --html --attachment-text", 1+i*(n/100)))
		}
		call(gets...)
	}
	kB := peak(b, c.Process.Process.Pid)
	b.ReportMetric(float64(kB)/1024, "peak-MB")
	if kB > maxResident {
		b.Errorf("%d kB resident, want at most %d", kB, maxResident)
	}
	_ = c.Close()
}
