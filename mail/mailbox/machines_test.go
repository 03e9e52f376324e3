package mailbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// fakeVault is what several Clients have in common, as if each was on a machine of its own.
type fakeVault struct {
	fakeSeenStore
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	held    map[string]context.CancelFunc
	taken   int    // locks so far
	listens func() // called, where it is not nil, by who begins to listen
}

func newFakeVault() *fakeVault {
	return &fakeVault{fakeSeenStore: fakeSeenStore{states: map[string]mail.SeenState{}}, changed: make(chan struct{}), held: map[string]context.CancelFunc{}}
}

func (v *fakeVault) Remote() bool { return true }

func (v *fakeVault) change() {
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *fakeVault) UpdateSeen(ctx context.Context, account, folder string, change func(*mail.SeenState) error) error {
	err := v.fakeSeenStore.UpdateSeen(ctx, account, folder, change)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.change()
	return err
}

func (v *fakeVault) Changes(context.Context) (func(context.Context) error, error) {
	if v.listens != nil {
		v.listens()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := v.changed
	return func(ctx context.Context) error {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// told returns when something was announced after an instant, which is that of the one before.
func (v *fakeVault) told(t *testing.T, after time.Time) time.Time {
	for {
		v.mu.Lock()
		changed := v.changed
		v.mu.Unlock()
		s, err := v.Seen(t.Context(), account, "INBOX")
		if err != nil || !s.Told.Equal(after) {
			return s.Told
		}
		<-changed
	}
}

func (v *fakeVault) Lock(ctx context.Context, name string) (context.Context, func(), error) {
	for {
		v.mu.Lock()
		changed := v.changed
		if v.held[name] == nil {
			held, cancel := context.WithCancel(ctx)
			v.held[name] = cancel
			v.taken++
			v.change()
			v.mu.Unlock()
			return held, sync.OnceFunc(func() { v.unlock(name, cancel) }), nil
		}
		v.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (v *fakeVault) unlock(name string, cancel context.CancelFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	cancel()
	delete(v.held, name) // of a lock that was lost and taken again, too: that only fails a test
	v.change()
}

// lose ends the one lease of a kind once it is held, as where a machine stood still.
func (v *fakeVault) lose(kind string) {
	for {
		v.mu.Lock()
		for name, cancel := range v.held {
			if strings.HasPrefix(name, kind+".") {
				v.mu.Unlock()
				v.unlock(name, cancel)
				return
			}
		}
		changed := v.changed
		v.mu.Unlock()
		<-changed
	}
}

// machines opens so many boxes of one user.
func machines(t *testing.T, n int, pace time.Duration) (*fakeVault, []*box) {
	e := dovecot(t)
	v := newFakeVault()
	var all []*box
	for range n {
		b := open(t, e, "machines")
		b.Client = mailbox.New(mailbox.Options{Directory: b.Dir, Seen: v, Others: v})
		t.Cleanup(func() { _ = b.Close() })
		b.SetPace(pace, never, 0)
		all = append(all, b)
	}
	return v, all
}

// TestOneMachineRestsInIDLE: nothing but the one that rests in IDLE can find out that mail
// came, as no machine asks for it; all get it, also where that one goes on to wait.
func TestOneMachineRestsInIDLE(t *testing.T) {
	_, all := machines(t, 3, never)
	first := all[0].watch(mailbox.WatchQuery{FromNow: true, Match: func(s *mailbox.Summary) bool { return s.Subject == "last" }})
	for _, subject := range []string{"one", "two"} {
		var others []*watching
		for _, b := range all[1:] {
			others = append(others, b.watch(mailbox.WatchQuery{FromNow: true}))
		}
		all[0].Add("INBOX", letter{Subject: subject})
		for _, w := range others {
			w.wants(subject)
		}
	}
	all[0].Add("INBOX", letter{Subject: "last"})
	first.wants("last")
}

// TestMailThatCameBeforeAMachineListened is found, although its folder was open already and the
// one that rests in IDLE has told of it.
func TestMailThatCameBeforeAMachineListened(t *testing.T) {
	v, all := machines(t, 2, never)
	all[0].watch(mailbox.WatchQuery{FromNow: true, Match: func(*mailbox.Summary) bool { return false }})
	all[0].Add("INBOX", letter{Subject: "while it leads"})
	first := v.told(t, time.Time{})
	v.listens = sync.OnceFunc(func() {
		all[1].Add("INBOX", letter{Subject: "before it listens"})
		v.told(t, first)
	})
	all[1].watch(mailbox.WatchQuery{FromNow: true, Until: time.Now().Add(50 * time.Second)}).wants("before it listens") // before the other one ends
}

// TestWhoCannotRestInIDLELeavesItToOthers: a machine rests in fewer folders than it has
// connections.
func TestWhoCannotRestInIDLELeavesItToOthers(t *testing.T) {
	v, all := machines(t, 2, never)
	all[0].Client = mailbox.New(mailbox.Options{Directory: all[0].Dir, Seen: v, Others: v, SessionsPerAccount: 2})
	t.Cleanup(func() { _ = all[0].Close() })
	all[0].SetPace(never, never, 0)
	must(t, all[0].Admin.Create("Other", nil).Wait())
	all[0].watch(mailbox.WatchQuery{FromNow: true})
	all[0].watch(mailbox.WatchQuery{FromNow: true, Folder: "Other"})
	for late := time.After(50 * time.Second); ; {
		v.mu.Lock()
		changed, taken, held := v.changed, v.taken, len(v.held)
		v.mu.Unlock()
		if taken >= 2 && held == 1 {
			break
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("of %d leases %d are held", taken, held)
		}
	}
	w := all[1].watch(mailbox.WatchQuery{FromNow: true, Folder: "Other"})
	all[1].Add("Other", letter{Subject: "new"})
	w.wants("new")
}

// TestTheIDLEPassesToAnotherMachine when the one that has it ends, or loses it.
func TestTheIDLEPassesToAnotherMachine(t *testing.T) {
	v, all := machines(t, 2, 50*time.Millisecond)
	first := all[0].watch(mailbox.WatchQuery{FromNow: true})
	second := all[1].watch(mailbox.WatchQuery{FromNow: true})
	_ = all[0].Close()
	<-first.done
	all[1].Add("INBOX", letter{Subject: "after an end"})
	second.wants("after an end")
	second = all[1].watch(mailbox.WatchQuery{FromNow: true})
	v.lose("idle")
	all[1].Add("INBOX", letter{Subject: "after a loss"})
	second.wants("after a loss")
}

func TestTheOtherMachineDoesNotRestInIDLE(t *testing.T) {
	t.Parallel()
	idles, idling := atomic.Int32{}, make(chan struct{}, 10)
	server := idleServer(t, idleCaps, func(n int, c net.Conn, br *bufio.Reader, tag string) bool {
		idles.Add(1)
		idling <- struct{}{}
		_, _ = io.WriteString(c, "+ idling\r\n")
		_, _ = br.ReadString('\n')
		_, _ = io.WriteString(c, tag+" OK over\r\n")
		return true
	})
	v := newFakeVault()
	ctx, end := context.WithCancel(t.Context())
	watch := func(until time.Time) {
		m := clientOf(t, server, func(o *mailbox.Options) { o.Seen, o.Others = v, v })
		m.SetPace(never, never, 0)
		if _, err := m.Watch(ctx, account, mailbox.WatchQuery{FromNow: true, Until: until}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	var first sync.WaitGroup
	first.Go(func() { watch(time.Now().Add(time.Hour)) })
	<-idling
	watch(time.Now().Add(1500 * time.Millisecond)) // it asks for the lease for one of them
	if n := idles.Load(); n != 1 {
		t.Errorf("%d IDLEs", n)
	}
	end()
	first.Wait()
}

// lockedPop is a POP3 server that has one session at a time. lost gets one when a session has
// ended without a QUIT.
func lockedPop(t *testing.T) (s *scripted.Server, lost chan struct{}) {
	var open atomic.Int32
	lost = make(chan struct{}, 10)
	return scripted.Serve(t, func(c *scripted.Conn) {
		in := false
		defer func() {
			if in {
				open.Add(-1)
				lost <- struct{}{}
			}
		}()
		c.Send("+OK\r\n")
		for {
			switch command, _, _ := strings.Cut(c.Line(), " "); command {
			case "PASS":
				if in = open.CompareAndSwap(0, 1); !in {
					c.Send("-ERR [IN-USE] locked\r\n")
					continue
				}
				c.Send("+OK\r\n")
			case "CAPA":
				c.Send("+OK\r\nUSER\r\n.\r\n")
			case "UIDL", "LIST":
				c.Send("+OK\r\n.\r\n")
			case "QUIT":
				open.Add(-1)
				in = false
				c.Send("+OK\r\n")
				return
			case "":
				return
			default:
				c.Send("+OK\r\n")
			}
		}
	}), lost
}

// TestMachinesTakeTurnsAtAPOP3Mailbox: none reads that another program has it open.
func TestMachinesTakeTurnsAtAPOP3Mailbox(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until a session has rested")
	}
	t.Parallel()
	server, lost := lockedPop(t)
	v := newFakeVault()
	read := func(m *mailbox.Client) error { return second(m.List(t.Context(), account, mailbox.ListQuery{})) }
	pop := func(o *mailbox.Options) {
		d := o.Directory.(*mailtest.Directory)
		a := d.Known[account]
		a.Protocol, a.POP3, a.IMAP = mail.POP3, a.IMAP, mail.Endpoint{}
		d.Known[account] = a
		o.Seen, o.Others = v, v
	}
	one, two := clientOf(t, server, pop), clientOf(t, server, pop)
	must(t, read(one))
	both := make(chan error, 2)
	go func() { both <- read(two) }()
	go func() { _, err := one.Verify(t.Context(), account); both <- err }()
	must(t, errors.Join(<-both, <-both, read(one)))
	// A session whose lease was lost is not used any more.
	v.lose("pop3")
	<-lost
	must(t, errors.Join(read(one), one.Close(), read(two)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	third := clientOf(t, server, pop)
	if _, err := third.List(ctx, account, mailbox.ListQuery{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(fmt.Errorf("a command that cannot wait: %w", err))
	}
}
