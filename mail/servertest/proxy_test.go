package servertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo is a server that greets and answers each line with the same line. A line
// "quiet" gets no answer, "end" ends the connection.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprint(conn, "hello\n")
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					switch lines.Text() {
					case "quiet":
					case "end":
						return
					default:
						fmt.Fprintln(conn, lines.Text())
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

type lines struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *lines {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	l := &lines{conn, bufio.NewReader(conn)}
	l.expect(t, "hello")
	return l
}

func (l *lines) expect(t *testing.T, want string) {
	t.Helper()
	if got, err := l.r.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func (l *lines) send(t *testing.T, s string) {
	t.Helper()
	if _, err := l.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

func TestProxyCounts(t *testing.T) {
	for _, latency := range []time.Duration{0, 2 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			p := NewProxy(t, echo(t), ProxyOptions{Latency: latency})
			c := dial(t, p)
			c.send(t, "one\n")
			c.expect(t, "one")
			c.send(t, "two\nthree\n") // pipelined: one flight
			c.expect(t, "two")
			c.expect(t, "three")
			if got, want := p.Stats(), (ProxyStats{Connections: 1, ToServer: 14, ToClient: 20, Flights: 2}); got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			c.send(t, "quiet\n")
			c.send(t, "quiet\n") // nothing answered in between: the same flight
			c.send(t, "end\n")
			if _, err := c.r.ReadByte(); err != io.EOF {
				t.Fatalf("got %v, want the end", err)
			}
			dial(t, p)
			if got, want := p.Reset(), (ProxyStats{Connections: 2, ToServer: 30, ToClient: 26, Flights: 3}); got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			if got := p.Stats(); got != (ProxyStats{}) {
				t.Fatalf("after reset: %+v", got)
			}
		})
	}
}

func TestProxyCutBreaksOpenConnectionsOnly(t *testing.T) {
	p := NewProxy(t, echo(t), ProxyOptions{})
	c := dial(t, p)
	p.Cut()
	if _, err := c.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is still open: %v", err)
	}
	dial(t, p)
}
