package mailbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

const never = time.Hour

// watching is a Watch in progress.
type watching struct {
	t       *testing.T
	cancel  context.CancelFunc
	waiting chan struct{} // closed when it has looked and waits
	done    chan struct{}
	page    *mailbox.WatchPage
	err     error
}

// watch begins to watch, and returns when it waits or is over.
func (b *box) watch(q mailbox.WatchQuery) *watching {
	b.T.Helper()
	t := b.T.(*testing.T)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	w := &watching{t: t, cancel: cancel, waiting: make(chan struct{}), done: make(chan struct{})}
	q.Aside = func(ctx context.Context, wait func(context.Context) error) error {
		close(w.waiting)
		return wait(ctx)
	}
	go func() {
		defer close(w.done)
		w.page, w.err = b.Watch(ctx, account, q)
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	select {
	case <-w.waiting:
	case <-w.done:
	}
	return w
}

// got waits for the end of the watch and returns its page.
func (w *watching) got() *mailbox.WatchPage {
	w.t.Helper()
	<-w.done
	if w.err != nil {
		w.t.Fatalf("watch: %v (%v)", w.err, errors.Unwrap(w.err))
	}
	return w.page
}

func (w *watching) wants(subjects ...string) *mailbox.WatchPage {
	w.t.Helper()
	p := w.got()
	var got []string
	for _, m := range p.Messages {
		got = append(got, m.Subject)
	}
	if !slices.Equal(got, subjects) || len(p.Issues) > 0 {
		w.t.Fatalf("watch gave %q with issues %v, want %q", got, p.Issues, subjects)
	}
	return p
}

// onWatchable runs a test on the servers that a watch must work on, at the same time; each is
// asked in the way it offers: where it has IDLE nothing else can find out that something came.
func onWatchable(t *testing.T, user string, test func(t *testing.T, b *box), change ...func(*mail.Account)) {
	t.Helper()
	t.Parallel()
	_, idles := mailtest.Shared(t, servertest.Config{})
	_, silent := mailtest.Shared(t, servertest.Config{HideCapabilities: []string{"IDLE", "ESEARCH"}})
	silent.Name = "dovecot without IDLE"
	const often = 20 * time.Millisecond
	on(t, []mailtest.Endpoint{idles, silent, mailtest.SharedCourier(t), mailtest.InMemory(t)}, func(t *testing.T, e mailtest.Endpoint) {
		b := open(t, e, user, change...)
		switch e.Name {
		case "dovecot":
			b.SetPace(never, never, 0)
		case "in memory": // it forgets to tell of what comes in the moment before an IDLE begins
			b.SetPace(never, 500*time.Millisecond, 0)
		default:
			b.SetPace(often, never, 0)
		}
		test(t, b)
	})
}

func TestWatchReturnsWhatArrives(t *testing.T) {
	onWatchable(t, "watch", func(t *testing.T, b *box) {
		if p := b.watch(mailbox.WatchQuery{FromNow: true, Until: time.Now()}).wants(); p.After.UID != 0 {
			t.Errorf("of an empty folder: after %d", p.After.UID)
		}
		w := b.watch(mailbox.WatchQuery{})
		b.Add("INBOX", letter{Subject: "old"})
		w.wants("old")
		w = b.watch(mailbox.WatchQuery{FromNow: true})
		uid := b.Add("INBOX", letter{Subject: "first"})[0]
		p := w.wants("first")
		if p.After.UID != uid || p.Folder != "INBOX" || p.UIDValidity == 0 || p.HasMore || p.Messages[0].Ref.UID != uid {
			t.Errorf("got %+v", p)
		}
		// What came in between is there at once, the oldest first.
		b.Add("INBOX", letter{Subject: "second"}, letter{Subject: "third"})
		p = b.watch(mailbox.WatchQuery{After: p.After, Limit: 1}).wants("second")
		if !p.HasMore {
			t.Error("it does not say that there is more")
		}
		p = b.watch(mailbox.WatchQuery{After: p.After}).wants("third")
		w = b.watch(mailbox.WatchQuery{After: p.After, Full: true})
		b.Add("INBOX", letter{Subject: "fourth"})
		if p := w.wants("fourth"); len(p.Messages[0].To) != 1 || p.Messages[0].Size == 0 {
			t.Errorf("not everything was told: %+v", p.Messages[0])
		}
	})
}

func TestWatchEndsWithNeitherFlagsNorExpunges(t *testing.T) {
	onWatchable(t, "flags", func(t *testing.T, b *box) {
		uids := b.Add("INBOX", letter{Subject: "a"}, letter{Subject: "b"}, letter{Subject: "c"})
		w := b.watch(mailbox.WatchQuery{FromNow: true})
		b.Remove("INBOX", uids[0])
		must(t, second(b.Admin.Select("INBOX", nil).Wait()))
		must(t, b.Admin.Store(imap.UIDSetNum(imap.UID(uids[1])), &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}}, nil).Close())
		b.Remove("INBOX", uids[2])
		b.Add("INBOX", letter{Subject: "d"})
		w.wants("d")
	})
}

