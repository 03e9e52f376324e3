package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/postern-mail/postern/discovery"
)

// FuzzOrder plays a script on a line and on what its rules say in so many words:
// each byte makes a request arrive, say what it is, or finish.
func FuzzOrder(f *testing.F) {
	for _, seed := range []string{"", "\x00\x00\x00\x40\x81\x42\xc1\xc0", "\x00\x00\x81\x40\x80\xc0\x81", "\x00\x00\x00\x00\x43\x42\x81\x40\xc3\xc0\x42\xc1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		type request struct {
			ticket   *Ticket
			kind     ticketKind
			turn     <-chan struct{}
			finished bool
		}
		var order Order
		var all []*request
		may := func(i int) bool {
			for _, earlier := range all[:i] {
				if !earlier.finished && (earlier.kind != reads || all[i].kind == changes) {
					return false
				}
			}
			return true
		}
		for _, b := range script {
			op, which := b>>6, int(b&0x3f)
			switch {
			case op == 0:
				if len(all) <= 0x3f {
					all = append(all, &request{ticket: order.Ticket()})
				}
			case which >= len(all):
			case op == 3:
				all[which].ticket.Finish()
				all[which].finished = true
			default:
				r, kind := all[which], ticketKind(op)
				turn, err := r.ticket.declare(kind)
				if wrong := r.finished || r.kind != 0; wrong != (err != nil) {
					t.Fatalf("after %q request %d declares kind %d: %v", script, which, kind, err)
				}
				if turn != nil {
					r.kind, r.turn = kind, turn
				}
			}
			waiting := 0
			for i, r := range all {
				if r.finished {
					continue
				}
				waiting++
				if r.kind == 0 {
					continue
				}
				told := false
				select {
				case <-r.turn:
					told = true
				default:
				}
				if told != may(i) {
					t.Fatalf("after %q request %d of kind %d: told %v", script, i, r.kind, told)
				}
			}
			if n := order.Len(); n != waiting {
				t.Fatalf("%d in line, want %d", n, waiting)
			}
		}
	})
}

// waitAs declares what kind of request it is and waits for its turn.
func (t *Ticket) waitAs(ctx context.Context, k ticketKind) error {
	turn, err := t.declare(k)
	if err != nil {
		return err
	}
	return t.await(ctx, turn)
}

func TestAnEndedContextStartsNothingAndLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order Order
		first, second, third := order.Ticket(), order.Ticket(), order.Ticket()
		if err := first.waitAs(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- second.waitAs(ctx, changes) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		first.Finish()
		if err := third.waitAs(ctx, changes); !errors.Is(err, context.Canceled) {
			t.Errorf("its turn has come and its context has ended: %v", err)
		}
		if err := third.waitAs(t.Context(), changes); !errors.Is(err, errFinished) {
			t.Errorf("one that has left the line gets in again: %v", err)
		}
		if n := order.Len(); n != 0 {
			t.Errorf("%d are left in line", n)
		}
	})
}

func TestAnUnknownEffectIsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, effect := range []discovery.Effect{discovery.State, discovery.Flag, discovery.Write, discovery.Send, discovery.Admin, discovery.Admin + 1} {
			var order Order
			read, change := order.Ticket(), order.Ticket()
			if err := read.waitAs(t.Context(), reads); err != nil {
				t.Fatal(err)
			}
			turn, err := change.enter(effect)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-turn:
				t.Errorf("effect %d does not wait for a read", effect)
			default:
			}
		}
	})
}

func mustRegistry(tb testing.TB, commands ...*discovery.Command) *discovery.Registry {
	tb.Helper()
	r, err := discovery.NewRegistry(discovery.Info{Name: "test", Version: "1", Groups: map[string]string{"do": "Do things"}}, commands...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// BenchmarkDoInOrder is what the line costs a command: none, alone in it, and behind
// as many reads as are let in at once.
func BenchmarkDoInOrder(b *testing.B) {
	type none struct{}
	run := func(context.Context, *discovery.Call, *none) (*none, error) { return &none{}, nil }
	registry := mustRegistry(b, discovery.New(discovery.Spec{Path: "do read", Summary: "Read", Effect: discovery.Read, Examples: []string{"do read"}}, run),
		discovery.New(discovery.Spec{Path: "do write", Summary: "Write", Effect: discovery.Write, Examples: []string{"do write"}}, run))
	g, err := New(Options{Registry: registry, Profile: FullProfile(), Settings: FixedSettings{CommandsPerMinute: 1 << 40}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, line string
		ahead      int // -1: no line at all
	}{{"read without", "do read", -1}, {"read alone", "do read", 0}, {"read behind reads", "do read", 63},
		{"write without", "do write", -1}, {"write alone", "do write", 0}} {
		b.Run(c.name, func(b *testing.B) {
			var order Order
			for range c.ahead {
				if err := order.Ticket().waitAs(b.Context(), reads); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				var ticket *Ticket
				if c.ahead >= 0 {
					ticket = order.Ticket()
				}
				if a := g.Do(b.Context(), Request{Principal: Principal{Name: "bench"}, Line: c.line, Ticket: ticket}); !a.Success() {
					b.Fatalf("%s", a.JSON)
				}
				ticket.Finish()
			}
		})
	}
}
