package vault

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
)

func mustStop(t *testing.T, v *Vault) *mail.Stopped {
	t.Helper()
	s, again, err := v.Stop(t.Context(), "agent")
	if err != nil || again {
		t.Fatalf("Stop = %v, again %v, %v", s, again, err)
	}
	return s
}

// wantStopped checks what a process that has read the policy and a fresh one see.
func wantStopped(t *testing.T, want bool, vaults ...*Vault) {
	t.Helper()
	for i, v := range vaults {
		s, err := v.Stopped(t.Context(), 0)
		if err != nil || (s != nil) != want {
			t.Errorf("vault %d: stopped by %v, %v; want stopped %v", i, s, err, want)
		}
	}
}

func TestAnyKeyStopsAndTheAdminResumes(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	wantStopped(t, false, admin, agent)
	first := mustStop(t, agent)
	fresh := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	wantStopped(t, true, admin, agent, fresh)
	if s, again, err := admin.Stop(t.Context(), "admin"); err != nil || !again || !reflect.DeepEqual(s, first) {
		t.Errorf("a second stop = %v, %v, %v; want the first, %v", s, again, err, first)
	}
	wantErr(t, second(agent.Resume(t.Context())), ErrAdminRequired, "an agent resumes")
	wantStopped(t, true, admin, agent, fresh)
	for _, want := range []*mail.Stopped{first, nil} {
		if s, err := admin.Resume(t.Context()); err != nil || (s == nil) != (want == nil) || !reflect.DeepEqual(s, want) {
			t.Errorf("Resume = %v, %v; want %v", s, err, want)
		}
	}
	wantStopped(t, false, admin, agent, fresh, mustOpen(t, path, Keys{Agent: k.Agent}, nil))
	mustStop(t, admin)
	wantStopped(t, true, admin, agent, fresh)
	must(t, admin.SetSetting(t.Context(), "timezone", "UTC"))
	wantStopped(t, true, admin, agent, mustOpen(t, path, Keys{Agent: k.Agent}, nil))
	must(t, admin.Check(t.Context()))
}

// TestAnAgentCannotMakeAResume tries what a process with the agent's key can write.
func TestAnAgentCannotMakeAResume(t *testing.T) {
	t.Parallel()
	for name, forgery := range map[string]struct {
		do    func(t *testing.T, agent *Vault, old []byte)
		fresh error // what a process sees that has not seen the stop; nil for a stop
	}{
		"a resume of its own": {func(t *testing.T, agent *Vault, _ []byte) {
			forge(t, agent, func(tx *transaction) error {
				s, err := tx.readStop()
				return errors.Join(err, tx.put(bucketResumed, []byte(resumedKey), []byte(`{"id":"`+s.ID+`","since":"2026-01-01T00:00:00Z"}`)))
			})
		}, ErrUntrustedPolicy},
		"a resume signed with its own key": {func(t *testing.T, agent *Vault, _ []byte) {
			var id string
			forge(t, agent, func(tx *transaction) error {
				s, err := tx.readStop()
				id = s.ID
				return err
			})
			signed(t, agent, bucketResumed, resumedKey, []byte(`{"id":"`+id+`","since":"2026-01-01T00:00:00Z"}`))
		}, ErrUntrustedPolicy},
		"the resume of the stop before": {func(t *testing.T, agent *Vault, old []byte) {
			sealed(bucketResumed, resumedKey, string(old))(t, nil, agent)
		}, nil},
		"no resume at all": {func(t *testing.T, agent *Vault, _ []byte) { gone(bucketResumed, resumedKey)(t, nil, agent) }, ErrUntrustedPolicy},
		"a stop that is no record": {func(t *testing.T, agent *Vault, _ []byte) {
			sealed(bucketPolicy, string(stopKey), "no record")(t, nil, agent)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, k := newPlace(t)
			admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
			mustStop(t, agent)
			must(t, second(admin.Resume(t.Context())))
			old := sealedRecord(t, agent, bucketResumed, resumedKey)
			mustStop(t, agent)
			running := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
			wantStopped(t, true, admin, running)
			forgery.do(t, agent, old)
			if s, err := running.Stopped(t.Context(), 0); err == nil && s == nil {
				t.Error("a running process goes on")
			}
			fresh := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
			if forgery.fresh != nil {
				wantErr(t, second(fresh.Stopped(t.Context(), 0)), forgery.fresh, "a new process")
				return
			}
			wantStopped(t, true, fresh)
			must(t, second(admin.Resume(t.Context())))
			wantStopped(t, false, admin, running, fresh)
		})
	}
}