// A message that the rules hide changes neither when a watch ends nor what it says.
func TestWatchDoesNotTellOfHiddenMail(t *testing.T) {
	onWatchable(t, "hidden", func(t *testing.T, b *box) {
		b.Add("INBOX", letter{Subject: "seen"}, letter{Subject: "unseen", From: "eve@example.net"})
		until := func() *mailbox.WatchPage {
			return b.watch(mailbox.WatchQuery{FromNow: true, Until: time.Now()}).wants()
		}
		quiet := until()
		b.Add("INBOX", letter{Subject: "hidden", From: "eve@example.net"})
		if p := until(); !reflect.DeepEqual(p, quiet) {
			t.Errorf("with hidden mail %+v, without %+v", p, quiet)
		}
		w := b.watch(mailbox.WatchQuery{After: quiet.After})
		for i := range 5 {
			b.Add("INBOX", letter{Subject: fmt.Sprint("hidden ", i), From: "eve@example.net"})
		}
		uid := b.Add("INBOX", letter{Subject: "shown"})[0]
		if p := w.wants("shown"); p.After.UID != uid || p.UIDNext != 0 {
			t.Errorf("got %+v", p)
		}
		// While it waits the rules may change: what counts is how they are when
		// something comes.
		w = b.watch(mailbox.WatchQuery{After: mail.Ref{UID: uid}})
		b.Dir.Edit(func(a *mail.Account) { a.AllowIn.Entries = []string{"eve@example.net"} })
		b.Add("INBOX", letter{Subject: "now hidden"}, letter{Subject: "now shown", From: "eve@example.net"})
		w.wants("now shown")
	}, allowing("bob@example.org"))
}

func TestWatchOfAFolderThatIsMadeAnew(t *testing.T) {
	b := onDovecot(t, "anew")
	b.SetPace(never, 20*time.Millisecond, 0)
	b.folder("Box")
	uid := b.Add("Box", letter{Subject: "old"})[0]
	q := mailbox.WatchQuery{Folder: "Box", After: mail.Ref{UID: uid, UIDValidity: b.list(mailbox.ListQuery{Folder: "Box"}).UIDValidity}}
	w := b.watch(q)
	for {
		must(t, b.Again(func() error { return b.Admin.Delete("Box").Wait() }))
		// Dovecot makes a folder anew that the watch looks at while it goes, without
		// a message and with another UIDVALIDITY.
		err := b.Admin.Create("Box", nil).Wait()
		var refused *imap.Error
		if errors.As(err, &refused) && refused.Code == imap.ResponseCodeAlreadyExists {
			continue
		}
		must(t, err)
		break
	}
	b.Add("Box", letter{Subject: "one"}, letter{Subject: "two"})
	<-w.done
	// Between the two it may have met no folder at all.
	if e := new(mail.Error); !errors.As(w.err, &e) || e.Kind != mail.KindConflict && e.Kind != mail.KindNotFound {
		t.Errorf("got %+v, %v", w.page, w.err)
	}
	w = b.watch(q)
	<-w.done
	mailtest.WantKind(t, w.err, mail.KindConflict)
}

