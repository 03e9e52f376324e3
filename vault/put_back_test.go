package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault/kv"
)

// rows are all records of an engine, by bucket and key, as who administers the database has
// them.
type rows map[[2]string][]byte

func readRows(t *testing.T, v *Vault) rows {
	t.Helper()
	all := rows{}
	_, err := v.engine.Transact(t.Context(), false, func(tx kv.Tx) error {
		names, err := tx.Buckets()
		for _, bucket := range names {
			for r, err := range kv.Each(tx, bucket, kv.Range{}) {
				if err != nil {
					return err
				}
				all[[2]string{bucket, string(r.Key)}] = r.Value
			}
		}
		return err
	})
	must(t, err)
	return all
}

// write makes the records those of another time.
func (now rows) write(t *testing.T, v *Vault, next rows) {
	t.Helper()
	_, err := v.engine.Transact(t.Context(), true, func(tx kv.Tx) (err error) {
		for at := range now {
			if next[at] == nil {
				err = errors.Join(err, tx.Delete(at[0], []byte(at[1])))
			}
		}
		for at, value := range next {
			if !bytes.Equal(value, now[at]) {
				err = errors.Join(err, tx.Put(at[0], []byte(at[1]), value))
			}
		}
		return err
	})
	must(t, err)
}

// What who administers the database can do with rows, without a key, is found, and no message
// leaves after what decides about its leaving.
func TestPutBackRowsAreFound(t *testing.T) {
	server := servertest.Postgres(t)
	place, k := server.NewSchema(t), newKeys(t)
	must(t, second(Init(t.Context(), place, k)))
	admin := mustOpen(t, place, k, nil)
	agent := mustOpen(t, place, Keys{Agent: k.Agent}, nil)
	mustAdd(t, admin, "work")
	addOAuth(t, admin, "token", "", "r0")
	stay := func(n int) {
		t.Helper()
		for i := range n {
			must(t, agent.Record(t.Context(), gateway.AuditEntry{Command: fmt.Sprint("command ", i), Allowed: true}))
		}
		must(t, second(agent.Take(t.Context(), "sends:work", 5, time.Hour)))
		must(t, agent.UpdateSeen(t.Context(), "work", "INBOX", func(s *mail.SeenState) error { s.UIDValidity++; return nil }))
		must(t, agent.RefreshToken(t.Context(), "token", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) { return text(fmt.Sprint("r", n)), nil }))
		must(t, admin.SetSetting(t.Context(), "commands_per_minute", fmt.Sprint(100+n)))
	}
	add := func(id string) {
		t.Helper()
		must(t, third(agent.AddOutgoing(t.Context(), mail.Outgoing{ID: id, Account: "work", Key: "key of " + id, Principal: "agent", State: mail.OutboxQueued}, []byte("message"))))
	}
	add("id-0001")
	add("id-0002")
	stay(3)
	before := readRows(t, admin)
	must(t, second(agent.ChangeOutgoing(t.Context(), "id-0001", func(o *mail.Outgoing) (bool, error) {
		o.State = mail.OutboxAccepted
		return false, nil
	})))
	stay(4)
	leave := func(agent *Vault, id string) error {
		return second(agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) {
			o.State, o.Attempt = mail.OutboxUnknown, "attempt"
			return false, nil
		}))
	}
	other := func() rows {
		place, k := server.NewSchema(t), newKeys(t)
		must(t, second(Init(t.Context(), place, k)))
		return readRows(t, mustOpen(t, place, k, nil))
	}()
	of := func(r rows, bucket string) (keys []string) {
		for at := range r {
			if at[0] == bucket {
				keys = append(keys, at[1])
			}
		}
		return keys
	}
	back := func(bucket string) func(rows) {
		return func(r rows) {
			for _, key := range of(r, bucket) {
				if at := [2]string{bucket, key}; before[at] != nil {
					r[at] = before[at]
				}
			}
		}
	}
	entries := statePrefix + outboxEntries
	for name, attack := range map[string]struct {
		change func(rows)
		leaves bool // another message leaves all the same, since it does not depend on that
	}{
		"a sent message put back":       {func(r rows) { r[[2]string{entries, "id-0001"}] = before[[2]string{entries, "id-0001"}] }, true},
		"a message taken away":          {func(r rows) { delete(r, [2]string{entries, "id-0001"}) }, true},
		"an idempotency key taken away": {func(r rows) { delete(r, [2]string{statePrefix + outboxKeys, "work\x00key of id-0001"}) }, true},
		"limits put back":               {back(bucketLimits), false},
		"a limit taken away":            {func(r rows) { delete(r, [2]string{bucketLimits, of(r, bucketLimits)[0]}) }, false},
		"the policy put back":           {back(bucketPolicy), false},
		"a setting put back":            {back(bucketSettings), true},
		"what was seen put back":        {back(statePrefix + seenBucket), true},
		"the sums put back":             {back(bucketSums), false},
		"the sums taken away":           {func(r rows) { delete(r, [2]string{bucketSums, string(sumsKey)}) }, false},
		"the policy of another vault": {func(r rows) {
			r[[2]string{bucketPolicy, string(manifestKey)}] = other[[2]string{bucketPolicy, string(manifestKey)}]
		}, false},
		"two rows exchanged": {func(r rows) {
			a, b := [2]string{entries, "id-0001"}, [2]string{entries, "id-0002"}
			r[a], r[b] = r[b], r[a]
		}, false},
		"the newest entry of the log":      {func(r rows) { delete(r, [2]string{bucketAudit, maxKey(of(r, bucketAudit))}) }, true},
		"the newest entries, and its ends": {func(r rows) { back(bucketChain)(r); trim(r, before, bucketAudit) }, true},
		"outbox and sums put back as one":  {func(r rows) { back(entries)(r); back(bucketSums)(r) }, false},
		"everything but the log put back":  {func(r rows) { putBackAll(r, before, bucketAudit, bucketChain) }, false},
		"the tokens put back":              {back(statePrefix + tokenBucket), true},
		"everything put back":              {func(r rows) { putBackAll(r, before) }, false},
		"nothing":                          {func(rows) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			// A process that has seen nothing later than what is put back after each.
			agent := mustOpen(t, place, Keys{Agent: k.Agent}, nil)
			must(t, agent.Record(t.Context(), gateway.AuditEntry{Command: "now"}))
			now, changed := readRows(t, admin), rows{}
			for at, value := range now {
				changed[at] = value
			}
			attack.change(changed)
			now.write(t, admin, changed)
			found := admin.Check(t.Context())
			if report, err := admin.VerifyAudit(t.Context()); found == nil && (err != nil || !report.OK) {
				found = errors.Join(err, errors.New(report.Problem))
			}
			if is := len(changed) == len(now) && name == "nothing"; is != (found == nil) {
				t.Errorf("it is found: %v", found)
			}
			left := leave(agent, "id-0002")
			if attack.leaves != (left == nil) {
				t.Errorf("a message leaves: %v", left)
			}
			if name == "a sent message put back" {
				wantErr(t, leave(agent, "id-0001"), ErrDamaged, "it leaves again")
				wantErr(t, second(agent.ChangeOutgoing(t.Context(), "id-0001", func(*mail.Outgoing) (bool, error) { return false, nil })), ErrDamaged, "it is approved again")
				wantErr(t, leave(agent, "id-0001"), ErrDamaged, "it leaves after that")
			}
			if _, added, err := agent.AddOutgoing(t.Context(), mail.Outgoing{ID: "id-0003", Account: "work", Key: "key of id-0001", Principal: "agent", State: mail.OutboxQueued}, nil); added {
				t.Errorf("an idempotency key is used again: %v", err)
			}
			// As it was.
			readRows(t, admin).write(t, admin, now)
			must(t, admin.Check(t.Context()))
		})
	}
}

