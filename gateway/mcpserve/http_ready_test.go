package mcpserve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// get asks for /ready.
func (s *httpServer) get(t *testing.T, method, host string) said {
	t.Helper()
	return s.timed(t, "", rawRequest{method: method, path: "/ready", host: host})
}

// Who asks needs no token, learns one word, and costs one look a second however many ask.
func TestReadyIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var fails atomic.Bool
		s := serveWith(t, newPipes(), Server{Gateway: whoAndWhat}, HTTPOptions{Ready: func(ctx context.Context) error {
			asked.Add(1)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			if fails.Load() {
				return errors.New("the password is hunter22")
			}
			return nil
		}}, defaultTimes)
		many := func(status int, body string) {
			t.Helper()
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if a := s.get(t, "GET", ""); a.status != status || a.body != body {
						t.Errorf("%+v, want %d %q", a, status, body)
					}
				})
			}
			all.Wait()
		}
		many(http.StatusOK, "ready\n")
		fails.Store(true)
		many(http.StatusOK, "ready\n") // for less than a second
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		time.Sleep(readyFor)
		many(http.StatusServiceUnavailable, "unavailable\n")
		many(http.StatusServiceUnavailable, "unavailable\n")
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times, want twice", n)
		}
		time.Sleep(readyFor)
		fails.Store(false)
		many(http.StatusOK, "ready\n")
		if a := s.get(t, "HEAD", ""); a.status != http.StatusOK || a.body != "" {
			t.Errorf("%+v", a)
		}
		if log := s.log.String(); strings.Count(log, "readiness has changed") != 2 || strings.Contains(log, "hunter22") {
			t.Errorf("the log is %s", log)
		}
		for method, host := range map[string]string{"POST": "", "GET": "evil.example"} {
			want := map[string]int{"POST": http.StatusMethodNotAllowed, "GET": http.StatusForbidden}[method]
			if a := s.get(t, method, host); a.status != want {
				t.Errorf("%s at %q: %+v, want %d", method, host, a, want)
			}
		}
	})
}

// A store that does not answer is not waited for, and one that answers late is not said to be
// ready by a server that stops meanwhile.
func TestReadyIsBoundedAndEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		var slow atomic.Bool
		slow.Store(true)
		s := serveWith(t, newPipes(), Server{Gateway: g}, HTTPOptions{Ready: func(ctx context.Context) error {
			if slow.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second)
			return nil
		}}, defaultTimes)
		if a := s.get(t, "GET", ""); a.status != http.StatusServiceUnavailable || a.after != admitTime {
			t.Errorf("%+v", a)
		}
		slow.Store(false)
		time.Sleep(readyFor)
		go s.call(t, "ann", "wait")
		<-g.began
		late := make(chan said, 1)
		go func() { late <- s.get(t, "GET", "") }()
		synctest.Wait()
		stopped := make(chan struct{})
		go func() {
			_ = s.stop() // its error is checked at the end of the test
			close(stopped)
		}()
		synctest.Wait()
		if a := s.call(t, "bob", "now"); a.status != http.StatusServiceUnavailable {
			t.Errorf("a call while it stops: %+v", a)
		}
		for _, a := range []said{<-late, s.get(t, "GET", "")} {
			if a.status != http.StatusServiceUnavailable || a.body != "stopping\n" {
				t.Errorf("%+v", a)
			}
		}
		close(g.release)
		<-stopped
		if _, err := s.pipes.dial(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it listens still: %v", err)
		}
	})
}