// Many who watch and many who read share what one account may have of connections,
// and nobody waits for a watch to end.
func TestManyWatchesBesideManyReads(t *testing.T) {
	b, proxy := counted(t, "many", 0, 0)
	b.SetPace(never, never, 0)
	var ids []mail.Ref
	for _, uid := range b.Add("INBOX", make([]letter, 50)...) {
		ids = append(ids, b.Ref("INBOX", uid))
	}
	var watches []*watching
	for i := range 20 {
		watches = append(watches, b.watch(mailbox.WatchQuery{FromNow: true, Full: i%2 == 0}))
	}
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			if _, err := b.Get(t.Context(), id, mailbox.GetQuery{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, w := range watches {
		select {
		case <-w.done:
			t.Fatal("a read ended a watch")
		default:
		}
	}
	if n := proxy.Stats().Connections; n > 4 {
		t.Errorf("%d connections", n)
	}
	proxy.Reset()
	b.Add("INBOX", letter{Subject: "for all"})
	for _, w := range watches {
		w.wants("for all")
	}
	// One look is for all of them.
	if st := proxy.Stats(); st.Flights > 6 || st.Connections > 0 {
		t.Errorf("%d round trips on %d new connections for one message", st.Flights, st.Connections)
	}
}

func TestACancelledWatchLeavesTheConnectionClean(t *testing.T) {
	b, proxy := counted(t, "cancel", 0, 0)
	b.SetPace(never, never, 0)
	b.Add("INBOX", letter{Subject: "old"})
	for range 20 {
		w := b.watch(mailbox.WatchQuery{FromNow: true})
		w.cancel()
		<-w.done
		if e := mailtest.WantKind(t, w.err, mail.KindTimeout); !errors.Is(e, context.Canceled) {
			t.Errorf("got %v", w.err)
		}
	}
	b.list(mailbox.ListQuery{})
	// Another one is made when the first is still at what a watch asked of it; to give
	// that up would cost a connection each time.
	if n := proxy.Stats().Connections; n > 4 {
		t.Errorf("%d connections", n)
	}
}

func TestAWatchOutlivesItsConnection(t *testing.T) {
	b, proxy := counted(t, "cut", 0, 0)
	b.SetPace(never, never, 0)
	w := b.watch(mailbox.WatchQuery{FromNow: true})
	for range 2 {
		proxy.Cut()
		// The cut may meet a connection that the watch has begun anew, and the list after it.
		if _, err := b.List(t.Context(), account, mailbox.ListQuery{}); err != nil {
			mailtest.WantKind(t, err, mail.KindConnection)
			b.list(mailbox.ListQuery{})
		}
	}
	proxy.Cut()
	b.Add("INBOX", letter{Subject: "after all"})
	w.wants("after all")
}

// fakeAwayDirectory cannot be reached for a number of questions.
type fakeAwayDirectory struct {
	*mailtest.Directory
	away atomic.Int64
}

type fakeAwayError struct{ error }

func (fakeAwayError) Away() bool { return true }

func (d *fakeAwayDirectory) Account(ctx context.Context, name string) (mail.Account, error) {
	if d.away.Add(-1) >= 0 {
		return mail.Account{}, fakeAwayError{errors.New("it is away")}
	}
	return d.Directory.Account(ctx, name)
}

// What a watch waits for is not the directory's: one that is back in time ends nothing.
func TestAWatchOutlivesItsDirectory(t *testing.T) {
	b := onDovecot(t, "directory")
	d := &fakeAwayDirectory{Directory: b.Dir}
	b.Client = mailbox.New(mailbox.Options{Directory: d})
	t.Cleanup(func() { _ = b.Client.Close() })
	b.SetPace(never, 20*time.Millisecond, 0)
	w := b.watch(mailbox.WatchQuery{FromNow: true})
	d.away.Store(6)
	for d.away.Load() >= 0 {
		select {
		case <-w.done:
			t.Fatal(w.err)
		case <-time.After(time.Millisecond):
		}
	}
	b.Add("INBOX", letter{Subject: "after all"})
	w.wants("after all")
}

func TestClosingEndsWatches(t *testing.T) {
	onWatchable(t, "close", func(t *testing.T, b *box) {
		w := b.watch(mailbox.WatchQuery{FromNow: true})
		_ = b.Close()
		<-w.done
		mailtest.WantKind(t, w.err, mail.KindConnection)
	})
}

// An account that gets another password or time-out goes on being watched; one that
// leads elsewhere does not.
func TestAWatchFollowsItsAccount(t *testing.T) {
	b := onDovecot(t, "follow")
	b.SetPace(never, never, 0)
	b.Add("INBOX", letter{Subject: "old"})
	w := b.watch(mailbox.WatchQuery{FromNow: true})
	a, _ := b.Dir.Account(t.Context(), account)
	a.Timeouts.Socket = 70 * time.Second
	b.Dir.Set(a)
	_, _ = b.List(t.Context(), account, mailbox.ListQuery{})
	b.list(mailbox.ListQuery{}) // the old connections end with the first command on the new ones
	b.Add("INBOX", letter{Subject: "new"})
	w.wants("new")
	w = b.watch(mailbox.WatchQuery{FromNow: true})
	a.Username = "other"
	b.Dir.Set(a)
	// A command that looked the account up before it changed may still be on its way
	// and bring the old connections back, which fails this one.
	_, _ = b.List(t.Context(), account, mailbox.ListQuery{})
	b.list(mailbox.ListQuery{})
	<-w.done
	mailtest.WantKind(t, w.err, mail.KindConflict)
}

func TestWatchRefuses(t *testing.T) {
	b := onDovecot(t, "refuse")
	mailtest.WantKind(t, second(b.Watch(t.Context(), account, mailbox.WatchQuery{Folder: "Nowhere", FromNow: true})), mail.KindNotFound)
	mailtest.WantKind(t, second(b.Watch(t.Context(), account, mailbox.WatchQuery{Folder: "a\x01b"})), mail.KindNotFound)
	b.Dir.Edit(func(a *mail.Account) { a.Protocol, a.POP3, a.IMAP = mail.POP3, a.IMAP, mail.Endpoint{} })
	mailtest.WantKind(t, second(b.Watch(t.Context(), account, mailbox.WatchQuery{})), mail.KindUnsupported)
}

// idleScript is a server whose nth connection does in IDLE what a test says.
func idleScript(t *testing.T, caps string, inIdle func(n int, c net.Conn, br *bufio.Reader, tag string) (goOn bool)) *mailbox.Client {
	t.Helper()
	return clientOf(t, idleServer(t, caps, inIdle))
}

func idleServer(t *testing.T, caps string, inIdle func(n int, c net.Conn, br *bufio.Reader, tag string) (goOn bool)) *scripted.Server {
	t.Helper()
	return scripted.Serve(t, func(c *scripted.Conn) {
		c.Greet(caps)
		for {
			tag, command := c.Expect()
			switch verb, _, _ := strings.Cut(command, " "); verb {
			case "EXAMINE":
				c.Send("* 0 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 1] n\r\n" + tag + " OK done\r\n")
			case "IDLE":
				if !inIdle(c.N, c, c.Lines, tag) {
					return
				}
			default:
				c.Send(tag + " OK done\r\n")
			}
		}
	})
}

const idleCaps = "IMAP4rev1 SASL-IR AUTH=PLAIN ESEARCH IDLE"

// A server that falls silent in IDLE, or says BYE, is left for a new connection.
func TestWatchOnAServerThatFallsSilentOrSaysBye(t *testing.T) {
	for name, ends := range map[string]func(c net.Conn, br *bufio.Reader){
		"silent": func(c net.Conn, br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) },
		"BYE":    func(c net.Conn, br *bufio.Reader) { _, _ = io.WriteString(c, "* BYE too many\r\n") },
		"noise":  func(c net.Conn, br *bufio.Reader) { _, _ = io.WriteString(c, "* 7 GURBLE (((\r\nI1 WHAT\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			again := make(chan struct{})
			var once sync.Once
			m := idleScript(t, idleCaps, func(n int, c net.Conn, br *bufio.Reader, tag string) bool {
				_, _ = io.WriteString(c, "+ idling\r\n")
				if n == 1 {
					ends(c, br)
					return false
				}
				once.Do(func() { close(again) })
				if l, err := br.ReadString('\n'); err != nil || strings.TrimSpace(l) != "DONE" {
					return false
				}
				_, _ = io.WriteString(c, tag+" OK over\r\n")
				return true
			})
			m.SetPace(never, 50*time.Millisecond, 100*time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := m.Watch(ctx, account, mailbox.WatchQuery{FromNow: true})
				done <- err
			}()
			select {
			case <-again:
			case err := <-done:
				t.Fatalf("the watch ended: %v", err)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A server that cannot be reached any more is not taken for one that has no mail.
func TestWatchSaysWhenItCannotWatch(t *testing.T) {
	for name, until := range map[string]time.Duration{"given up": never, "time is over": 0} {
		t.Run(name, func(t *testing.T) {
			m := idleScript(t, idleCaps, func(n int, c net.Conn, br *bufio.Reader, tag string) bool { return false })
			m.SetPace(never, never, 0)
			_, err := m.Watch(t.Context(), account, mailbox.WatchQuery{FromNow: true, Until: time.Now().Add(until)})
			if until == 0 && err == nil {
				return // it was over before it was tried
			}
			mailtest.WantKind(t, err, mail.KindConnection)
		})
	}
}

// With a limit every message is given once, also when one behind those that fit cannot
// be read: it is told when its turn comes.
func TestAWatchWithALimitSkipsNothing(t *testing.T) {
	const old = 100
	var came atomic.Int32 // how many messages are behind the old one
	data := func(place int) string {
		uid := old + place - 1
		if place == 4 { // its header is not given
			return fmt.Sprintf("* %d FETCH (UID %d FLAGS ())\r\n", place, uid)
		}
		return fmt.Sprintf("* %d FETCH (UID %d FLAGS () BODY[HEADER.FIELDS (FROM)] %s)\r\n", place, uid, literal(fmt.Sprintf("Subject: m%d\r\n\r\n", uid)))
	}
	m := scriptedClient(t, func(command string) (string, string) {
		exists := int(came.Load()) + 1
		var low, high int
		switch {
		case strings.HasPrefix(command, "EXAMINE"):
			return fmt.Sprintf("* %d EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT %d] n\r\n", exists, old+exists), ""
		case command == "NOOP":
			return fmt.Sprintf("* %d EXISTS\r\n", exists), ""
		case strings.Contains(command, "SEARCH"):
			_, after, _ := strings.Cut(command, "UID 1:")
			_, _ = fmt.Sscan(after, &high)
			answer := "* SEARCH"
			for place := 1; place <= min(high-old+1, exists); place++ {
				answer += fmt.Sprint(" ", place)
			}
			return answer + "\r\n", ""
		case strings.HasPrefix(command, "FETCH"):
			if n, _ := fmt.Sscanf(command, "FETCH %d:%d", &low, &high); n == 1 {
				high = low
			} else if strings.Contains(command, ":* ") {
				high = exists
			}
			answer := ""
			for place := low; place <= min(high, exists); place++ {
				answer += data(place)
			}
			return answer, ""
		}
		return "", ""
	})
	m.SetPace(5*time.Millisecond, never, 0)
	b := &box{&mailtest.Box{Client: m, T: t}}
	w := b.watch(mailbox.WatchQuery{After: mail.Ref{UID: old}, Limit: 1})
	came.Store(4)
	var shown, failed []uint32
	for range 4 {
		p := w.got()
		shown = append(shown, uidsOf(&p.Page)...)
		for _, i := range p.Issues {
			failed = append(failed, i.UID)
		}
		if p.After.UID == old+4 {
			break
		}
		w = b.watch(mailbox.WatchQuery{After: p.After, Limit: 1})
	}
	if !slices.Equal(shown, []uint32{101, 102, 104}) || !slices.Equal(failed, []uint32{103}) {
		t.Errorf("shown %v, unreadable %v", shown, failed)
	}
}

// A watch with a condition passes over what does not meet it, whether it was there before or
// arrives, however little it may list at once.
func TestWatchWaitsForWhatMatches(t *testing.T) {
	matches := func(s *mailbox.Summary) bool { return strings.HasPrefix(s.Subject, "wanted") }
	onWatchable(t, "match", func(t *testing.T, b *box) {
		first := b.Add("INBOX", letter{Subject: "other"}, letter{Subject: "other"}, letter{Subject: "wanted 1"}, letter{Subject: "other"})
		p := b.watch(mailbox.WatchQuery{Match: matches}).wants("wanted 1")
		if p.After.UID < first[2] {
			t.Errorf("goes on behind %d", p.After.UID)
		}
		b.watch(mailbox.WatchQuery{Match: matches, Limit: 1}).wants("wanted 1")
		w := b.watch(mailbox.WatchQuery{Match: matches, After: p.After, Limit: 1})
		everything := b.watch(mailbox.WatchQuery{FromNow: true})
		b.Add("INBOX", letter{Subject: "unwanted"})
		everything.wants("unwanted")
		b.Add("INBOX", letter{Subject: "wanted 2"})
		w.wants("wanted 2")
	})
}

// A watch that is stopped answers as one whose time is up, and misses nothing.
func TestAWatchIsStopped(t *testing.T) {
	onWatchable(t, "stop", func(t *testing.T, b *box) {
		uid := b.Add("INBOX", letter{Subject: "old"})[0]
		stop := make(chan struct{})
		w := b.watch(mailbox.WatchQuery{FromNow: true, Stop: stop})
		close(stop)
		if p := w.wants(); p.After.UID != uid {
			t.Errorf("%+v", p)
		}
		if p := b.watch(mailbox.WatchQuery{FromNow: true, Stop: stop}).wants(); p.After.UID != uid {
			t.Errorf("stopped before it began: %+v", p)
		}
		b.Add("INBOX", letter{Subject: "new"})
		b.watch(mailbox.WatchQuery{After: mail.Ref{UID: uid}, Stop: stop}).wants("new")
	})
}
