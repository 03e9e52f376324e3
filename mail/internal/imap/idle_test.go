package imap

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// idleServer is a server with IDLE. It gives the lines it gets to lines, each as the
// client wrote it, and sends what comes from says while it is in IDLE.
type idleServer struct {
	lines  chan string
	says   chan string
	refuse string      // a command
	ends   atomic.Bool // the connection of the next NOOP
	caps   string
}

func newIdleServer() *idleServer {
	return &idleServer{lines: make(chan string, 100), says: make(chan string), caps: scripted.Caps + " IDLE"}
}

func (i *idleServer) run(s *scripted.Conn) {
	s.Greet(i.caps)
	for {
		tag, cmd := s.Expect()
		i.lines <- strings.TrimSpace(tag + " " + cmd)
		switch verb, _, _ := strings.Cut(cmd, " "); {
		case verb == "EXAMINE":
			s.Send("* 3 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 4] n\r\n" + tag + " OK [READ-ONLY] done\r\n")
		case verb == i.refuse:
			i.refuse = ""
			s.Send(tag + " NO not now\r\n")
		case verb == "IDLE":
			s.Send("+ idling\r\n")
			done := make(chan string, 1)
			go func() { l, _ := s.Lines.ReadString('\n'); done <- l }()
			for in := true; in; {
				select {
				case text := <-i.says:
					s.Send(text)
				case l := <-done:
					if l == "" {
						return
					}
					i.lines <- strings.TrimSpace(l)
					s.Send(tag + " OK idle over\r\n")
					in = false
				}
			}
		case verb == "NOOP" && i.ends.CompareAndSwap(true, false):
			return
		case verb == "LOGOUT":
			s.Send("* BYE bye\r\n" + tag + " OK out\r\n")
			return
		default:
			s.Send(tag + " OK done\r\n")
		}
	}
}

