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

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// records are all records of an engine, by bucket and key, as who administers the database has
// them.
type records map[[2]string][]byte

func readRecords(t *testing.T, v *Vault) records {
	t.Helper()
	all := records{}
	_, err := v.engine.Transact(t.Context(), false, func(tx kv.Tx) error {
		names, err := tx.Buckets()
		for _, bucket := range names {
			err = errors.Join(err, each(tx, bucket, func(key, value []byte) error {
				all[[2]string{bucket, string(key)}] = value
				return nil
			}))
		}
		return err
	})
	must(t, err)
	return all
}

// write makes the records those of another time.
func (next records) write(t *testing.T, v *Vault) {
	t.Helper()
	now := readRecords(t, v)
	rawUpdate(t, v, func(tx kv.Tx) (err error) {
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
}

// putBack makes the records of some buckets what they were. Those that were not there go.
func (r records) putBack(before records, has func(bucket string) bool) {
	for at := range r {
		if has(at[0]) {
			if delete(r, at); before[at] != nil {
				r[at] = before[at]
			}
		}
	}
}

// inDatabase makes a vault in a database, wherever the others are.
func inDatabase(t *testing.T, o *Options) (admin, agent *Vault, place string, k Keys) {
	t.Helper()
	place, k = vaulttest.Server(t).NewSchema(t), newKeys(t)
	must(t, second(Init(t.Context(), place, k)))
	return mustOpen(t, place, k, nil), mustOpen(t, place, Keys{Agent: k.Agent}, o), place, k
}

// leave changes a message as an attempt to send it does.
func leave(t *testing.T, agent *Vault, id string) error {
	return second(agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) {
		if o.State == mail.OutboxQueued {
			o.State, o.Attempt = mail.OutboxUnknown, "attempt"
		}
		return false, nil
	}))
}

// What who administers the database can do with rows, without a key, is found, and no message
// leaves after what decides about its leaving.
func TestPutBackRowsAreFound(t *testing.T) {
	t.Parallel()
	admin, agent, place, k := inDatabase(t, nil)
	mustAdd(t, admin, "work")
	addOAuth(t, admin, "token", "", "r0")
	stay := func(n int) {
		t.Helper()
		record(t, agent, n)
		must(t, second(agent.Take(t.Context(), "sends:work", 5, time.Hour)))
		must(t, agent.UpdateSeen(t.Context(), "work", "INBOX", func(s *mail.SeenState) error { s.UIDValidity++; return nil }))
		must(t, agent.RefreshToken(t.Context(), "token", func(context.Context, mail.OAuthSecrets) (mail.Secret, error) { return text(fmt.Sprint("r", n)), nil }))
		must(t, admin.SetSetting(t.Context(), "commands_per_minute", fmt.Sprint(100+n)))
	}
	keyed := func(o *mail.Outgoing) { o.Key, o.Created, o.Changed = "key of "+o.ID, time.Now(), time.Now() }
	mustAddOutgoing(t, agent, outgoing(1, keyed), []byte("message"))
	mustAddOutgoing(t, agent, outgoing(2, keyed), []byte("message"))
	stay(3)
	before := readRecords(t, admin)
	must(t, second(agent.ChangeOutgoing(t.Context(), "id-0001", func(o *mail.Outgoing) (bool, error) {
		o.State = mail.OutboxAccepted
		return false, nil
	})))
	stay(4)
	another, _, _, _ := inDatabase(t, nil)
	other := readRecords(t, another)
	back := func(buckets ...string) func(records) {
		return func(r records) {
			r.putBack(before, func(bucket string) bool { return slices.Contains(buckets, bucket) })
		}
	}
	away := func(bucket, key string) func(records) {
		return func(r records) { delete(r, [2]string{bucket, key}) }
	}
	// last is the last record of a bucket.
	last := func(r records, bucket string) (at [2]string) {
		for k := range r {
			if k[0] == bucket && k[1] > at[1] {
				at = k
			}
		}
		return at
	}
	entries := statePrefix + outboxEntries
	sent, queued := [2]string{entries, "id-0001"}, [2]string{entries, "id-0002"}
	manifest := [2]string{bucketPolicy, string(manifestKey)}
	for name, attack := range map[string]struct {
		change func(records)
		leaves bool // another message leaves all the same, since it does not depend on that
	}{
		"a sent message put back":       {func(r records) { r[sent] = before[sent] }, true},
		"a message taken away":          {away(entries, "id-0001"), true},
		"an idempotency key taken away": {away(statePrefix+outboxKeys, "work\x00key of id-0001"), true},
		"limits put back":               {back(bucketLimits), false},
		"a limit taken away":            {func(r records) { delete(r, last(r, bucketLimits)) }, false},
		"the policy put back":           {back(bucketPolicy), false},
		"a setting put back":            {back(bucketSettings), true},
		"what was seen put back":        {back(statePrefix + seenBucket), true},
		"the sums put back":             {back(bucketSums), false},
		"the sums taken away":           {away(bucketSums, string(sumsKey)), false},
		"the policy of another vault":   {func(r records) { r[manifest] = other[manifest] }, false},
		"two rows exchanged":            {func(r records) { r[sent], r[queued] = r[queued], r[sent] }, false},
		"the newest entry of the log":   {func(r records) { delete(r, last(r, bucketAudit)) }, true},
		"the newest, and the log's end": {back(bucketChain, bucketAudit), true},
		"outbox and sums put back":      {back(entries, bucketSums), false},
		"everything but the log put back": {func(r records) {
			r.putBack(before, func(bucket string) bool { return bucket != bucketAudit && bucket != bucketChain })
		}, false},
		"the tokens put back": {back(statePrefix + tokenBucket), true},
		"everything put back": {func(r records) { r.putBack(before, func(string) bool { return true }) }, false},
		"nothing":             {func(records) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			// A process that has seen nothing later than what is put back after each.
			agent := mustOpen(t, place, Keys{Agent: k.Agent}, nil)
			record(t, agent, 1)
			now := readRecords(t, admin)
			changed := maps.Clone(now)
			attack.change(changed)
			changed.write(t, admin)
			found := admin.Check(t.Context())
			if report, err := admin.VerifyAudit(t.Context()); found == nil && (err != nil || !report.OK) {
				found = errors.Join(err, errors.New(report.Problem))
			}
			if (found == nil) != (name == "nothing") {
				t.Errorf("it is found: %v", found)
			}
			if left := leave(t, agent, "id-0002"); attack.leaves != (left == nil) {
				t.Errorf("a message leaves: %v", left)
			}
			if name == "a sent message put back" {
				wantErr(t, leave(t, agent, "id-0001"), ErrDamaged, "it leaves again")
				wantErr(t, second(agent.ChangeOutgoing(t.Context(), "id-0001", func(*mail.Outgoing) (bool, error) { return false, nil })), ErrDamaged, "it is approved again")
				wantErr(t, leave(t, agent, "id-0001"), ErrDamaged, "it leaves after that")
			}
			if _, added, err := agent.AddOutgoing(t.Context(), outgoing(3, func(o *mail.Outgoing) { o.Key = "key of id-0001" }), nil); added {
				t.Errorf("an idempotency key is used again: %v", err)
			}
			now.write(t, admin) // as it was
			must(t, admin.Check(t.Context()))
		})
	}
}

