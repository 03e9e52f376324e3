package outbox_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/outbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/vaulttest"
)

const account = mailtest.Account

// outboxFixture is an outbox on a vault of its own and a submission server.
type outboxFixture struct {
	*outbox.Outbox
	t      testing.TB
	server *fakeSubmissionServer
	vault  *vault.Vault
	dir    *mailtest.Directory
	boxes  *mailbox.Client
	take   func(principal string) time.Duration
	taken  int
	now    func() time.Time
	ask    func(ctx context.Context, uri string) error // makes the requests that unsubscribe
}

// Post makes a request that unsubscribes.
func (o *outboxFixture) Post(ctx context.Context, uri string) error { return o.ask(ctx, uri) }

func newFixture(t testing.TB, server *fakeSubmissionServer, change ...func(*mail.Account)) *outboxFixture {
	t.Helper()
	return fixtureOn(t, newTestVault(t), server, change...)
}

// fixtureOn is an outboxFixture on a vault that there is.
func fixtureOn(t testing.TB, v *vault.Vault, server *fakeSubmissionServer, change ...func(*mail.Account)) *outboxFixture {
	t.Helper()
	o := &outboxFixture{t: t, server: server, vault: v, now: time.Now}
	a := sendingAccount(server.port)
	for _, c := range change {
		c(&a)
	}
	o.dir = &mailtest.Directory{Known: map[string]mail.Account{a.Name: a}, Password: "secret"}
	boxes := mailbox.New(mailbox.Options{Directory: o.dir, Journal: agentJournal{v}})
	t.Cleanup(func() { _ = boxes.Close() })
	o.boxes = boxes
	o.Outbox = outbox.New(outbox.Options{Directory: o.dir, Mailboxes: boxes, Store: o.vault, Journal: agentJournal{v},
		Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") },
		Take: func(_ context.Context, principal string, charge bool) (time.Duration, error) {
			if o.take != nil {
				if wait := o.take(principal); wait > 0 {
					return wait, nil
				}
			}
			if charge {
				o.taken++
			}
			return 0, nil
		},
		Now: func() time.Time { return o.now() }, Requests: o})
	return o
}

// agentJournal is a vault's journal for changes of one principal.
type agentJournal struct{ *vault.Vault }

func (j agentJournal) BeginChange(ctx context.Context, c *mail.Change, unasked int) error {
	c.Principal = "agent"
	return j.Vault.BeginChange(ctx, c, unasked)
}

func newTestVault(t testing.TB) *vault.Vault {
	t.Helper()
	path, key := newVaultFile(t)
	return openVault(t, path, key)
}

// newVaultFile makes a vault, in a file or a database, and returns where it is and its agent key.
func newVaultFile(t testing.TB) (path string, key mail.Secret) {
	t.Helper()
	path = vaulttest.New(t)
	var k vault.Keys
	for _, s := range []*mail.Secret{&k.Admin, &k.Agent} {
		text, err := vault.NewKey()
		must(t, err)
		*s = mail.NewSecret([]byte(text))
	}
	must(t, second(vault.Init(t.Context(), path, k)))
	return path, k.Agent
}

func openVault(t testing.TB, path string, key mail.Secret) *vault.Vault {
	t.Helper()
	v, err := vault.Open(t.Context(), path, vault.Keys{Agent: key}, nil)
	must(t, err)
	return v
}

// sendingAccount has no IMAP server that answers, so that it is never asked for by
// mistake, and wants no copy.
func sendingAccount(port uint16) mail.Account {
	return mail.Account{Name: account, Email: "ann@example.org", DisplayName: "Ann Lee", Protocol: mail.IMAP, Username: "ann", Auth: mail.AuthPassword,
		Mode: mail.ReadWrite, SentCopy: mail.SentNever,
		AllowOut: mail.AllowList{Enabled: true, Entries: []string{"@example.net", "carol@example.com"}},
		IMAP:     mail.Endpoint{Host: "127.0.0.1", Port: 1, Security: mail.Plaintext},
		SMTP:     mail.Endpoint{Host: "127.0.0.1", Port: port, Security: mail.Plaintext}}
}

func hello(change ...func(*outbox.Request)) outbox.Request {
	r := outbox.Request{Principal: "agent", Draft: outbox.Draft{To: []mail.Address{{Name: "Bob", Addr: "bob@example.net"}}, Subject: "Hello", Body: "Hello, Bob.\n" + strings.Repeat("More of it.\n", 20)}}
	for _, c := range change {
		c(&r)
	}
	return r
}

