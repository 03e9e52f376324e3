package vault

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// TestAnAgentCannotForgePolicy tries every kind of change with the agent key, which can
// seal any record for any place. Each must be found by an agent that has the policy
// cached, by one that was just started, and by the admin, who must not sign it either.
func TestAnAgentCannotForgePolicy(t *testing.T) {
	t.Parallel()
	swapHost := func(a *mail.Account) { a.IMAP.Host = "evil.example" }
	for name, forgery := range map[string]func(t *testing.T, admin, agent *Vault){
		"host":          rewrite("work", swapHost),
		"mode":          rewrite("work", func(a *mail.Account) { a.Mode = mail.ReadWrite }),
		"allow-list":    rewrite("work", func(a *mail.Account) { a.AllowOut.Entries = []string{"*"} }),
		"list off":      rewrite("work", func(a *mail.Account) { a.AllowIn.Enabled = false }),
		"helper":        rewrite("work", func(a *mail.Account) { a.Auth, a.Helper = mail.AuthHelper, []string{"sh"} }),
		"certificates":  rewrite("work", func(a *mail.Account) { a.CAPEM = []byte("mine") }),
		"pattern":       rewrite("work", func(a *mail.Account) { a.SubjectPattern = "" }),
		"new account":   rewrite("fresh", func(a *mail.Account) { *a = account("fresh") }),
		"setting":       sealed(bucketSettings, "sends_per_hour", "9999"),
		"other setting": sealed(bucketSettings, "commands_per_minute", "99999"),
		"secret":        sealed(bucketSecrets, "work", "another secret"),
		"secret as key": sealed(bucketSecrets, "other", "secret of work"),
		"account gone":  gone(bucketAccounts, "work"),
		"secret gone":   gone(bucketSecrets, "work"),
		"setting gone":  gone(bucketSettings, "deny"),
		"accounts swapped": func(t *testing.T, _, agent *Vault) {
			forge(t, agent, func(tx *transaction) error {
				a, _ := tx.get(bucketAccounts, []byte("work"))
				b, _ := tx.get(bucketAccounts, []byte("home"))
				return errors.Join(tx.put(bucketAccounts, []byte("work"), b), tx.put(bucketAccounts, []byte("home"), a))
			})
		},
		"record of an older generation": func(t *testing.T, admin, agent *Vault) {
			old := sealedRecord(t, agent, bucketSettings, "deny")
			must(t, admin.SetSetting(t.Context(), "deny", "mail send,mail delete"))
			sealed(bucketSettings, "deny", string(old))(t, admin, agent)
		},
		"manifest of an older generation": func(t *testing.T, admin, agent *Vault) {
			old := sealedRecord(t, agent, bucketPolicy, string(manifestKey))
			must(t, admin.SetSetting(t.Context(), "deny", ""))
			sealed(bucketPolicy, string(manifestKey), string(old))(t, admin, agent)
		},
		"grant's accounts": widen(func(g *grantRecord) { g.Accounts = append(g.Accounts, "work") }),
		"grant's profile":  widen(func(g *grantRecord) { g.Profile = "full" }),
		"grant's identity": widen(func(g *grantRecord) { g.Identity = "repo:boss" }),
		"grant's expiry":   widen(func(g *grantRecord) { g.Expires = g.Expires.Add(time.Hour) }),
		"grant's token":    widen(func(g *grantRecord) { g.Digest = bytes.Repeat([]byte{1}, hashSize) }),
		"the last grant, removed and put back": func(t *testing.T, admin, agent *Vault) {
			record := sealedRecord(t, agent, bucketGrants, "laptop")
			must(t, admin.RemoveGrant(t.Context(), "laptop"))
			sealed(bucketGrants, "laptop", string(record))(t, admin, agent)
		},
		"another grant": widen(func(g *grantRecord) { g.Name = "mine" }),
		"grant gone":    gone(bucketGrants, "laptop"),
		"manifest gone": gone(bucketPolicy, string(manifestKey)),
		"manifest cut":  sealed(bucketPolicy, string(manifestKey), "short"),
		"signed with an own key": func(t *testing.T, _, agent *Vault) {
			signed(t, agent, bucketSettings, "deny", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, k := newPlace(t)
			admin, agent := mustOpen(t, path, k, nil), mustOpen(t, path, Keys{Agent: k.Agent}, nil)
			restricted := account("work")
			restricted.Mode, restricted.AllowIn.Enabled, restricted.SubjectPattern = mail.Approve, true, "x"
			must(t, admin.AddAccount(t.Context(), restricted, mail.NewSecret([]byte("secret of work"))))
			mustAdd(t, admin, "home")
			must(t, admin.SetSetting(t.Context(), "deny", "mail send"))
			must(t, admin.SetSetting(t.Context(), "sends_per_hour", "5"))
			granted, token := mustGrant(t, admin, grant("laptop", time.Now().Add(time.Hour), "home"))
			must(t, second(agent.GrantOf(t.Context(), token)))
			verified, err := agent.Account(t.Context(), "work")
			must(t, err)
			forgery(t, admin, agent)
			// The cache is safe: it returns only what was verified, and a secret, which it does not
			// hold, is checked when it is read.
			if a, err := agent.Account(t.Context(), "work"); !errors.Is(err, ErrUntrustedPolicy) && (err != nil || !reflect.DeepEqual(a, verified)) {
				t.Errorf("who verified the account before sees %+v, %v", a, err)
			}
			if s, err := agent.Secret(t.Context(), "work"); !errors.Is(err, ErrUntrustedPolicy) && (err != nil || s.Reveal() != "secret of work") {
				t.Errorf("who verified the policy before sees another secret: %v", err)
			}
			wantErr(t, admin.SetSetting(t.Context(), "deny", ""), ErrUntrustedPolicy, "the admin that was running signs beside it")
			if strings.Contains(name, "grant") && !strings.Contains(name, "last") {
				if now, err := agent.GrantOf(t.Context(), token); err != nil || !reflect.DeepEqual(now, granted) {
					t.Errorf("who verified the grant before sees %+v, %v", now, err)
				}
			}
			forgotten := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
			wantErr(t, second(forgotten.Accounts(t.Context())), ErrUntrustedPolicy, "a new agent reads accounts")
			wantErr(t, second(forgotten.Config(t.Context())), ErrUntrustedPolicy, "a new agent reads settings")
			wantErr(t, second(forgotten.Secret(t.Context(), "work")), ErrUntrustedPolicy, "a new agent reads a secret")
			wantErr(t, second(forgotten.GrantOf(t.Context(), token)), ErrUntrustedPolicy, "a new agent takes a token")
			fresh := mustOpen(t, path, k, nil)
			wantErr(t, fresh.SetSetting(t.Context(), "timezone", "UTC"), ErrUntrustedPolicy, "the admin signs on top of it")
			wantErr(t, fresh.Check(t.Context()), ErrUntrustedPolicy, "Check")
		})
	}
}

