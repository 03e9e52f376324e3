package mcpserve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/postern-mail/postern/gateway"
)

func TestAFloodIsAnsweredWithBoundedWork(t *testing.T) {
	const n = 20_000
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		release := make(chan struct{})
		s := startInitialized(t, fakeGateway(func(context.Context, gateway.Request) gateway.Answer {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			<-release
			return gateway.Answer{JSON: []byte("ok")}
		}), Server{})
		var flood strings.Builder
		for id := range n {
			flood.WriteString(callLine(id+1, "x") + "\n")
		}
		written := make(chan struct{})
		go func() {
			_, _ = io.WriteString(s.in, flood.String())
			close(written)
		}()
		synctest.Wait()
		select {
		case <-written:
			t.Error("all was read though the queue is full")
		default:
		}
		close(release)
		<-written
		seen := map[string]bool{}
		got := s.take()
		for _, line := range got {
			seen[summary(t, line)] = true
		}
		if m := most.Load(); len(got) != n || len(seen) != n || m != defaultInFlight {
			t.Errorf("%d answers, %d different, want %d; %d calls at once, want %d", len(got), len(seen), n, m, defaultInFlight)
		}
	})
}

func TestFloodsOfOtherMessagesAreBoundedToo(t *testing.T) {
	for name, line := range map[string]func(id int) string{
		"ping":      func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) },
		"unknown":   func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"nope"}`, id) },
		"malformed": func(int) string { return "nope" },
	} {
		bubble(t, name, func(t *testing.T) {
			// A client that writes without reading: answers pile up nowhere.
			outR, outW := io.Pipe()
			inW, conn, session := startConn(t, outW, Server{Gateway: echo, MaxQueued: 100})
			answers := bufio.NewScanner(outR)
			_, _ = io.WriteString(inW, initializeLine+"\n")
			if !answers.Scan() {
				t.Fatal("no answer to initialize")
			}
			const n = 5000
			before := runtime.NumGoroutine()
			go func() {
				for id := range n {
					_, _ = io.WriteString(inW, line(id+1)+"\n")
				}
				_ = inW.Close()
			}()
			synctest.Wait()
			conn.mu.Lock()
			if conn.frames > 100 || conn.control.running > maxControl || len(conn.byID) > 100+maxControl {
				t.Errorf("%d frames wait, %d at work, %d known", conn.frames, conn.control.running, len(conn.byID))
			}
			conn.mu.Unlock()
			if more := runtime.NumGoroutine() - before; more > 3*maxControl {
				t.Errorf("%d goroutines for it", more)
			}
			lines := 0
			for ; answers.Scan(); lines++ {
			}
			if lines != n {
				t.Errorf("%d answers, want %d", lines, n)
			}
			wantNoError(t, session.Wait())
		})
	}
}

func TestQueuedBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		inW, conn, session := startConn(t, nopWriteCloser{io.Discard}, Server{Gateway: g, MaxInFlight: 1})
		if conn.fullBytes != 16<<20 {
			t.Errorf("%d bytes may wait", conn.fullBytes)
		}
		conn.fullBytes = 160_000
		go func() {
			_, _ = io.WriteString(inW, initializeLine+"\n")
			for id := range 40 {
				size := 10_000
				if id == 20 {
					size = 500_000 // more than fits: it goes alone
				}
				_, _ = io.WriteString(inW, callLine(id+1, strings.Repeat("x", size))+"\n")
			}
			_ = inW.Close()
		}()
		synctest.Wait()
		conn.mu.Lock()
		if conn.bytes > conn.fullBytes || conn.frames < 14 {
			t.Errorf("%d bytes wait in %d frames", conn.bytes, conn.frames)
		}
		conn.mu.Unlock()
		close(g.release)
		wantNoError(t, session.Wait())
		if n := len(g.began); n != 40 {
			t.Errorf("%d calls ran, want 40", n)
		}
	})
}

func TestAnEndlessLineCostsBoundedMemory(t *testing.T) {
	r := bufio.NewReaderSize(io.MultiReader(io.LimitReader(neverNewline{}, 256<<20), strings.NewReader("\nnext\n")), readBufferLength)
	allocated := testing.Benchmark(func(b *testing.B) {
		if b.N > 1 {
			return
		}
		b.ReportAllocs()
		line, long, err := readLine(r)
		if line != nil || long == nil || err != nil {
			b.Errorf("got %d bytes, %v, %v", len(line), long, err)
		}
	}).MemBytes
	if allocated > 8*maxLine {
		t.Errorf("%d bytes allocated", allocated)
	}
	if line, long, err := readLine(r); string(line) != "next" || long != nil || err != nil {
		t.Errorf("after it: %q, %v, %v", line, long, err)
	}
}

type neverNewline struct{}

func (neverNewline) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestCancellingWhatWaitsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		inW, conn, session := startConn(t, nopWriteCloser{io.Discard}, Server{Gateway: g, MaxInFlight: 1})
		_, _ = io.WriteString(inW, initializeLine+"\n"+callLine(1, "x")+"\n")
		for id := range 10_000 {
			_, _ = io.WriteString(inW, callLine(id+2, "x")+"\n"+cancelLine(id+2)+"\n")
		}
		synctest.Wait()
		conn.mu.Lock()
		if n := conn.calls.waiting.Len() + conn.direct.Len() + conn.frames + conn.bytes; n != 0 || len(conn.byID) != 1 || len(conn.byKey) != 1 {
			t.Errorf("%d left, %d and %d known", n, len(conn.byID), len(conn.byKey))
		}
		conn.mu.Unlock()
		close(g.release)
		_ = inW.Close()
		wantNoError(t, session.Wait())
	})
}

func TestPingAndCancelOvertakeWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBlockingGateway()
		s := startInitialized(t, g, Server{MaxInFlight: 2})
		for id := range 1000 {
			s.send(callLine(id+1, "x"))
		}
		s.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
		got := s.take()
		if len(got) != 2 {
			t.Fatalf("got %d answers while calls wait, want those to ping and tools/list", len(got))
		}
		s.send(cancelLine(1))
		synctest.Wait()
		if len(g.cancelled) != 1 {
			t.Error("a cancellation waits behind calls")
		}
		close(g.release)
		if got := s.take(); len(got) != 999 {
			t.Errorf("%d answers, want 999", len(got))
		}
	})
}

func TestMessagesAreStartedInTheRightOrder(t *testing.T) {
	conn := newStdioConn(io.NopCloser(strings.NewReader("")), nopWriteCloser{io.Discard}, &Server{})
	for _, line := range []string{callLine(1, "x"), initializeLine, initializedLine, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, callLine(3, "y")} {
		f, fault := parseFrame([]byte(line))
		if fault == nil {
			fault = conn.take(f, len(line))
		}
		if fault != nil {
			t.Fatal(fault.message)
		}
	}
	for _, want := range []string{"initialize", "notifications/initialized", "ping", "tools/call", "tools/call"} {
		m, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(*jsonrpc.Request).Method; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