func keyed(key string) func(*outbox.Request) { return func(r *outbox.Request) { r.Key = key } }
func approving(a *mail.Account)              { a.Mode = mail.Approve }

// kind returns the kind of an error of the package.
func kind(err error) mail.Kind {
	var e *mail.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// sendOrForesee sends, or in a dry run returns the entry that is foreseen.
func (o *outboxFixture) sendOrForesee(r outbox.Request, dry bool) (*mail.Outgoing, error) {
	if !dry {
		return o.Send(o.t.Context(), account, r)
	}
	d, err := o.Foresee(o.t.Context(), account, r, false)
	if err != nil {
		return nil, err
	}
	return &d.Outgoing, nil
}

func (o *outboxFixture) mustSend(r outbox.Request) *mail.Outgoing {
	o.t.Helper()
	e, err := o.Send(o.t.Context(), account, r)
	if err != nil {
		o.t.Fatalf("Send: %v (%+v)", err, e)
	}
	return e
}

func (o *outboxFixture) entry(id string) mail.Outgoing {
	o.t.Helper()
	e, err := o.vault.Outgoing(o.t.Context(), id)
	must(o.t, err)
	return e
}

func (o *outboxFixture) entries() []mail.Outgoing {
	o.t.Helper()
	list, _, err := o.List(o.t.Context(), mail.OutboxQuery{})
	must(o.t, err)
	return list
}

func TestSendReachesEveryRecipientAndHidesBCC(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	e := o.mustSend(hello(func(r *outbox.Request) {
		r.Draft.CC = []mail.Address{{Addr: "carol@example.com"}}
		r.Draft.BCC = []mail.Address{{Name: "Dan", Addr: "dan@example.net"}, {Addr: "BOB@example.net"}}
		r.Draft.Attachments = []outbox.Attachment{{Name: "a.txt", Content: []byte("text of a file")}}
	}))
	got := o.server.messages()
	if len(got) != 1 {
		t.Fatalf("the server took %d messages", len(got))
	}
	if want := []string{"bob@example.net", "carol@example.com", "dan@example.net"}; !slices.Equal(got[0].to, want) || got[0].from != "ann@example.org" {
		t.Errorf("envelope %s -> %v, want %v", got[0].from, got[0].to, want)
	}
	// A boundary or an id may hold these letters by chance.
	if raw := strings.ToLower(got[0].raw); strings.Contains(got[0].raw, "Dan") || strings.Contains(raw, "dan@") || strings.Contains(raw, "\nbcc") {
		t.Errorf("the message tells of BCC:\n%s", got[0].raw)
	}
	for _, want := range []string{"From: Ann Lee <ann@example.org>\r\n", "To: Bob <bob@example.net>\r\n", "Cc: carol@example.com\r\n", "Subject: Hello\r\n", "Message-ID: " + e.MessageID + "\r\n"} {
		if !strings.Contains(got[0].raw, want) {
			t.Errorf("the message has no %q:\n%s", want, got[0].raw)
		}
	}
	if e.State != mail.OutboxAccepted || e.Code != 250 || e.Sent != mail.SentNone || e.Size != int64(len(got[0].raw)) || e.Attempts != 1 || e.Replayed || o.taken != 1 {
		t.Errorf("entry %+v, charged %d", e, o.taken)
	}
	if _, err := o.vault.OutgoingMessage(t.Context(), e.ID); !errors.Is(err, mail.ErrNoOutgoing) {
		t.Errorf("the bytes are still there: %v", err)
	}
	if len(e.Attachments) != 1 || e.Attachments[0] != (mail.FileName{Name: "a.txt", Type: "text/plain", Size: 14}) {
		t.Errorf("attachments %+v", e.Attachments)
	}
	o.mustSend(hello(func(r *outbox.Request) { r.Draft.To, r.Draft.BCC = nil, []mail.Address{{Addr: "bob@example.net"}} }))
	if got := o.server.messages()[1]; !slices.Equal(got.to, []string{"bob@example.net"}) || strings.Contains(got.raw, "bob") {
		t.Errorf("with hidden recipients alone the server has %+v", got)
	}
}

// TestSendRefusesBeforeAnythingLeaves goes through what is refused with no word to
// the server, no entry and no charge.
func TestSendRefusesBeforeAnythingLeaves(t *testing.T) {
	t.Parallel()
	many := func(n int) (out []mail.Address) {
		for i := range n {
			out = append(out, mail.Address{Addr: fmt.Sprintf("p%d@example.net", i)})
		}
		return out
	}
	o := newFixture(t, newFakeSubmission(t))
	before := o.dir.Known[account]
	for name, c := range map[string]struct {
		account func(*mail.Account)
		request func(*outbox.Request)
		kind    mail.Kind
		reason  string // of a SendRefused
	}{
		"read-only account": {account: func(a *mail.Account) { a.Mode = mail.ReadOnly }, reason: mail.ReasonReadOnly},
		"one of three not allowed": {request: func(r *outbox.Request) {
			r.Draft.BCC = []mail.Address{{Addr: "carol@example.com"}, {Addr: "x@example.com"}}
		}, reason: mail.ReasonAllowList},
		"empty list":            {account: func(a *mail.Account) { a.AllowOut.Entries = nil }, reason: mail.ReasonAllowList},
		"nobody":                {request: func(r *outbox.Request) { r.Draft.To = nil }, reason: mail.ReasonAddress},
		"no address":            {request: func(r *outbox.Request) { r.Draft.CC = []mail.Address{{Addr: "bob"}} }, kind: mail.KindInvalid},
		"header injection":      {request: func(r *outbox.Request) { r.Draft.Subject = "x\r\nBcc: eve@example.com" }, kind: mail.KindInvalid},
		"injection by name":     {request: func(r *outbox.Request) { r.Draft.To = []mail.Address{{Name: "x\r\nBcc: e", Addr: "a@example.net"}} }, kind: mail.KindInvalid},
		"a domain not in ASCII": {request: func(r *outbox.Request) { r.Draft.To = []mail.Address{{Addr: "a@bücher.example"}} }, kind: mail.KindInvalid, account: func(a *mail.Account) { a.AllowOut = mail.AllowList{} }},
		"101 recipients":        {request: func(r *outbox.Request) { r.Draft.To = many(101) }, kind: mail.KindInvalid},
		"21 attachments":        {request: func(r *outbox.Request) { r.Draft.Attachments = make([]outbox.Attachment, 21) }, kind: mail.KindInvalid},
		"attachments too large": {request: func(r *outbox.Request) {
			r.Draft.Attachments = []outbox.Attachment{{Name: "a", Content: make([]byte, outbox.MaxAttachmentBytes)}, {Name: "b", Content: []byte("x")}}
		}, kind: mail.KindInvalid},
		"body too large":      {request: func(r *outbox.Request) { r.Draft.Body = strings.Repeat("x", outbox.MaxBodyBytes+1) }, kind: mail.KindInvalid},
		"key too long":        {request: keyed(strings.Repeat("k", 129)), kind: mail.KindInvalid},
		"key with a space":    {request: keyed("a b"), kind: mail.KindInvalid},
		"no submission":       {account: func(a *mail.Account) { a.SMTP = mail.Endpoint{} }, kind: mail.KindConfig},
		"broken account":      {account: func(a *mail.Account) { a.Mode = "x" }, kind: mail.KindConfig},
		"plaintext elsewhere": {account: func(a *mail.Account) { a.SMTP.Host = "mail.example.org" }, kind: mail.KindConfig},
		"reply across accounts": {request: func(r *outbox.Request) {
			r.Draft.ReplyTo = &mail.Ref{Protocol: mail.IMAP, Account: "other", Folder: "INBOX", UIDValidity: 1, UID: 1}
		}, kind: mail.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			a := before
			if c.account != nil {
				c.account(&a)
			}
			o.dir.Set(a)
			r := hello()
			if c.request != nil {
				c.request(&r)
			}
			for _, dry := range []bool{false, true} {
				e, err := o.sendOrForesee(r, dry)
				var refused *mail.SendRefused
				if e != nil || err == nil || kind(err) != c.kind || errors.As(err, &refused) != (c.reason != "") || refused != nil && refused.Reason != c.reason {
					t.Errorf("dry %v: %+v, %v", dry, e, err)
				}
			}
			if n := len(o.server.commands()); n > 0 || len(o.entries()) > 0 || o.taken > 0 {
				t.Errorf("%d commands, %d entries, charged %d", n, len(o.entries()), o.taken)
			}
		})
	}
	o.dir.Set(before)
	if _, err := o.Send(t.Context(), "nobody", hello()); !errors.Is(err, mail.ErrNoAccount) {
		t.Errorf("no such account: %v", err)
	}
	o.mustSend(hello(func(r *outbox.Request) { r.Draft.To = many(100) }))
	if got := o.server.messages(); len(got) != 1 || len(got[0].to) != 100 {
		t.Error("100 recipients did not pass")
	}
}