// How many messages went unasked within the hour is counted in entries that who administers the
// database can take away.
func TestNoMessageGoesUnaskedWhereOthersWereTakenAway(t *testing.T) {
	place, k := servertest.Postgres(t).NewSchema(t), newKeys(t)
	must(t, second(Init(t.Context(), place, k)))
	admin, agent := mustOpen(t, place, k, nil), mustOpen(t, place, Keys{Agent: k.Agent}, nil)
	mustAdd(t, admin, "work")
	send := func(n int) (mail.Outgoing, error) {
		o, _, err := agent.AddOutgoing(t.Context(), outgoing(n, func(o *mail.Outgoing) { o.Created, o.Unasked = time.Now(), "digest" }), []byte("message"))
		must(t, err)
		return agent.ChangeOutgoing(t.Context(), o.ID, func(o *mail.Outgoing) (bool, error) {
			if o.State == mail.OutboxQueued {
				o.State, o.Attempt = mail.OutboxUnknown, "attempt"
			}
			return false, nil
		})
	}
	for n := range mail.MaxUnasked {
		o, err := send(n)
		must(t, err)
		must(t, second(agent.ChangeOutgoing(t.Context(), o.ID, func(o *mail.Outgoing) (bool, error) {
			o.State, o.Attempt = mail.OutboxAccepted, ""
			return true, nil
		})))
	}
	if o, err := send(mail.MaxUnasked); err != nil || o.State != mail.OutboxWaiting {
		t.Errorf("one too many is %s: %v", o.State, err)
	}
	now, changed := readRows(t, admin), rows{}
	for at, value := range now {
		if at[0] != statePrefix+outboxEntries {
			changed[at] = value
		}
	}
	now.write(t, admin, changed)
	wantErr(t, second(send(mail.MaxUnasked+1)), ErrDamaged, "it leaves")
}