func (i *idleServer) want(t *testing.T, commands ...string) {
	t.Helper()
	for _, want := range commands {
		select {
		case l := <-i.lines:
			if !strings.HasSuffix(l, want) {
				t.Fatalf("the server got %q, want %q", l, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the server did not get %q", want)
		}
	}
}

func looking(s *Session) error { _, err := s.Look("INBOX", time.Minute, true); return err }

// told is a channel's view of what a session at rest reports.
func told() (chan bool, func(bool)) {
	c := make(chan bool, 100)
	return c, func(news bool) { c <- news }
}

// rest has a session of a pool rest, which may not fail.
func rest(t *testing.T, p *Pool) (news chan bool, leave func(bye bool)) {
	t.Helper()
	news, tell := told()
	leave, err := p.Rest(t.Context(), "INBOX", looking, tell)
	must(t, err)
	return news, leave
}

func TestASessionAtRestReportsAndIsTakenUp(t *testing.T) {
	i := newIdleServer()
	p := newPool(t, PoolOptions{Config: serve(t, i.run), Sessions: 1})
	news, _ := rest(t, p)
	i.want(t, "EXAMINE INBOX", "NOOP", "IDLE")
	i.says <- "* 4 EXISTS\r\n"
	if !<-news {
		t.Error("what came was told as the end")
	}
	i.says <- "* 1 FETCH (FLAGS (\\Seen))\r\n* 2 EXPUNGE\r\n"
	mustLend(t, p, "INBOX", func(_ context.Context, s *Session) error {
		err := s.Noop().Wait()
		if f, ok := s.Selected(); !ok || f.Exists != 3 {
			t.Errorf("the folder is %+v, %v", f, ok)
		}
		return err
	})
	i.want(t, "DONE", "NOOP")
	if <-news {
		t.Error("flags, expunges or the end of the rest were told as news")
	}
	mustLend(t, p, "INBOX", noop)
	i.want(t, "NOOP")
	select {
	case n := <-news:
		t.Errorf("the end was told twice (%v)", n)
	default:
	}
}

func TestDoneLeavesInOneWriteWithTheNextCommand(t *testing.T) {
	i := newIdleServer()
	writes := make(chan string, 100)
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Conn = &reads{Conn: s.Conn, to: writes}
		s.Lines.Reset(s.Conn)
		i.run(s)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	rest(t, p)
	mustLend(t, p, "INBOX", noop)
	if sv.Accepted() != 1 {
		t.Errorf("%d connections", sv.Accepted())
	}
	for w := range writes {
		if strings.Contains(w, "DONE\r\n") {
			if _, next, _ := strings.Cut(w, "DONE\r\n"); !strings.Contains(next, "NOOP\r\n") {
				t.Errorf("DONE came alone: %q", w)
			}
			return
		}
	}
}

// Another session is lent before one that rests.
func TestARestIsDisturbedLast(t *testing.T) {
	i := newIdleServer()
	sv := scripted.Serve(t, i.run)
	p := newPool(t, PoolOptions{Config: configOf(sv), Sessions: 2})
	news, tell := told()
	mustLend(t, p, "", func(ctx context.Context, s *Session) error { return second(p.Rest(ctx, "INBOX", looking, tell)) })
	for range 20 {
		mustLend(t, p, "INBOX", noop)
	}
	select {
	case <-news:
		t.Error("the rest was disturbed beside an idle session")
	default:
	}
}

func TestOneSessionOfSeveralNeverRests(t *testing.T) {
	i := newIdleServer()
	p := newPool(t, PoolOptions{Config: serve(t, i.run), Sessions: 3})
	_, tell := told()
	var errs []error
	mustLend(t, p, "", func(ctx context.Context, s *Session) error {
		return p.Lend(ctx, "", func(ctx context.Context, s *Session) error { return second(p.Rest(ctx, "INBOX", looking, tell)) })
	})
	for range 3 {
		_, err := p.Rest(t.Context(), "INBOX", looking, tell)
		errs = append(errs, err)
	}
	if errs[0] != nil || !errors.Is(errs[1], ErrNoIdle) || !errors.Is(errs[2], ErrNoIdle) {
		t.Errorf("%v", errs)
	}
}

// Nor where all would rest at the same moment.
func TestOneOfTwoSessionsRestsWhereBothWould(t *testing.T) {
	p := newPool(t, PoolOptions{Config: serve(t, newIdleServer().run), Sessions: 2})
	_, tell := told()
	var looked, ended sync.WaitGroup
	looked.Add(2)
	errs := make([]error, 2)
	for n := range errs {
		ended.Go(func() {
			_, errs[n] = p.Rest(t.Context(), "INBOX", func(*Session) error { looked.Done(); looked.Wait(); return nil }, tell)
		})
	}
	ended.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), ErrNoIdle) {
		t.Errorf("%v", errs)
	}
}

// A rest that begins anew, as its connection was gone, has its place still.
func TestARestOnAnotherConnection(t *testing.T) {
	i := newIdleServer()
	p := newPool(t, PoolOptions{Config: serve(t, i.run), Sessions: 2})
	mustLend(t, p, "INBOX", func(_ context.Context, s *Session) error { return looking(s) })
	i.ends.Store(true)
	rest(t, p)
	if i.ends.Load() || p.toRest != 0 {
		t.Errorf("the connection did not end, or %d are about to rest", p.toRest)
	}
}

func TestRestWhereTheServerDoesNotIdle(t *testing.T) {
	for name, change := range map[string]func(*idleServer){
		"not offered": func(i *idleServer) { i.caps = scripted.Caps },
		"refused":     func(i *idleServer) { i.refuse = "IDLE" },
		// The server is in IDLE then, and would take no command: the connection is given up.
		"accepted, and the NOOP in front of it refused": func(i *idleServer) { i.refuse = "NOOP" },
	} {
		t.Run(name, func(t *testing.T) {
			i := newIdleServer()
			change(i)
			sv := scripted.Serve(t, i.run)
			p := newPool(t, PoolOptions{Config: configOf(sv)})
			news, tell := told()
			outOfStep := i.refuse == "NOOP"
			if _, err := p.Rest(t.Context(), "INBOX", looking, tell); err == nil || !outOfStep && !errors.Is(err, ErrNoIdle) {
				t.Fatalf("got %v", err)
			}
			if err := p.Lend(t.Context(), "INBOX", noop); err != nil || sv.Accepted() != 1 && !outOfStep {
				t.Errorf("afterwards: %v, %d connections", err, sv.Accepted())
			}
			if len(news) > 0 {
				t.Error("something was told")
			}
		})
	}
}