func TestAReplacedPolicyKeyIsFoundByTheAdminAndThePin(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	agent := mustOpen(t, path, Keys{Agent: k.Agent}, nil)
	pin := agent.Fingerprint()
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	forge(t, agent, func(tx *transaction) error {
		p := &policy{generation: 9, records: map[string]map[string][]byte{bucketSettings: {"deny": nil}}}
		return errors.Join(
			tx.Put(bucketHeaders, []byte("public"), public),
			tx.put(bucketSettings, []byte("deny"), nil),
			tx.put(bucketPolicy, manifestKey, signManifest(private, agent.id, p)))
	})
	wantErr(t, second(Open(t.Context(), path, k, nil)), ErrUntrustedPolicy, "the admin")
	wantErr(t, second(Open(t.Context(), path, Keys{Agent: k.Agent}, &Options{PolicyPin: pin})), ErrPolicyPin, "an agent with the pin")
	wantErr(t, second(agent.Accounts(t.Context())), ErrUntrustedPolicy, "an agent that was running")
}

func TestMovedValuesDoNotOpen(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	mustAdd(t, v, "work")
	put := func(tx kv.Tx) error {
		return errors.Join(tx.Put("a", []byte("one"), []byte("1")), tx.Put("b", []byte("one"), []byte("2")))
	}
	must(t, v.Update(t.Context(), put))
	var raw []byte
	rawUpdate(t, v, func(tx kv.Tx) (err error) {
		raw, err = tx.Get(statePrefix+"a", []byte("one"))
		return errors.Join(err, tx.Put(statePrefix+"a", []byte("two"), raw), tx.Put(statePrefix+"b", []byte("one"), raw))
	})
	read := func(bucket, key string) (value []byte, err error) {
		err = v.View(t.Context(), func(tx kv.Tx) error {
			value, err = tx.Get(bucket, []byte(key))
			return err
		})
		return value, err
	}
	if value, err := read("a", "one"); err != nil || string(value) != "1" {
		t.Errorf("in its place: %q, %v", value, err)
	}
	for _, place := range [][2]string{{"a", "two"}, {"b", "one"}} {
		if value, err := read(place[0], place[1]); !errors.Is(err, ErrDamaged) {
			t.Errorf("moved to %v: %q, %v; want ErrDamaged", place, value, err)
		}
	}
	// Even another vault with the same data key differs by its id.
	values := v.keys.Load().values
	s := &sealer{aead: values.aead, id: bytes.Repeat([]byte{1}, idSize)}
	if _, err := s.open(statePrefix+"a", []byte("one"), raw); err == nil {
		t.Error("it opens in another vault")
	}
	if bytes.Equal(values.seal("b", []byte("k"), []byte("v")), values.seal("b", []byte("k"), []byte("v"))) {
		t.Error("one value sealed twice gives the same bytes")
	}
}

