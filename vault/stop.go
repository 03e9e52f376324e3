package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
)

// A stop of everything is a record beside the manifest that any key may write. What ends
// it is policy: a record that names that very stop, signed by the administrator. So a
// process with the agent's key can neither make one nor use that of an earlier stop. If it
// deletes the stop or puts an older file in place, every process that has seen the stop
// holds to it until the administrator has signed the end of one since.
//
// The record is read in the transaction that reads the policy, and is part of what says
// whether the policy that was read before is still in force.

// StopTime is how long a process may rely on having seen that there is no stop: nothing
// begins later than that after a stop.
const StopTime = time.Second

var stopKey = []byte("stop")

const resumedKey = "resumed"

// stopRecord is a stop, and as the signed record the end of the stop with this ID.
type stopRecord struct {
	ID    string    `json:"id"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
	Only  []string  `json:"only,omitempty"` // the principals that it holds; none for everybody
}

// Stop stops everything, in every process that uses the vault, from StopTime after it
// returns on. again says that all was stopped already, by the stop that is returned. Any
// key may call it.
func (v *Vault) Stop(ctx context.Context, by string) (s *mail.Stopped, again bool, err error) {
	return v.stop(ctx, by, nil)
}

// StopOne is Stop for one principal alone, by itself: the others go on.
func (v *Vault) StopOne(ctx context.Context, principal string) (s *mail.Stopped, again bool, err error) {
	return v.stop(ctx, principal, []string{principal})
}

// stop stops some principals, or with only nil all.
func (v *Vault) stop(ctx context.Context, by string, only []string) (s *mail.Stopped, again bool, err error) {
	err = v.update(ctx, func(t *transaction) error {
		p, err := v.policy(t)
		if err != nil {
			return err
		}
		before := p.stopped
		if s, again = before, before.Holds(by) && (only != nil || before.Only == nil); !again {
			s = &mail.Stopped{By: by, Since: v.now().UTC().Truncate(time.Second), Only: only}
			if before != nil && only != nil {
				s.Only = slices.Concat(before.Only, only)
			}
		}
		if kept, err := t.readStop(); again && (err != nil || !p.over(kept)) {
			return nil // it stands there, readable or not
		}
		t.leaves = true
		return t.putStop(stopRecord{rand.Text(), s.By, s.Since, s.Only})
	})
	if err != nil {
		return nil, false, err
	}
	return s, again, nil
}

// Resume ends the stop in force and returns it, or nil where there is none. Only the admin
// may call it.
func (v *Vault) Resume(ctx context.Context) (s *mail.Stopped, err error) {
	err = v.change(ctx, func(c *policyChange) error {
		current, err := v.policy(c.t)
		if err != nil || current.stopped == nil {
			return err
		}
		s = current.stopped
		stop, err := c.t.readStop()
		if stop == nil || err != nil { // the record is gone, or nobody can read it
			stop = &stopRecord{rand.Text(), s.By, s.Since, s.Only}
			if err := c.t.putStop(*stop); err != nil {
				return err
			}
		}
		record, err := json.Marshal(stopRecord{ID: stop.ID, Since: v.now().UTC()})
		if err != nil {
			return err
		}
		return c.put(bucketResumed, resumedKey, record)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stopped returns the stop in force, nil for none, as of at most age ago. It may hold some
// principals alone.
func (v *Vault) Stopped(ctx context.Context, age time.Duration) (*mail.Stopped, error) {
	v.mu.Lock()
	p, looked := v.cached, v.looked
	v.mu.Unlock()
	if p == nil || time.Since(looked) >= age {
		var err error
		if p, err = v.readPolicyOnce(ctx); err != nil {
			return nil, err
		}
	}
	return p.stopped, nil
}

// StoppedAlone returns the principals that are stopped while the others go on.
func (v *Vault) StoppedAlone(ctx context.Context) ([]string, error) {
	stopped, err := v.Stopped(ctx, 0)
	if stopped == nil {
		return nil, err
	}
	return stopped.Only, err
}

// mayBegin refuses what would begin behind the transaction while everything is stopped; no stop
// comes in between.
func (v *Vault) mayBegin(t *transaction) error {
	p, err := v.policy(t)
	if err == nil && p.stopped != nil && p.stopped.Only == nil {
		err = p.stopped
	}
	return err
}

// readStop returns the last stop, nil for none.
func (t *transaction) readStop() (*stopRecord, error) {
	record, err := t.get(bucketPolicy, stopKey)
	if record == nil || err != nil {
		return nil, err
	}
	s := &stopRecord{}
	return s, decodeStrict(record, s)
}

func (t *transaction) putStop(s stopRecord) error {
	record, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return t.put(bucketPolicy, stopKey, record)
}

// over reports whether a stop was ended, or never was.
func (p *policy) over(s *stopRecord) bool {
	var end stopRecord
	return s == nil || decodeStrict(p.records[bucketResumed][resumedKey], &end) == nil && end.ID == s.ID
}

// judgeStop sets the stop in force of a policy. before is the policy that this process
// verified last, or nil. A record that cannot be read stops everything.
func (p *policy) judgeStop(t *transaction, before *policy) {
	s, err := t.readStop()
	switch {
	case err != nil:
		p.stopped = &mail.Stopped{By: "a record that cannot be read"}
	case !p.over(s) && (s.Only == nil || before == nil || before.stopped == nil || before.stopped.Only != nil || !sameEnd(before, p)):
		p.stopped = &mail.Stopped{By: s.By, Since: s.Since, Only: s.Only}
	case before != nil && before.stopped != nil && sameEnd(before, p):
		p.stopped = before.stopped
	default:
		p.stopped = nil
	}
}

// sameEnd reports whether the administrator has ended no stop between two policies.
func sameEnd(a, b *policy) bool {
	return bytes.Equal(a.records[bucketResumed][resumedKey], b.records[bucketResumed][resumedKey])
}
