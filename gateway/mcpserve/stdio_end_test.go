package mcpserve

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/postern-mail/postern/gateway"
)

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// brokenPipe fails every write after the first so many, as a client that went away
// makes them fail.
type brokenPipe struct{ left atomic.Int32 }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left.Add(-1) < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

func (*brokenPipe) Close() error { return nil }

func TestABrokenOutputEndsTheSession(t *testing.T) {
	for name, stubborn := range map[string]bool{"calls that stop": false, "a call that ignores its context": true} {
		bubble(t, name, func(t *testing.T) {
			g, release := newBlockingGateway(), make(chan struct{})
			var receipts []string
			fake := fakeGateway(func(ctx context.Context, c gateway.Request) gateway.Answer {
				if stubborn && c.Line == "slow" {
					<-release
				}
				a := g.Do(ctx, c)
				a.Receipts = []func(){func() { receipts = append(receipts, c.Line) }}
				return a
			})
			out := &brokenPipe{}
			out.left.Store(2) // the answer to initialize, and one more
			inR, inW := io.Pipe()
			result := make(chan error, 1)
			go func() { result <- (&Server{Gateway: fake}).Stdio(t.Context(), inR, out) }()
			for i, line := range []string{initializeLine, callLine(1, "slow"), callLine(2, "now"), callLine(3, "now")} {
				_, _ = io.WriteString(inW, line+"\n")
				if i < 3 {
					synctest.Wait()
				}
			}
			if err := <-result; !errors.Is(err, syscall.EPIPE) {
				t.Errorf("got %v, want EPIPE", err)
			}
			close(release)
			synctest.Wait()
			if len(g.cancelled) != 1 || !slices.Equal(receipts, []string{"now"}) {
				t.Errorf("%d calls cancelled, receipts for %q", len(g.cancelled), receipts)
			}
		})
	}
}

func TestRealPipes(t *testing.T) {
	errAny := errors.New("any error") // systems name it differently
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		must(t, err)
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	for name, c := range map[string]struct {
		end  func(stop func(), in, out *os.File)
		want error
	}{
		"end of input":         {func(_ func(), in, _ *os.File) { _ = in.Close() }, nil},
		"stop while it reads":  {func(stop func(), _, _ *os.File) { stop() }, context.Canceled},
		"client stops reading": {func(_ func(), in, out *os.File) { _ = out.Close(); _, _ = io.WriteString(in, callLine(1, "x")+"\n") }, errAny},
	} {
		t.Run(name, func(t *testing.T) {
			inR, inW := pipe()
			outR, outW := pipe()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			result := make(chan error, 1)
			go func() { result <- (&Server{Gateway: echo}).Stdio(ctx, inR, outW) }()
			_, _ = io.WriteString(inW, initializeLine+"\n")
			if line, err := bufio.NewReader(outR).ReadString('\n'); err != nil || summary(t, line) != "0|result" {
				t.Fatalf("%q, %v", line, err)
			}
			c.end(stop, inW, outR)
			if err := <-result; !errors.Is(err, c.want) && (c.want != errAny || err == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestAnOutputThatNobodyReadsDoesNotKeepTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		inR, inW := io.Pipe()
		_, outW := io.Pipe()
		result := make(chan error, 1)
		go func() { result <- (&Server{Gateway: echo}).Stdio(ctx, inR, outW) }()
		_, _ = io.WriteString(inW, initializeLine+"\n")
		synctest.Wait()
		stop()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestABrokenInputIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("cable pulled")
		s := startInitialized(t, echo, Server{})
		_ = s.in.CloseWithError(broken)
		if err := s.wait(); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		s.stop()
	})
}
