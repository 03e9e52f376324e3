package house

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/kv"
)

// tellPerson makes this test's program one that notes in a file what it is told, and ends with
// the status that its first argument says, not at all, or once another file is there.
const tellPerson = "tell-person"

func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == tellPerson {
		note, _ := json.Marshal([2][]string{os.Args[4:], os.Environ()})
		f, err := os.OpenFile(os.Args[3], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(append(note, '\n'))
		}
		switch {
		case err != nil:
			os.Exit(99)
		case os.Args[2] == "hangs":
			time.Sleep(time.Hour) // without cgo, select {} would be found to be a deadlock
		case os.Args[2] == "waits":
			for err = os.ErrNotExist; err != nil; _, err = os.Stat(os.Args[3] + ".go") {
				time.Sleep(time.Millisecond)
			}
		}
		var status int
		_, _ = fmt.Sscan(os.Args[2], &status)
		os.Exit(status)
	}
	os.Exit(testmain.Run(m.Run))
}

// told is what the program was told, one list of arguments for each start.
func told(t *testing.T, file string) (all [][]string, environ []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var note [2][]string
		if err := json.Unmarshal([]byte(line), &note); err != nil {
			t.Fatal(err)
		}
		all, environ = append(all, note[0]), note[1]
	}
	return all, environ
}

// notifying is a store whose administrator has set the program, and the file of what it is told.
func notifying(t *testing.T, does string) (s *store, file string) {
	t.Helper()
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	s, file = another(v), filepath.Join(t.TempDir(), "told")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, _ := json.Marshal([]string{self, tellPerson, does, file, "{id}", "{account}", "n={recipients} {subject}", "$HOME `id`"})
	if err := v.SetSetting(t.Context(), "notify_command", string(command)); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// another is the store of one more process on the vault.
func another(v *vault.Vault) *store {
	s := newStore(func(context.Context) (*vault.Vault, error) { return v, nil })
	s.notify.environ = []string{"HOME=/home/ann", "ANTHROPIC_API_KEY=secret", "POSTERN_KEY_FILE=/key", "Path_x=1", "DISPLAY=:0"}
	return s
}

// begins adds an entry as a principal's command does.
func begins(t *testing.T, s *store, principal, id, account string, state mail.OutboxState, recipients int) {
	t.Helper()
	p := gateway.Principal{Name: principal, Admin: principal == "admin"}
	o := mail.Outgoing{ID: id, Account: account, Principal: principal, State: state, Created: time.Now(), Changed: time.Now(), Subject: "$(touch x)", MessageID: "<x@example.org>"}
	for i := range recipients {
		o.Recipients = append(o.Recipients, fmt.Sprintf("r%d@example.org", i))
	}
	if _, added, err := s.AddOutgoing(onBehalfOf(t.Context(), p), o, nil); err != nil || !added {
		t.Fatal(added, err)
	}
}

func (n *notifier) rest() { n.work.Wait() }

func TestThePersonIsToldWhatBeginsToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, file := notifying(t, "0")
		start := time.Now()
		begins(t, s, "agent", "0a", "work", mail.OutboxWaiting, 2)
		s.notify.rest()
		want := [][]string{{"0a", "work", "n=2 {subject}", "$HOME `id`"}}
		got, environ := told(t, file)
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("told %q", got)
		}
		environ = slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(v, "PWD=") || strings.HasPrefix(v, "SYSTEMROOT=") })
		if !slices.Equal(environ, []string{"HOME=/home/ann", "DISPLAY=:0"}) {
			t.Errorf("its environment is %q", environ)
		}

		// What begins to wait within ten seconds is told of together.
		for i, principal := range []string{"agent", "grant:desk", "admin", "person", "agent", "agent", "agent", "agent"} {
			begins(t, s, principal, fmt.Sprintf("1%d", i), []string{"work", "home"}[i/4], mail.OutboxWaiting, 1)
		}
		if _, err := s.ChangeOutgoing(forOwner(t.Context()), "14", func(o *mail.Outgoing) (bool, error) {
			o.State = mail.OutboxRejected
			return false, nil
		}); err != nil {
			t.Fatal(err)
		}
		s.notify.rest()
		want = append(want, []string{"10, 11, 15, 16, 17", "home, work", "n=5 {subject}", "$HOME `id`"})
		if got, _ = told(t, file); !slices.EqualFunc(got, want, slices.Equal) || time.Since(start) < notifyEvery {
			t.Fatalf("after %v told %q", time.Since(start), got)
		}

		// What had been queued and asks by now begins to wait; what a person was asked about before does not.
		time.Sleep(notifyEvery)
		begins(t, s, "agent", "20", "work", mail.OutboxQueued, 1)
		begins(t, s, "agent", "21", "work", mail.OutboxUnknown, 1)
		for _, id := range []string{"20", "21"} {
			if _, err := s.ChangeOutgoing(onBehalfOf(t.Context(), gateway.Principal{Name: "agent"}), id, func(o *mail.Outgoing) (bool, error) {
				o.Wait()
				return false, nil
			}); err != nil {
				t.Fatal(err)
			}
			s.notify.rest()
		}
		want = append(want, []string{"20", "work", "n=1 {subject}", "$HOME `id`"})
		if got, _ = told(t, file); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("told %q", got)
		}
	})
}

func TestNobodyIsToldOfWhatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, file := notifying(t, "0")
		for i, state := range []mail.OutboxState{mail.OutboxQueued, mail.OutboxAccepted, mail.OutboxRefused, mail.OutboxUnknown} {
			begins(t, s, "agent", fmt.Sprintf("0%d", i), "work", state, 1)
		}
		begins(t, s, "admin", "10", "work", mail.OutboxWaiting, 1)
		begins(t, s, "person", "11", "work", mail.OutboxWaiting, 1)
		s.notify.rest()
		// Without the setting nothing is started, and nothing once the process ends.
		begins(t, s, "agent", "12", "work", mail.OutboxWaiting, 1)
		s.notify.close()
		begins(t, s, "agent", "13", "work", mail.OutboxWaiting, 1)
		s.notify.rest()
		if got, _ := told(t, file); len(got) != 1 || got[0][0] != "12" {
			t.Errorf("told %q", got)
		}
		if err := s.SetSetting(t.Context(), "notify_command", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(notifyEvery)
		other := another(s.Vault)
		begins(t, other, "agent", "14", "work", mail.OutboxWaiting, 1)
		other.notify.rest()
		if got, _ := told(t, file); len(got) != 1 {
			t.Errorf("told %q", got)
		}
	})
}

// What a process wrote into the vault past the outbox reaches no argument.
func TestAForgedEntryTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, file := notifying(t, "0")
		for id, account := range map[string]string{"0a": `" & do shell script "x`, "0b\n": "work", "0c": "work"} {
			record, _ := json.Marshal(mail.Outgoing{ID: id, Account: account, State: mail.OutboxWaiting})
			if err := s.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("outbox", []byte(id), record) }); err != nil {
				t.Fatal(err)
			}
			s.notify.waits(t.Context(), id)
		}
		s.notify.rest()
		if got, _ := told(t, file); len(got) != 1 || got[0][0] != "0c" || got[0][1] != "work" {
			t.Errorf("told %q", got)
		}
	})
}

// A process that ends does not wait for its turn: the next that is told hears of it.
func TestTheNextHearsOfWhatAProcessLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, file := notifying(t, "0")
		begins(t, s, "agent", "0a", "work", mail.OutboxWaiting, 1)
		s.notify.close()
		start := time.Now()
		short := another(s.Vault)
		begins(t, short, "agent", "0b", "work", mail.OutboxWaiting, 1)
		short.notify.close()
		if got, _ := told(t, file); len(got) != 1 || time.Since(start) > 0 {
			t.Errorf("after %v told %q", time.Since(start), got)
		}
		next := another(s.Vault)
		begins(t, next, "agent", "0c", "work", mail.OutboxWaiting, 1)
		next.notify.rest()
		if got, _ := told(t, file); len(got) != 2 || got[1][0] != "0b, 0c" || time.Since(start) != notifyEvery {
			t.Errorf("after %v told %q", time.Since(start), got)
		}
	})
}

func TestManyThatWaitAreCounted(t *testing.T) {
	var waiting []mail.Outgoing
	for i := range 8 { // the newest first
		waiting = append(waiting, mail.Outgoing{ID: fmt.Sprint(8 - i), Account: "work", Kind: mail.OutboxDelete})
	}
	if got := notifyArgs([]string{"/{id}", "{id}{account}"}, waiting); !slices.Equal(got, []string{"/{id}", "1, 2, 3, 4, 5 and 3 morework"}) {
		t.Errorf("%q", got)
	}
}

func TestDoctorShowsWhyThePersonWasNotTold(t *testing.T) {
	for does, want := range map[string]string{"3": "it ended with status 3.", "0": "", "missing": "it could not be started.", "hangs": "it did not end within 1 s."} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			s, file := notifying(t, does)
			if does == "hangs" {
				s.notify.limit = time.Second
			}
			if does == "missing" {
				command, _ := json.Marshal([]string{filepath.Join(t.TempDir(), "none"), file})
				if err := s.SetSetting(t.Context(), "notify_command", string(command)); err != nil {
					t.Fatal(err)
				}
			}
			begins(t, s, "agent", "0a", "work", mail.OutboxWaiting, 1)
			s.notify.rest()
			h := &House{store: s}
			checks := h.notifyChecks(forOwner(t.Context()))
			if len(checks) > 1 || (len(checks) == 1) != (want != "") || len(checks) == 1 && (!strings.HasSuffix(checks[0].Detail, want) || strings.Contains(checks[0].Detail, file)) {
				t.Fatalf("%+v", checks)
			}
			if grant := onBehalfOf(t.Context(), gateway.Principal{Name: "grant:desk", Scope: &gateway.Scope{}}); len(h.notifyChecks(grant)) != 0 {
				t.Error("a grant is told of a program of the machine")
			}
			if err := s.SetSetting(t.Context(), "notify_command", `["`+strings.ReplaceAll(file, `\`, `\\`)+`"]`); err != nil {
				t.Fatal(err)
			}
			if checks := h.notifyChecks(forOwner(t.Context())); len(checks) != 0 {
				t.Errorf("another program has failed: %+v", checks)
			}
		})
	}
}

// TestAVaultThatDoesNotAnswerAProgramsEndHoldsUpNoEnd: what became of it is not noted then.
func TestAVaultThatDoesNotAnswerAProgramsEndHoldsUpNoEnd(t *testing.T) {
	t.Parallel()
	s, file := notifying(t, "waits")
	s.closing = 10 * time.Millisecond
	begins(t, s, "agent", "0a", "work", mail.OutboxWaiting, 1)
	for got := [][]string(nil); len(got) == 0; got, _ = told(t, file) {
		time.Sleep(time.Millisecond)
	}
	held, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Update(t.Context(), func(kv.Tx) error { close(held); <-release; return nil })
	}()
	<-held
	if err := os.WriteFile(file+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { s.notify.close(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
	close(release)
	<-ended
}