func TestSendChargesAfterEverythingElsePassed(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	o.take = func(principal string) time.Duration {
		if principal != "agent" {
			t.Errorf("charged %q", principal)
		}
		return 90 * time.Second
	}
	_, err := o.Send(t.Context(), account, hello(keyed("k")))
	var limited *outbox.Limited
	if !errors.As(err, &limited) || limited.Wait != 90*time.Second {
		t.Fatalf("Send: %v", err)
	}
	if _, err := o.sendOrForesee(hello(), true); !errors.As(err, &limited) {
		t.Errorf("a dry run: %v", err)
	}
	if n := len(o.server.commands()); n > 0 || len(o.entries()) > 0 {
		t.Errorf("%d commands, %d entries", n, len(o.entries()))
	}
	o.take = nil
	charged := o.taken
	if _, err := o.sendOrForesee(hello(), true); err != nil || o.taken != charged {
		t.Errorf("a dry run was charged: %v", err)
	}
	o.mustSend(hello(keyed("k")))
	o.take = func(string) time.Duration { t.Error("a repeated request was charged"); return 0 }
	if e := o.mustSend(hello(keyed("k"))); !e.Replayed || e.State != mail.OutboxAccepted {
		t.Errorf("repeated: %+v", e)
	}
}

func TestSameKeyIsOneMessage(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	first := o.mustSend(hello(keyed("first-key")))
	again := o.mustSend(hello(keyed("first-key")))
	if again.ID != first.ID || !again.Replayed || len(o.server.messages()) != 1 {
		t.Errorf("again %+v, server has %d", again, len(o.server.messages()))
	}
	for name, other := range map[string]func(*outbox.Request){
		"subject":    func(r *outbox.Request) { r.Draft.Subject = "Bye" },
		"body":       func(r *outbox.Request) { r.Draft.Body += "x" },
		"recipient":  func(r *outbox.Request) { r.Draft.To = []mail.Address{{Name: "Bob", Addr: "eve@example.net"}} },
		"name":       func(r *outbox.Request) { r.Draft.To = []mail.Address{{Name: "Rob", Addr: "bob@example.net"}} },
		"to cc":      func(r *outbox.Request) { r.Draft.To, r.Draft.CC = nil, r.Draft.To },
		"attachment": func(r *outbox.Request) { r.Draft.Attachments = []outbox.Attachment{{Name: "a"}} },
	} {
		e, err := o.Send(t.Context(), account, hello(keyed("first-key"), other))
		if e != nil || kind(err) != mail.KindConflict {
			t.Errorf("another %s: %+v, %v", name, e, err)
		}
	}
	second := o.mustSend(hello(keyed("second-key")))
	if second.ID == first.ID || second.MessageID == first.MessageID || second.Replayed || len(o.server.messages()) != 2 {
		t.Errorf("another key: %+v", second)
	}
	// The names of a key's message are the same wherever it is sent from, and tell
	// nothing of the key.
	if strings.Contains(first.MessageID+first.Key, "first") || len(first.Key) != 64 || first.Key == second.Key {
		t.Errorf("names %q %q", first.MessageID, first.Key)
	}
}

