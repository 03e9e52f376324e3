package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

// orders are what a process of a test is told, in a variable of its environment.
type orders struct {
	Path, Key string // the vault and its agent key
	Account   mail.Account
	Die       string           // the moment at which the process kills itself
	Approve   bool             // the entry that waits, in place of Requests
	Requests  []outbox.Request // one after the other
	Together  bool             // all at once
	Asked     string           // a file: it gets a line for each request that unsubscribes
}

// Post is a request that unsubscribes.
func (o orders) Post(_ context.Context, uri string) error {
	f, err := os.OpenFile(o.Asked, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, uri)
		_ = f.Close()
	}
	if o.Die == "after asked" {
		die()
	}
	return err
}

const ordersVar = "OUTBOX_TEST_ORDERS"

// The test binary is also those processes. This is no TestMain, so that other tests
// of the package can have one.
func init() {
	if text := os.Getenv(ordersVar); text != "" {
		if err := runProcess([]byte(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// die ends the process as SIGKILL does, at once and without a word.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// fakeDyingStore is a store whose process dies at one moment.
type fakeDyingStore struct {
	*vault.Vault
	moment string
}

func (s fakeDyingStore) AddOutgoing(ctx context.Context, o mail.Outgoing, message []byte) (kept mail.Outgoing, added bool, err error) {
	if s.moment == "before add" {
		die()
	}
	kept, added, err = s.Vault.AddOutgoing(ctx, o, message)
	if s.moment == "after add" {
		die()
	}
	return kept, added, err
}

func (s fakeDyingStore) ChangeOutgoing(ctx context.Context, id string, change func(*mail.Outgoing) (bool, error)) (mail.Outgoing, error) {
	moment := ""
	kept, err := s.Vault.ChangeOutgoing(ctx, id, func(o *mail.Outgoing) (bool, error) {
		before := *o
		drop, err := change(o)
		switch {
		case err != nil:
		case o.State == mail.OutboxUnknown && before.State != mail.OutboxUnknown:
			moment = "gate"
		case o.Attempt != "" && o.Plan != nil && o.Plan.Outcome != before.Plan.Outcome:
			moment = "piece"
		case o.State != before.State && (o.State == mail.OutboxAccepted || o.State == mail.OutboxDone):
			moment = "outcome"
		case o.Sent == mail.SentFiled:
			moment = "filed"
		case o.Attempt != before.Attempt:
			moment = "claim"
		}
		if moment != "" && s.moment == "before "+moment {
			die() // nothing of the transaction is kept
		}
		return drop, err
	})
	if moment != "" && s.moment == "after "+moment {
		die()
	}
	return kept, err
}

func runProcess(text []byte) error {
	var o orders
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	ctx := context.Background()
	v, err := vault.Open(ctx, o.Path, vault.Keys{Agent: mail.NewSecret([]byte(o.Key))}, nil)
	if err != nil {
		return err
	}
	d := &mailtest.Directory{Known: map[string]mail.Account{account: o.Account}, Password: servertest.Password}
	boxes := mailbox.New(mailbox.Options{Directory: d, Journal: agentJournal{v}})
	defer func() { _ = boxes.Close() }()
	b := outbox.New(outbox.Options{Directory: d, Mailboxes: boxes, Store: fakeDyingStore{v, o.Die}, Journal: agentJournal{v},
		Key: func(ctx context.Context) ([]byte, error) { return v.Key(ctx, "outbox") }, Requests: o})
	if o.Approve {
		entries, _, err := b.List(ctx, mail.OutboxQuery{})
		if err != nil {
			return err
		}
		_, err = b.Approve(ctx, entries[0].ID, entries[0].Digest, "ann")
		return err
	}
	var wg sync.WaitGroup
	for _, r := range o.Requests {
		if o.Together {
			wg.Go(func() {
				if e, err := b.Send(ctx, account, r); e == nil || err != nil && kind(err) != mail.KindConflict {
					fmt.Fprintf(os.Stderr, "%+v, %v\n", e, err)
				}
			})
		} else if _, err := b.Send(ctx, account, r); err != nil {
			return err
		}
	}
	wg.Wait()
	return nil
}

// crashFixture is a vault that processes die on, and the servers they talk to.
type crashFixture struct {
	t       *testing.T
	path    string
	key     mail.Secret
	server  *fakeSubmissionServer
	mailbox *mailboxFixture
	a       mail.Account
}

func newCrashFixture(t *testing.T, mode mail.Mode, change ...func(*mail.Account)) *crashFixture {
	t.Helper()
	c := &crashFixture{t: t, server: newFakeSubmission(t)}
	c.path, c.key = newVaultFile(t)
	b := mailtest.Open(t, mailtest.InMemory(t), "ann")
	o := fixtureOn(t, openVault(t, c.path, c.key), c.server, func(a *mail.Account) {
		a.IMAP, a.SentCopy, a.Mode = b.Dir.Known[account].IMAP, mail.SentAuto, mode
		for _, do := range change {
			do(a)
		}
		c.a = *a
	})
	o.dir.Password = servertest.Password
	c.mailbox = &mailboxFixture{o, b}
	c.mailbox.create("Sent")
	return c
}

func (c *crashFixture) process(o orders) (*exec.Cmd, *bytes.Buffer) {
	c.t.Helper()
	self, err := os.Executable()
	must(c.t, err)
	o.Path, o.Key, o.Account = c.path, c.key.Reveal(), c.a
	text, err := json.Marshal(o)
	must(c.t, err)
	var errOut bytes.Buffer
	cmd := exec.Command(self)
	cmd.Stderr = &errOut
	// With the race detector it would wait a second before it ends.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10", ordersVar+"="+string(text))
	return cmd, &errOut
}

// kill runs a process that dies at a moment: by itself at one of the store, or when
// the server reaches one of its steps.
func (c *crashFixture) kill(moment string, o orders) {
	c.t.Helper()
	o.Die = moment
	cmd, errOut := c.process(o)
	// The server knows before the process can reach it, however late this goroutine has its
	// next turn.
	started := make(chan struct{})
	if step, ok := strings.CutPrefix(moment, "server "); ok {
		c.server.fault(step, fault{do: func() { <-started; _ = cmd.Process.Kill() }, cut: true})
	}
	must(c.t, cmd.Start())
	close(started)
	err := cmd.Wait()
	c.server.at(nil)
	if err == nil || errOut.Len() > 0 {
		c.t.Fatalf("the process was to die at %q: %v, %s", moment, err, errOut.String())
	}
}

// TestKilledAtAnyMomentNothingIsSentTwiceOrLost kills a process that sends a message, and one
// that sends a draft that a person approved, at each moment between two writes or two steps
// of the wire. The record must fit what the server has, and the same request afterwards must
// not make it have two. A draft is in its folder until the server took it.
func TestKilledAtAnyMomentNothingIsSentTwiceOrLost(t *testing.T) {
	t.Parallel()
	moments := testmain.Table[struct {
		Name  string
		Taken int
		Left  []string
	}](t, "testdata/cases/moments.txt")
	if vaulttest.Size(0, 1) > 0 { // each starts a process: queued, behind the gate, and taken
		moments = append(moments[1:2:2], moments[10], moments[14])
	}
	for mode, draft := range map[mail.Mode]bool{mail.ReadWrite: false, mail.Approve: true} {
		for _, m := range moments {
			adding, claiming := strings.HasSuffix(m.Name, " add"), strings.HasSuffix(m.Name, " claim")
			if mode == mail.ReadWrite && claiming || mode == mail.Approve && adding {
				continue
			}
			t.Run(string(mode)+" "+m.Name, func(t *testing.T) {
				t.Parallel()
				c := newCrashFixture(t, mode)
				d := c.mailbox
				request := hello(keyed("k"))
				drafts := func(want int) {
					t.Helper()
					if got := len(d.In("Drafts")); draft && got != want {
						t.Errorf("%d drafts, want %d", got, want)
					}
				}
				if draft {
					ref := d.saved(request.Draft)
					request = outbox.Request{Stored: &ref, Principal: "agent"}
				}
				if mode == mail.Approve {
					if e := d.mustSend(request); e.State != mail.OutboxWaiting {
						t.Fatalf("entry %+v", e)
					}
				}
				c.kill(m.Name, orders{Approve: mode == mail.Approve, Requests: []outbox.Request{request}})

				want := slices.Clone(m.Left)
				if mode == mail.Approve && want[0] == string(mail.OutboxQueued) {
					want[0] = string(mail.OutboxWaiting)
				}
				if m.Name == "before filed" || m.Name == "after filed" {
					drafts(0)
				} else {
					drafts(1)
				}
				state := mail.OutboxState("none")
				entries := d.entries()
				if len(entries) == 1 {
					state = entries[0].State
				}
				if len(entries) > 1 || !slices.Contains(want, string(state)) || len(d.server.messages()) != m.Taken {
					t.Fatalf("left %d entries, %q, want %q; the server took %d, want %d", len(entries), state, want, len(d.server.messages()), m.Taken)
				}
				if state != "none" && state != mail.OutboxAccepted {
					if _, err := d.vault.OutgoingMessage(t.Context(), entries[0].ID); err != nil {
						t.Errorf("the message is lost: %v", err)
					}
				}
				if err := d.vault.Check(t.Context()); err != nil {
					t.Errorf("the vault: %v", err)
				}

				if m.Name == "before filed" { // whoever has the lease may still be at it
					if e := d.mustSend(request); e.Sent != mail.SentPending || len(d.In("Sent")) != 1 {
						t.Errorf("while its lease lasts: %+v", e)
					}
				}
				d.now = func() time.Time { return time.Now().Add(time.Hour) } // the lease of the dead is over
				e := d.mustSend(request)
				if state == mail.OutboxWaiting && e.State == mail.OutboxWaiting {
					if e, err := d.Approve(t.Context(), e.ID, e.Digest, "ann"); err != nil || e.State != mail.OutboxAccepted {
						t.Errorf("approved again: %+v, %v", e, err)
					}
				}
				taken := len(d.server.messages())
				switch after := d.entries()[0]; {
				case state == mail.OutboxUnknown:
					drafts(1)
					if after.State != mail.OutboxUnknown || taken != m.Taken {
						t.Errorf("an unknown message became %+v; the server took %d", after, taken)
					}
				case after.State != mail.OutboxAccepted || taken != 1 || after.Sent != mail.SentFiled || len(d.In("Sent")) != 1:
					t.Errorf("%+v; the server took %d; %d copies", after, taken, len(d.In("Sent")))
				default:
					drafts(0)
				}
			})
		}
	}
}

// TestManyProcessesWithOneKeySendOnce runs three processes with twenty requests each
// beside twenty of its own.
func TestManyProcessesWithOneKeySendOnce(t *testing.T) {
	t.Parallel()
	c := newCrashFixture(t, mail.ReadWrite)
	var wg sync.WaitGroup
	for range 3 {
		cmd, errOut := c.process(orders{Requests: slices.Repeat([]outbox.Request{hello(keyed("k"))}, 20), Together: true})
		wg.Go(func() {
			if err := cmd.Run(); err != nil || errOut.Len() > 0 {
				t.Errorf("%v: %s", err, errOut.String())
			}
		})
	}
	for range 20 {
		wg.Go(func() {
			if e, err := c.mailbox.Send(t.Context(), account, hello(keyed("k"))); e == nil || err != nil && kind(err) != mail.KindConflict {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
	wg.Wait()
	d := c.mailbox
	if e := d.mustSend(hello(keyed("k"))); e.State != mail.OutboxAccepted || len(d.server.messages()) != 1 || len(d.entries()) != 1 || len(d.In("Sent")) != 1 {
		t.Errorf("%+v; the server took %d, %d entries, %d copies", e, len(d.server.messages()), len(d.entries()), len(d.In("Sent")))
	}
}
