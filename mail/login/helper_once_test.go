//go:build unix

package login_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/login"
)

// once is a HelperOnce whose clock a test sets.
func once(t *testing.T, argv ...string) (h *login.HelperOnce, a *mail.Account, advance func(time.Duration)) {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a = &mail.Account{Name: "work", Auth: mail.AuthHelper, Helper: argv}
	h = login.NewHelperOnce(login.HelperOnceOptions{Account: *a, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	t.Cleanup(func() { _ = h.Close() })
	return h, a, func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
}

func onceError(t *testing.T, err error, kind mail.Kind, says string) {
	t.Helper()
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Message+" "+string(e.Advice), says) {
		t.Errorf("%+v, want %s with %q", err, kind, says)
	}
}

// A refused login is followed by a pause that doubles up to a quarter of an hour,
// and never by another run of the helper.
func TestHelperOncePausesAfterARefusal(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	h, a, advance := once(t, "/bin/sh", "-c", "echo x >>"+count+"; echo pass")
	get := func() error {
		c, err := h.Credential(t.Context(), a)
		if err == nil && c.Secret.Reveal() != "pass" {
			t.Errorf("%q", c.Secret.Reveal())
		}
		c.Secret.Wipe() // which is a copy
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int{30, 60, 120, 240, 480, 900, 900} {
		for range 2 { // the second is of a login that began before the first ended
			if h.Refused(t.Context(), a, login.Credential{}) {
				t.Error("another try is offered")
			}
		}
		onceError(t, get(), mail.KindAuth, fmt.Sprintf("for the next %d s", seconds))
		advance(time.Duration(seconds)*time.Second - time.Nanosecond)
		onceError(t, get(), mail.KindAuth, "for the next 1 s")
		advance(time.Nanosecond)
		if err := get(); err != nil {
			t.Error(err)
		}
	}
	advance(2 * time.Hour)
	h.Refused(t.Context(), a, login.Credential{})
	onceError(t, get(), mail.KindAuth, "for the next 30 s")
	if b, err := os.ReadFile(count); err != nil || string(b) != "x\n" {
		t.Errorf("%q, %v", b, err)
	}
	onceError(t, h.Ready(t.Context(), &mail.Account{Name: "other"}), mail.KindConfig, "no helper for the account")
}

// What failed stays failed, and is told without what was printed.
func TestHelperOnceKeepsItsFailure(t *testing.T) {
	for name, test := range map[string]struct {
		argv []string
		kind mail.Kind
		says string
	}{
		"denied":   {[]string{"/bin/sh", "-c", "echo c4n4ry; exit 1"}, mail.KindAuth, "status 1"},
		"missing":  {[]string{"/nowhere/helper"}, mail.KindConfig, "is not there"},
		"control":  {[]string{"/usr/bin/printf", `c4n4ry\001`}, mail.KindConfig, "is not a password"},
		"C1":       {[]string{"/usr/bin/printf", `c4n4ry\302\205`}, mail.KindConfig, "is not a password"},
		"no UTF-8": {[]string{"/usr/bin/printf", `c4n4ry\377`}, mail.KindConfig, "is not a password"},
		"none":     {nil, mail.KindConfig, "no helper"},
	} {
		t.Run(name, func(t *testing.T) {
			h, a, advance := once(t, test.argv...)
			for range 3 {
				_, err := h.Credential(t.Context(), a)
				onceError(t, err, test.kind, test.says)
				onceError(t, err, test.kind, string(mail.AdviceHelperOnceFailed))
				if strings.Contains(fmt.Sprintf("%+v %+v %#v", err, h, h), "c4n4ry") {
					t.Errorf("it shows what was printed: %+v", err)
				}
				advance(time.Hour)
			}
			if h.Failed(t.Context()) == nil || h.Holds() {
				t.Error("it has not failed, or holds something")
			}
		})
	}
}

// Close ends a helper that hangs and overwrites what one gave; who waits is told.
func TestHelperOnceCloses(t *testing.T) {
	h, a, _ := once(t, "/bin/sh", "-c", "echo pass; sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	onceError(t, h.Ready(ctx, a), mail.KindTimeout, "did not answer in time")
	waiting := make(chan error, 1)
	go func() { waiting <- h.Ready(context.Background(), a) }()
	_ = h.Close()
	if err := <-waiting; err == nil || h.Holds() {
		t.Errorf("%v", err)
	}
	h, a, _ = once(t, "/bin/sh", "-c", "echo pass")
	if err := h.Ready(t.Context(), a); err != nil || !h.Holds() {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s %d %x", h, h, h, h, h, h); strings.Contains(s, "pass") || strings.Contains(s, "112") || strings.Contains(s, "70617373") {
		t.Errorf("it prints as %s", s)
	}
	_, _ = h.Close(), h.Close()
	onceError(t, h.Ready(t.Context(), a), mail.KindConnection, "ending")
	if h.Holds() {
		t.Error("the secret is still there")
	}
}