// How many messages went unasked within the hour is counted in entries that who administers the
// database can take away.
func TestNoMessageGoesUnaskedWhereOthersWereTakenAway(t *testing.T) {
	t.Parallel()
	admin, agent, _, _ := inDatabase(t, nil)
	mustAdd(t, admin, "work")
	send := func(n int) (string, error) {
		o := mustAddOutgoing(t, agent, outgoing(n, func(o *mail.Outgoing) { o.Created, o.Unasked = time.Now(), "digest" }), []byte("message"))
		return o.ID, leave(t, agent, o.ID)
	}
	for n := range mail.MaxUnasked {
		id, err := send(n)
		must(t, err)
		must(t, second(agent.ChangeOutgoing(t.Context(), id, func(o *mail.Outgoing) (bool, error) {
			o.State, o.Attempt = mail.OutboxAccepted, ""
			return true, nil
		})))
	}
	id, err := send(mail.MaxUnasked)
	must(t, err)
	if o, err := agent.Outgoing(t.Context(), id); err != nil || o.State != mail.OutboxWaiting {
		t.Errorf("one too many is %s: %v", o.State, err)
	}
	changed := readRecords(t, admin)
	changed.putBack(nil, func(bucket string) bool { return bucket == statePrefix+outboxEntries })
	changed.write(t, admin)
	wantErr(t, second(send(mail.MaxUnasked+1)), ErrDamaged, "it leaves")
}

// Where there are many idempotency keys, each process finds at most a minute later that one was
// taken away.
func TestManyKeysAreComparedNowAndThen(t *testing.T) {
	t.Parallel()
	c := &fakeClock{at: outboxDay}
	admin, agent, _, _ := inDatabase(t, &Options{Now: c.now})
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
		_, _, err := agent.AddOutgoing(t.Context(), outgoing(n, func(o *mail.Outgoing) { o.Key = fmt.Sprint("new ", n) }), nil)
		return err
	}
	must(t, add())
	changed := readRecords(t, admin)
	delete(changed, [2]string{statePrefix + outboxKeys, "work\x007"})
	changed.write(t, admin)
	must(t, add())
	c.at = c.at.Add(keysEvery)
	wantErr(t, add(), ErrDamaged, "a key is missing")
}