// Where there are many idempotency keys, each process finds at most a minute later that one was
// taken away.
func TestManyKeysAreComparedNowAndThen(t *testing.T) {
	place, k := servertest.Postgres(t).NewSchema(t), newKeys(t)
	must(t, second(Init(t.Context(), place, k)))
	c := &clock{at: outboxDay}
	admin, agent := mustOpen(t, place, k, nil), mustOpen(t, place, Keys{Agent: k.Agent}, &Options{Now: c.now})
	mustAdd(t, admin, "work")
	must(t, agent.Update(t.Context(), func(tx kv.Tx) (err error) {
		for i := range manyKeys {
			err = errors.Join(err, tx.Put(outboxKeys, outboxKey("work", fmt.Sprint(i)), []byte("id")))
		}
		return err
	}))
	n := 0
	add := func() error {
		n++
		return third(agent.AddOutgoing(t.Context(), outgoing(n, func(o *mail.Outgoing) { o.Key = fmt.Sprint("new ", n) }), nil))
	}
	must(t, add())
	now, changed := readRows(t, admin), rows{}
	maps.Copy(changed, now)
	delete(changed, [2]string{statePrefix + outboxKeys, "work\x007"})
	now.write(t, admin, changed)
	must(t, add())
	c.at = c.at.Add(keysEvery)
	wantErr(t, add(), ErrDamaged, "a key is missing")
}

func third[A, B any](_ A, _ B, err error) error { return err }

func maxKey(keys []string) (last string) {
	for _, k := range keys {
		last = max(last, k)
	}
	return last
}

// trim takes away what a bucket did not have before.
func trim(r, before rows, bucket string) {
	for at := range r {
		if at[0] == bucket && before[at] == nil {
			delete(r, at)
		}
	}
}

func putBackAll(r, before rows, but ...string) {
	for at := range r {
		if !slices.Contains(but, at[0]) {
			if delete(r, at); before[at] != nil {
				r[at] = before[at]
			}
		}
	}
}