func TestLeavingARest(t *testing.T) {
	i := newIdleServer()
	p := newPool(t, PoolOptions{Config: serve(t, i.run)})
	news, leave := rest(t, p)
	leave(true)
	i.want(t, "EXAMINE INBOX", "NOOP", "IDLE", "DONE")
	leave(true) // again does nothing
	mustLend(t, p, "INBOX", noop)
	i.want(t, "NOOP")
	if len(news) > 0 {
		t.Error("who left was told")
	}
}

func TestTheEndOfTheConnectionEndsARest(t *testing.T) {
	i := newIdleServer()
	sv := scripted.Serve(t, i.run)
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	news, _ := rest(t, p)
	i.says <- "* BYE shutting down\r\n"
	sv.HangUp(1)
	if <-news {
		t.Error("the end was told as news")
	}
	lend(t, p, "INBOX", noop) // afterwards
}

// A server may end an IDLE by itself: no DONE is due then.
func TestAServerThatEndsIdleItself(t *testing.T) {
	sv := scripted.Serve(t, func(s *scripted.Conn) {
		s.Greet(scripted.Caps + " IDLE")
		s.Examine()
		s.Answer("TAG OK nothing\r\n")
		s.Answer("+ \r\nTAG OK enough\r\n")
		if cmd := s.Answer("TAG OK done\r\n"); cmd != "NOOP" {
			t.Errorf("the server got %q", cmd)
		}
		obey(s)
	})
	p := newPool(t, PoolOptions{Config: configOf(sv)})
	news, _ := rest(t, p)
	if <-news {
		t.Error("the end was told as news")
	}
	lend(t, p, "INBOX", noop)
}

func TestClosingThePoolSaysGoodbyeFromARest(t *testing.T) {
	i := newIdleServer()
	p := NewPool(PoolOptions{Config: serve(t, i.run)})
	rest(t, p)
	_ = p.Close()
	i.want(t, "EXAMINE INBOX", "NOOP", "IDLE", "DONE", "LOGOUT")
}

// reads tells what each read of a connection brought, which is at most what the
// client wrote at once.
type reads struct {
	net.Conn
	to chan<- string
}

func (r *reads) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if n > 0 {
		r.to <- string(p[:n])
	}
	return n, err
}

// What a server reports behind its answer to an EXAMINE is news of that folder, however late the
// answer is waited for: a watch would rest on what came before it.
func TestWhatIsReportedBehindAnExamineIsNews(t *testing.T) {
	using(t, serve(t, func(s *scripted.Conn) {
		s.Login()
		for _, answer := range []string{"* 1 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\nTAG OK done\r\n", "* 2 EXISTS\r\nTAG OK done\r\n"} {
			tag, _ := s.Expect()
			s.Send(strings.ReplaceAll(answer, "TAG", tag))
		}
		obey(s)
	}), func(s *Session) error {
		examine := s.Examine("INBOX")
		err := errors.Join(s.Noop().Wait(), second(examine.Wait()))
		if f, ok := s.Unchanged("INBOX"); ok {
			t.Errorf("%+v counts as unchanged", f)
		}
		f, lookErr := s.Look("INBOX", time.Hour, true)
		if f.Exists != 3 {
			t.Errorf("a look finds %+v", f)
		}
		return errors.Join(err, lookErr)
	})
}