// TestEveryFaultOfTheServerIsToldAsItWas compares, for each fault at each step, the
// answer and the record with what the server took.
func TestEveryFaultOfTheServerIsToldAsItWas(t *testing.T) {
	t.Parallel()
	type want struct {
		without, with mail.OutboxState // without and with a key
		code          int
		temporary     bool
	}
	queued := want{without: mail.OutboxRefused, with: mail.OutboxQueued, temporary: true}
	refused := func(code int) want {
		if code < 500 {
			return want{mail.OutboxRefused, mail.OutboxQueued, code, true}
		}
		return want{mail.OutboxRefused, mail.OutboxRefused, code, false}
	}
	unknown := want{without: mail.OutboxUnknown, with: mail.OutboxUnknown}
	type faultCase struct {
		name string
		step string
		do   fault
		want want
	}
	faults := []faultCase{
		{"cut at connect", stepConnect, fault{cut: true}, queued},
		{"cut at EHLO", stepHello, fault{cut: true}, queued},
		{"cut at AUTH", stepAuth, fault{cut: true}, queued},
		{"cut at MAIL", stepMail, fault{cut: true}, queued},
		{"cut at RCPT", stepRcpt, fault{cut: true}, queued},
		{"cut at the dot", stepDot, fault{cut: true}, unknown},
		{"cut after taking it", stepTaken, fault{cut: true}, unknown},
		{"garbage after taking it", stepTaken, fault{reply: "what?"}, unknown},
		{"cut after the answer", stepAnswered, fault{cut: true}, want{without: mail.OutboxAccepted, with: mail.OutboxAccepted, code: 250}},
	}
	for _, code := range []int{450, 550} {
		reply := fault{reply: fmt.Sprintf("%d 4.0.0 not this one", code)}
		for _, step := range []string{stepMail, stepRcpt, stepData, stepDot} {
			faults = append(faults, faultCase{fmt.Sprintf("%d at %s", code, step), step, reply, refused(code)})
		}
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, key := range []string{"", "key"} {
				o := newFixture(t, newFakeSubmission(t))
				o.server.fault(f.step, f.do)
				e, err := o.Send(t.Context(), account, hello(keyed(key)))
				state := f.want.without
				if key != "" {
					state = f.want.with
				}
				if e == nil {
					t.Fatalf("no entry: %v", err)
				}
				kept := o.entry(e.ID)
				if e.State != state || kept.State != state || kept.Temporary != f.want.temporary || kept.Attempt != "" || !kept.Until.IsZero() || kept.Attempts != 1 {
					t.Errorf("key %q: answer %s, kept %+v, %v", key, e.State, kept, err)
				}
				if f.want.code != 0 && kept.Code != f.want.code {
					t.Errorf("code %d, want %d", kept.Code, f.want.code)
				}
				if fine := state == mail.OutboxAccepted || state == mail.OutboxUnknown; (err == nil) != fine || (kept.Reason == "") != (state == mail.OutboxAccepted) {
					t.Errorf("error %v, reason %q", err, kept.Reason)
				}
				taken := len(o.server.messages())
				if state == mail.OutboxAccepted && taken != 1 || state != mail.OutboxAccepted && state != mail.OutboxUnknown && taken != 0 {
					t.Errorf("%s, and the server took %d", state, taken)
				}
				if key == "" || state != mail.OutboxQueued {
					continue
				}
				// The same request again, with the server well: what never left leaves now.
				o.server.at(nil)
				again := o.mustSend(hello(keyed(key)))
				if now := len(o.server.messages()); again.State != mail.OutboxAccepted || now != 1 || o.taken != 1 || again.MessageID != e.MessageID {
					t.Errorf("again: %+v, server has %d, charged %d", again, now, o.taken)
				}
			}
		})
	}
}

