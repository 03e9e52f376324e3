package login

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zalando/go-keyring"

	"github.com/postern-mail/postern/mail"
)

// stubKeyring puts a keyring in memory in the place of the system's, for the rest
// of the process, and lets it be found.
func stubKeyring(t *testing.T, fails error) *SystemKeyring {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	if keyring.MockInit(); fails != nil {
		keyring.MockInitWithError(fails)
	}
	return &SystemKeyring{}
}

func TestTheKeyringKeepsOnePasswordPerAccount(t *testing.T) {
	k := stubKeyring(t, nil)
	for account, password := range map[string]string{"work": "first", "other": "else"} {
		must(t, k.Set(t.Context(), account, mail.NewSecret([]byte(password))))
	}
	must(t, k.Set(t.Context(), "work", mail.NewSecret([]byte("second"))))
	for account, want := range map[string]string{"work": "second", "other": "else"} {
		if s, err := k.Secret(t.Context(), account); err != nil || s.Reveal() != want {
			t.Errorf("%s: %q, %v", account, s.Reveal(), err)
		}
	}
	must(t, k.Delete(t.Context(), "work"))
	if _, err := k.Secret(t.Context(), "work"); !errors.Is(err, mail.ErrNotInKeyring) {
		t.Error(err)
	}
	if err := k.Delete(t.Context(), "work"); !errors.Is(err, mail.ErrNotInKeyring) {
		t.Error(err)
	}
	// A password is never empty: the entry is somebody else's work.
	must(t, k.Set(t.Context(), "other", mail.Secret{}))
	if _, err := k.Secret(t.Context(), "other"); !errors.Is(err, mail.ErrNotInKeyring) {
		t.Error(err)
	}
}

func TestKeyringFailuresSayWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		kind mail.Kind
		says string
	}{
		"not supported": {keyring.ErrUnsupportedPlatform, mail.KindConfig, "has no keyring"},
		"too big":       {keyring.ErrSetDataTooBig, mail.KindInvalid, "longer than"},
		"anything else": {errors.New("canary"), mail.KindConfig, "cannot be used now"},
	} {
		t.Run(name, func(t *testing.T) {
			k := stubKeyring(t, test.err)
			_, err := k.Secret(t.Context(), "work")
			for _, err := range []error{err, k.Set(t.Context(), "work", mail.NewSecret([]byte("canary"))), k.Delete(t.Context(), "work")} {
				var e *mail.Error
				if !errors.As(err, &e) || e.Kind != test.kind || !strings.Contains(e.Message, test.says) || e.Advice == "" || strings.Contains(e.Error()+string(e.Advice), "canary") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestALockedKeyringIsAskedOnceAndNotWaitedForLonger uses the part of the keyring
// above the library, which has nothing that could be made to wait.
func TestALockedKeyringIsAskedOnceAndNotWaitedForLonger(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	synctest.Test(t, func(t *testing.T) {
		asked, unlock := make(chan string, 100), make(chan struct{})
		k := &SystemKeyring{get: func(account string) (string, error) {
			asked <- account
			<-unlock
			return "secret", nil
		}}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			_, err := k.Secret(gone, "work")
			var e *mail.Error
			if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Kind != mail.KindTimeout {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got, err := k.Secret(t.Context(), "work"); err != nil || got.Reveal() != "secret" {
					t.Errorf("%q, %v", got.Reveal(), err)
				}
			})
		}
		synctest.Wait()
		if n := len(asked); n != 1 {
			t.Errorf("asked %d times", n)
		}
		close(unlock)
		wg.Wait()
	})
}

func TestAPanicInTheLibraryIsAnError(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	k := &SystemKeyring{get: func(string) (string, error) {
		var signal *struct{ Name string }
		return signal.Name, nil // as the library does when the bus goes away
	}}
	_, err := k.Secret(t.Context(), "work")
	var e *mail.Error
	if !errors.As(err, &e) || e.Kind != mail.KindConfig {
		t.Error(err)
	}
}

func TestWithoutASessionBusNoneIsStarted(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("the keyring is not on a bus here")
	}
	env := func(address string) func(string) string {
		return func(string) string { return address }
	}
	empty, withBus := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(withBus, "bus"), nil, 0o600))
	for _, test := range []struct {
		address, dir string
		want         bool
	}{{"", empty, false}, {"autolaunch:", empty, false}, {"unix:path=/x", empty, true}, {"", withBus, true}, {"", filepath.Join(empty, "none"), false}} {
		if got := sessionBus(env(test.address), test.dir); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
