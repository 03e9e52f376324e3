package mcpserve

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// A client that writes without reading costs a bounded amount: answers pile up nowhere.
func TestFloodsAreAnsweredWithBoundedWork(t *testing.T) {
	const most, n = 8, 2000
	for name, line := range map[string]func(id int) string{
		"call":      func(id int) string { return callLine(id, "x") },
		"ping":      func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) },
		"unknown":   func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"nope"}`, id) },
		"malformed": func(int) string { return "nope" },
	} {
		bubble(t, name, func(t *testing.T) {
			outR, outW := io.Pipe()
			inW, conn, session := startConn(t, outW, Server{Gateway: echo, MaxInFlight: most, MaxQueued: 100})
			answers := bufio.NewScanner(outR)
			_, _ = io.WriteString(inW, initializeLine+"\n")
			if !answers.Scan() {
				t.Fatal("no answer to initialize")
			}
			before := runtime.NumGoroutine()
			go func() {
				for id := range n {
					_, _ = io.WriteString(inW, line(id+1)+"\n")
				}
				_ = inW.Close()
			}()
			synctest.Wait()
			conn.mu.Lock()
			if conn.frames > 100 || conn.control.running > maxControl || conn.calls.running > most || len(conn.byKey) > 100+maxControl {
				t.Errorf("%d frames wait, %d and %d at work, %d known", conn.frames, conn.control.running, conn.calls.running, len(conn.byKey))
			}
			conn.mu.Unlock()
			if more := runtime.NumGoroutine() - before; more > 3*maxControl {
				t.Errorf("%d goroutines for it", more)
			}
			seen := map[string]bool{}
			lines := 0
			for ; answers.Scan(); lines++ {
				seen[answers.Text()] = true
			}
			if lines != n || name != "malformed" && len(seen) != n {
				t.Errorf("%d answers, %d different, want %d", lines, len(seen), n)
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
		if line != nil || !long || err != nil {
			b.Errorf("got %d bytes, %v, %v", len(line), long, err)
		}
	}).MemBytes
	if allocated > 8*maxLine {
		t.Errorf("%d bytes allocated", allocated)
	}
	if line, long, err := readLine(r); string(line) != "next" || long || err != nil {
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