func TestOneRefusedRecipientStopsTheSend(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	o.server.at(func(step, argument string) fault {
		if step == stepRcpt && argument == "carol@example.com" {
			return fault{reply: "550 5.1.1 no such person"}
		}
		return fault{}
	})
	e, err := o.Send(t.Context(), account, hello(func(r *outbox.Request) { r.Draft.CC = []mail.Address{{Addr: "carol@example.com"}} }))
	if kind(err) != mail.KindRefused || e == nil || e.State != mail.OutboxRefused || len(o.server.messages()) != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	var told *mail.Error
	if errors.As(err, &told); !strings.Contains(told.Message, "carol@example.com") || !strings.Contains(told.Message, "no such person") || strings.Contains(told.Message, "bob@") {
		t.Errorf("message %q", told.Message)
	}
}

// TestCallerThatGivesUp ends the caller's context at each step.
func TestCallerThatGivesUp(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]mail.OutboxState{
		stepConnect: mail.OutboxQueued, stepAuth: mail.OutboxQueued, stepMail: mail.OutboxQueued, stepRcpt: mail.OutboxQueued,
		stepTaken: mail.OutboxUnknown,
	} {
		t.Run(step, func(t *testing.T) {
			o := newFixture(t, newFakeSubmission(t))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			release := make(chan struct{})
			o.server.fault(step, fault{do: func() { cancel(); <-release }})
			e, err := o.Send(ctx, account, hello(keyed("k")))
			close(release)
			if e == nil || e.State != want || o.entry(e.ID).State != want || o.entry(e.ID).Attempt != "" {
				t.Fatalf("%+v, %v", e, err)
			}
			if want == mail.OutboxQueued && (kind(err) != mail.KindTimeout || !errors.Is(err, context.Canceled)) {
				t.Errorf("error %v", err)
			}
			o.server.at(nil)
			again, err := o.Send(t.Context(), account, hello(keyed("k")))
			if err != nil || len(o.server.messages()) != 1 {
				t.Errorf("again %+v, %v, server has %d", again, err, len(o.server.messages()))
			}
		})
	}
}

func TestDryRunGoesToTheServerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	r := hello(keyed("k"))
	if d, err := o.Foresee(t.Context(), account, r, true); err != nil || d.State != mail.OutboxQueued || len(o.server.commands()) > 0 {
		t.Errorf("offline: %+v, %v", d, err)
	}
	e, err := o.sendOrForesee(r, true)
	if err != nil || e.ID != "" || e.State != mail.OutboxQueued || e.Size == 0 || e.Digest == "" || !slices.Equal(e.Recipients, []string{"bob@example.net"}) {
		t.Errorf("entry %+v", e)
	}
	if said := strings.Join(o.server.commands(), " "); !strings.HasPrefix(said, "EHLO AUTH") || strings.Contains(said, "MAIL") {
		t.Errorf("commands %s", said)
	}
	if len(o.entries()) > 0 || o.taken > 0 || len(o.server.messages()) > 0 {
		t.Error("a dry run left something")
	}
	o.server.fault(stepAuth, fault{reply: "535 5.7.8 no"})
	mailtest.WantKind(t, second(o.sendOrForesee(r, true)), mail.KindAuth)
	small := newFixture(t, newFakeSubmission(t, "SIZE 300"))
	if _, err := small.sendOrForesee(r, true); kind(err) == "" || len(small.server.messages()) > 0 {
		t.Errorf("a message that is too large: %v", err)
	}
	if said := strings.Join(small.server.commands(), " "); strings.Contains(said, "MAIL") {
		t.Errorf("commands %s", said)
	}
	waits := newFixture(t, newFakeSubmission(t), approving)
	if e, err := waits.sendOrForesee(r, true); err != nil || e.State != mail.OutboxWaiting || e.ID != "" || len(waits.entries()) > 0 || len(waits.server.commands()) == 0 {
		t.Errorf("one that would wait: %+v", e)
	}
	// Of a key that there is already it tells what a send would.
	o.server.at(nil)
	o.mustSend(r)
	if e, err := o.sendOrForesee(r, true); err != nil || !e.Replayed || e.State != mail.OutboxAccepted || len(o.server.messages()) != 1 {
		t.Errorf("dry run of a known key: %+v", e)
	}
}

func TestLogHoldsIdsAndStatesAlone(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t), approving)
	var log bytes.Buffer
	b := outbox.New(outbox.Options{Directory: o.dir, Store: o.vault, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Key: func(ctx context.Context) ([]byte, error) { return o.vault.Key(ctx, "outbox") }})
	e, err := b.Send(t.Context(), account, hello(keyed("order-17"), withBCC))
	must(t, err)
	o.server.fault(stepRcpt, fault{reply: "451 4.3.0 not now, bob@example.net"})
	if _, err := b.Approve(t.Context(), e.ID, e.Digest, "ann"); err == nil {
		t.Error("approved in vain")
	}
	o.server.fault(stepAuth, fault{reply: "535 5.7.8 no"})
	mailtest.WantKind(t, second(b.Approve(t.Context(), e.ID, e.Digest, "ann")), mail.KindAuth)
	must(t, second(b.Reject(t.Context(), e.ID, "ann", "rude words")))
	text := log.String()
	if strings.Count(text, e.ID) < 3 || !strings.Contains(text, "state=rejected") || !strings.Contains(text, "code=451") {
		t.Errorf("the log tells too little:\n%s", text)
	}
	for _, secret := range []string{"example.net", "example.org", "Hello", "order-17", "secret", "rude", "More of it", e.MessageID} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q:\n%s", secret, text)
		}
	}
}

func TestKeysNeedSomethingThatNamesThem(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	for name, key := range map[string]func(context.Context) ([]byte, error){
		"none":  nil,
		"short": func(context.Context) ([]byte, error) { return make([]byte, 31), nil },
		"fails": func(context.Context) ([]byte, error) { return nil, errStore },
	} {
		b := outbox.New(outbox.Options{Directory: o.dir, Store: o.vault, Key: key})
		if e, err := b.Send(t.Context(), account, hello(keyed("k"))); e != nil || err == nil || name == "none" && kind(err) != mail.KindUnsupported || name == "fails" && !errors.Is(err, errStore) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if e, err := b.Send(t.Context(), account, hello()); err != nil || e.State != mail.OutboxAccepted {
			t.Errorf("%s, without a key: %+v, %v", name, e, err)
		}
	}
}

