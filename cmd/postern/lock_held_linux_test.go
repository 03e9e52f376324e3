package main

import (
	"strings"
	"testing"

	"github.com/gofrs/flock"
)

// TestALockHeldByAnotherProgramIsNamed, and how to find that program.
func TestALockHeldByAnotherProgramIsNamed(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	lock := flock.New(v.path + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	status, out, _ := asProcess(t, v.environment(false), []string{"exec", "mail accounts --timeout 1"})
	if got := string(out); status != 1 || !strings.Contains(got, `"code":"STORE_ERROR"`) || !strings.Contains(got, v.path+".lock") || !strings.Contains(got, "fuser") {
		t.Errorf("status %d: %s", status, got)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if status, out, _ := asProcess(t, v.environment(false), []string{"exec", "mail accounts"}); status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
}