// TestADeletedStopHoldsWhereItWasSeen shows what is left where the file itself is put back:
// a process that saw the stop holds to it until the administrator has resumed.
func TestADeletedStopHoldsWhereItWasSeen(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	mustStop(t, agent)
	running := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	wantStopped(t, true, running)
	gone(bucketPolicy, string(stopKey))(t, nil, agent)
	wantStopped(t, true, running)
	must(t, admin.SetSetting(t.Context(), "timezone", "UTC"))
	wantStopped(t, true, running)
	if _, again, err := running.Stop(t.Context(), "agent"); err != nil || !again {
		t.Errorf("Stop = again %v, %v", again, err)
	}
	wantStopped(t, true, running, admin, mustOpen(t, path, Keys{Agent: k.Agent}, nil))
	must(t, second(admin.Resume(t.Context())))
	wantStopped(t, false, running, admin)
}

// TestNothingLeavesThroughAStop: the record that a message is about to leave, or a deletion to
// be carried out, and the stop are one order.
func TestNothingLeavesThroughAStop(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	for n, c := range []struct {
		what    string
		before  mail.OutboxState
		attempt string // before
		ends    bool   // the attempt is over, and what it knows is recorded
	}{
		{what: "a message that was claimed", before: mail.OutboxQueued, attempt: "a"},
		{what: "a deletion, claimed in the same change", before: mail.OutboxWaiting},
		{what: "a message whose outcome is unknown, once more", before: mail.OutboxUnknown},
		{what: "a message that left, without an answer", before: mail.OutboxUnknown, attempt: "a", ends: true},
	} {
		o := mustAddOutgoing(t, agent, outgoing(n+1, func(o *mail.Outgoing) { o.State, o.Attempt, o.Until = c.before, c.attempt, time.Now().Add(time.Hour) }), []byte("m"))
		mustStop(t, agent)
		after, err := agent.ChangeOutgoing(t.Context(), o.ID, func(o *mail.Outgoing) (bool, error) {
			if o.State, o.Attempt = mail.OutboxUnknown, "a"; c.ends {
				o.Attempt = ""
			}
			return false, nil
		})
		var stopped *mail.Stopped
		switch {
		case c.ends && (err != nil || after.Attempt != ""):
			t.Errorf("%s: %+v, %v", c.what, after, err)
		case !c.ends && !errors.As(err, &stopped):
			t.Errorf("%s passes: %v", c.what, err)
		}
		if now, err := agent.Outgoing(t.Context(), o.ID); err != nil || !c.ends && (now.State != c.before || now.Attempt != c.attempt) {
			t.Errorf("%s: it is %s, attempt %q, %v", c.what, now.State, now.Attempt, err)
		}
		must(t, second(admin.Resume(t.Context())))
	}
}

// TestNoTokenIsLentUnderAStop: a refresh that waited for another begins no more, and what the
// other got is kept.
func TestNoTokenIsLentUnderAStop(t *testing.T) {
	t.Parallel()
	admin, agent := newVault(t, nil)
	addOAuth(t, admin, "work", "client secret", "first")
	waiting := make(chan error, 1)
	must(t, agent.RefreshToken(t.Context(), "work", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) {
		go func() { waiting <- admin.RefreshToken(t.Context(), "work", unlent(t)) }()
		mustStop(t, agent)
		return text("second"), nil
	}))
	var stopped *mail.Stopped
	if err := <-waiting; !errors.As(err, &stopped) {
		t.Errorf("it is refreshed: %v", err)
	}
	must(t, second(admin.Resume(t.Context())))
	lentIs(t, agent, "work", "client secret", "second", "")
}

// A stop of one principal holds that one; a stop of all that comes later holds all, and the end of
// a stop ends both.
func TestAStopOfOnePrincipal(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	holds := func(v *Vault, want ...bool) {
		t.Helper()
		s, err := v.Stopped(t.Context(), 0)
		for i, p := range []string{"grant:a", "grant:b", "agent"} {
			if s.Holds(p) != want[i] || err != nil {
				t.Errorf("%s: %+v, %v", p, s, err)
			}
		}
	}
	stop := func(principal string) {
		t.Helper()
		if _, again, err := agent.StopOne(t.Context(), principal); again || err != nil {
			t.Errorf("%v, %v", again, err)
		}
	}
	stop("grant:a")
	holds(admin, true, false, false)
	stop("grant:b")
	holds(agent, true, true, false)
	if s, again, err := agent.StopOne(t.Context(), "grant:a"); !again || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if alone, err := admin.StoppedAlone(t.Context()); len(alone) != 2 || err != nil {
		t.Errorf("%q, %v", alone, err)
	}
	if s, again, err := agent.Stop(t.Context(), "agent"); again || err != nil || s.Only != nil {
		t.Errorf("%+v, %v, %v", s, again, err)
	}
	holds(admin, true, true, true)
	if _, err := admin.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(agent, false, false, false)
}