func TestEveryMessageHasItsOwnNames(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	o.now = func() time.Time { return at }
	seen := map[string]bool{}
	var ids []string
	for i := range 3 {
		at = at.Add(time.Millisecond)
		e := o.mustSend(hello(func(r *outbox.Request) { r.Draft.Subject = fmt.Sprint(i) }))
		if seen[e.ID] || seen[e.MessageID] || len(e.ID) != 16 {
			t.Errorf("%s, %s", e.ID, e.MessageID)
		}
		seen[e.ID], seen[e.MessageID] = true, true
		ids = append(ids, e.ID)
	}
	if !slices.IsSorted(ids) {
		t.Errorf("ids do not sort by age: %v", ids)
	}
}

// The Message-ID of a key is that of its request, wherever it is sent from.
func TestKeyUsedAnewForAnotherMessageHasAnotherMessageID(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	var ids []string
	for _, subject := range []string{"one", "one", "two"} {
		o := newFixture(t, newFakeSubmission(t))
		b := outbox.New(outbox.Options{Directory: o.dir, Store: o.vault, Now: func() time.Time { return at },
			Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }})
		e, err := b.Send(t.Context(), account, hello(keyed("k"), func(r *outbox.Request) { r.Draft.Subject = subject }))
		must(t, err)
		ids = append(ids, e.MessageID)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("Message-IDs %q", ids)
	}
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t), approving)
	start := time.Now()
	for i := range 3 {
		o.now = func() time.Time { return start.Add(time.Duration(i) * time.Millisecond) } // entries are told apart by it
		o.mustSend(hello(func(r *outbox.Request) { r.Principal = fmt.Sprint("p", i) }))
	}
	for _, limit := range []int{-1, mail.MaxOutboxLimit + 1} {
		if _, _, err := o.List(t.Context(), mail.OutboxQuery{Limit: limit}); kind(err) != mail.KindInvalid {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	first, more, err := o.List(t.Context(), mail.OutboxQuery{Limit: 2})
	if err != nil || len(first) != 2 || !more || first[0].Principal != "p2" {
		t.Fatalf("%+v, %v, %v", first, more, err)
	}
	if own, _, err := o.List(t.Context(), mail.OutboxQuery{Principal: "p0"}); err != nil || len(own) != 1 {
		t.Errorf("own: %+v, %v", own, err)
	}
	if rest, more, err := o.List(t.Context(), mail.OutboxQuery{Before: first[1].ID}); err != nil || len(rest) != 1 || more {
		t.Errorf("rest: %+v, %v, %v", rest, more, err)
	}
}

// TestLeaseEndsWithTheCallersTime looks at the entry while it is on its way.
func TestLeaseEndsWithTheCallersTime(t *testing.T) {
	t.Parallel()
	o := newFixture(t, newFakeSubmission(t))
	var seen mail.Outgoing
	o.server.fault(stepData, fault{do: func() { seen = o.entries()[0] }})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, second(o.Send(ctx, account, hello())))
	deadline, _ := ctx.Deadline()
	if seen.State != mail.OutboxUnknown || seen.Attempt == "" || seen.Until.Before(deadline) || seen.Until.After(deadline.Add(time.Minute)) {
		t.Errorf("on its way it is %s until %s, and the caller's time ends %s", seen.State, seen.Until, deadline)
	}
}

// The steps of one submission at which a test can interfere.
const (
	stepConnect  = "connect"  // before the greeting
	stepHello    = "EHLO"     // before its answer
	stepAuth     = "AUTH"     // before its answer
	stepMail     = "MAIL"     // before its answer
	stepRcpt     = "RCPT"     // before its answer, at each recipient
	stepData     = "DATA"     // before its answer
	stepBody     = "body"     // in the middle of the message
	stepDot      = "dot"      // the message is here and not taken
	stepTaken    = "taken"    // the message is taken and not answered
	stepAnswered = "answered" // after the answer
)

// fault is what happens at a step instead.
type fault struct {
	reply string // instead of the step's own; what it refuses is not taken
	cut   bool   // the connection breaks
	do    func() // before either
}

// received is a message that the server took.
type received struct {
	from string
	to   []string
	raw  string
}

// fakeSubmissionServer is a submission server that counts what it takes, which is the
// truth that every answer of the outbox is compared with.
type fakeSubmissionServer struct {
	port       uint16
	extensions []string

	mu        sync.Mutex
	interfere func(step, argument string) fault
	taken     []received
	said      []string // commands, in order
}