func TestAVaultShowsNoSecret(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	admin := mustOpen(t, path, k, nil)
	a := account("work")
	a.AllowOut.Entries = []string{"entry-in-the-list@example.org"}
	must(t, admin.AddAccount(t.Context(), a, mail.NewSecret([]byte("correct horse battery"))))
	must(t, admin.Record(t.Context(), entry("mail get SOMETHING")))
	must(t, admin.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("s", []byte("k"), []byte("state value here")) }))
	o := outgoing(1, func(o *mail.Outgoing) { o.Key = "0123456789abcdef" })
	mustAddOutgoing(t, admin, o, []byte("Subject: quarterly figures\r\n\r\nbody-of-the-letter"))
	_, token := mustGrant(t, admin, grant("laptop", time.Now().Add(time.Hour), "work"))
	b := vaulttest.Content(t, path)
	// The record of a grant does not hold its token, even for a holder of the agent key.
	must(t, admin.view(t.Context(), func(tx *transaction) error {
		return tx.each(bucketGrants, func(_, value []byte) error {
			if bytes.Contains(value, []byte(strings.TrimPrefix(token, GrantTokenPrefix))) {
				t.Error("a token is kept")
			}
			return nil
		})
	}))
	if !bytes.Contains(b, []byte(o.ID)) {
		t.Error("it does not even hold the id: the test looks in the wrong place")
	}
	for _, plain := range []string{strings.TrimPrefix(token, GrantTokenPrefix), "correct horse", "imap.example.org", "entry-in-the-list", "SOMETHING", "state value",
		"quarterly", "body-of-the-letter", "bob@example.net", "ann@example.org", "one@example.org"} {
		if bytes.Contains(b, []byte(plain)) {
			t.Errorf("it shows %q", plain)
		}
	}
}

// sealedRecord returns what is sealed in a record.
func sealedRecord(t *testing.T, agent *Vault, bucket, key string) (record []byte) {
	forge(t, agent, func(tx *transaction) (err error) {
		record, err = tx.get(bucket, []byte(key))
		return err
	})
	return record
}

// signed changes a record and signs the policy with a key of its own.
func signed(t *testing.T, agent *Vault, bucket, key string, record []byte) {
	_, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	forge(t, agent, func(tx *transaction) error {
		p, err := agent.policy(tx)
		must(t, err)
		own := &policy{generation: p.generation + 1, records: maps.Clone(p.records)}
		if own.records[bucket] = maps.Clone(p.records[bucket]); own.records[bucket] == nil {
			own.records[bucket] = map[string][]byte{}
		}
		own.records[bucket][key] = record
		return errors.Join(tx.put(bucket, []byte(key), record), tx.put(bucketPolicy, manifestKey, signManifest(private, agent.id, own)))
	})
}

// rewrite forges an account's record.
func rewrite(name string, edit func(*mail.Account)) func(*testing.T, *Vault, *Vault) {
	return func(t *testing.T, _, agent *Vault) {
		forge(t, agent, func(tx *transaction) error {
			var a mail.Account
			b, err := tx.get(bucketAccounts, []byte(name))
			if must(t, err); b != nil {
				must(t, json.Unmarshal(b, &a))
			}
			edit(&a)
			b, err = json.Marshal(a)
			must(t, err)
			return tx.put(bucketAccounts, []byte(name), b)
		})
	}
}

// widen forges a grant's record.
func widen(change func(*grantRecord)) func(*testing.T, *Vault, *Vault) {
	return func(t *testing.T, _, agent *Vault) {
		forge(t, agent, func(tx *transaction) error {
			record, err := tx.get(bucketGrants, []byte("laptop"))
			must(t, err)
			g, err := parseGrant("laptop", record)
			must(t, err)
			change(&g)
			record, err = json.Marshal(g)
			must(t, err)
			return tx.put(bucketGrants, []byte(g.Name), record)
		})
	}
}

// sealed forges a record with the given value.
func sealed(bucket, key, value string) func(*testing.T, *Vault, *Vault) {
	return func(t *testing.T, _, agent *Vault) {
		forge(t, agent, func(tx *transaction) error { return tx.put(bucket, []byte(key), []byte(value)) })
	}
}

// gone deletes a record.
func gone(bucket, key string) func(*testing.T, *Vault, *Vault) {
	return func(t *testing.T, _, agent *Vault) {
		forge(t, agent, func(tx *transaction) error { return tx.Delete(bucket, []byte(key)) })
	}
}

// A reader in a database sees the moment at which it began, whatever the process has verified
// since: that is no policy that went back.
func TestASlowReaderSeesNoPolicyThatWentBack(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v := mustOpen(t, path, k, nil)
	mustAdd(t, v, "work")
	done := make(chan error, 1)
	must(t, v.view(t.Context(), func(tx *transaction) error {
		if _, _, err := policyOf(tx); err != nil { // so that it has its moment
			return err
		}
		go func() {
			err := v.SetSetting(t.Context(), "sends_per_hour", "7")
			if err == nil {
				_, err = v.Account(t.Context(), "work")
			}
			done <- err
		}()
		if vaulttest.InDatabase() { // the writer of a file waits for its readers
			must(t, <-done)
			done <- nil
		}
		_, err := v.policy(tx)
		return err
	}))
	must(t, <-done)
}