func newFakeSubmission(t testing.TB, extensions ...string) *fakeSubmissionServer {
	t.Helper()
	if extensions == nil {
		extensions = []string{"PIPELINING", "8BITMIME", "SIZE 52428800"}
	}
	s := &fakeSubmissionServer{extensions: extensions}
	s.port = scripted.Serve(t, func(c *scripted.Conn) { s.serve(c.Conn) }).Port
	return s
}

// at sets what happens at the steps from now on; nil: nothing.
func (s *fakeSubmissionServer) at(interfere func(step, argument string) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interfere = interfere
}

// fault interferes at one step.
func (s *fakeSubmissionServer) fault(step string, i fault) {
	s.at(func(at, _ string) fault {
		if at == step {
			return i
		}
		return fault{}
	})
}

func (s *fakeSubmissionServer) messages() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.taken...)
}

// commands returns the commands so far and forgets them.
func (s *fakeSubmissionServer) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said
	s.said = nil
	return said
}

// step tells whether to go on, after a reply of the test's own if there is one.
func (s *fakeSubmissionServer) step(w io.Writer, name, argument, reply string) (refused, goOn bool) {
	s.mu.Lock()
	interfere := s.interfere
	s.mu.Unlock()
	var i fault
	if interfere != nil {
		i = interfere(name, argument)
	}
	if i.do != nil {
		i.do()
	}
	if i.cut {
		return true, false
	}
	if i.reply != "" {
		reply = i.reply
	}
	if reply != "" {
		if _, err := fmt.Fprintf(w, "%s\r\n", reply); err != nil {
			return true, false
		}
	}
	return i.reply != "" && i.reply[0] != '2' && i.reply[0] != '3', true
}

func (s *fakeSubmissionServer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	if _, ok := s.step(c, stepConnect, "", "220 mail.example.org ready"); !ok {
		return
	}
	var from string
	var to []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, argument, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		s.mu.Lock()
		s.said = append(s.said, verb)
		s.mu.Unlock()
		ok, refused := true, false
		switch verb {
		case "EHLO":
			lines := append([]string{"mail.example.org"}, append(s.extensions, "AUTH PLAIN")...)
			for i := range lines {
				sep := "-"
				if i == len(lines)-1 {
					sep = " "
				}
				lines[i] = "250" + sep + lines[i]
			}
			_, ok = s.step(c, stepHello, argument, strings.Join(lines, "\r\n"))
		case "AUTH":
			_, ok = s.step(c, stepAuth, "", "235 2.7.0 welcome")
		case "MAIL":
			from, to = address(argument), nil
			_, ok = s.step(c, stepMail, from, "250 2.1.0 sender ok")
		case "RCPT":
			if refused, ok = s.step(c, stepRcpt, address(argument), "250 2.1.5 recipient ok"); !refused {
				to = append(to, address(argument))
			}
		case "DATA":
			if len(to) == 0 {
				_, err := fmt.Fprint(c, "503 5.5.1 no recipient\r\n")
				ok = err == nil
				break
			}
			if refused, ok = s.step(c, stepData, "", "354 go on"); ok && !refused {
				ok = s.data(c, r, received{from: from, to: to})
			}
		case "RSET":
			from, to = "", nil
			_, err := fmt.Fprint(c, "250 2.0.0 forgotten\r\n")
			ok = err == nil
		case "QUIT":
			_, _ = fmt.Fprint(c, "221 2.0.0 bye\r\n")
			return
		default:
			_, err := fmt.Fprint(c, "502 5.5.1 not known\r\n")
			ok = err == nil
		}
		if !ok {
			return
		}
	}
}

func (s *fakeSubmissionServer) data(c net.Conn, r *bufio.Reader, m received) (goOn bool) {
	var raw strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		raw.WriteString(strings.TrimPrefix(line, "."))
		if raw.Len() > 100 && raw.Len() <= 100+len(line) {
			if _, ok := s.step(c, stepBody, "", ""); !ok {
				return false
			}
		}
	}
	m.raw = raw.String()
	refused, ok := s.step(c, stepDot, "", "")
	if refused || !ok {
		return ok
	}
	s.mu.Lock()
	s.taken = append(s.taken, m)
	s.mu.Unlock()
	if _, ok := s.step(c, stepTaken, "", "250 2.0.0 taken"); !ok {
		return false
	}
	_, ok = s.step(c, stepAnswered, "", "")
	return ok
}

// address is what stands between the angle brackets.
func address(argument string) string {
	_, rest, _ := strings.Cut(argument, "<")
	a, _, _ := strings.Cut(rest, ">")
	return a
}
