package imap

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/postern-mail/postern/mail/internal/wire"
	"github.com/postern-mail/postern/mail/servertest/scripted"
)

// live is the memory in use when nothing is left to collect.
func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What was not asked for is not kept, however much of it comes.
func TestFloodIsNotKept(t *testing.T) {
	const size = 64 << 10
	const times = 200 // 13 MB
	body := strings.Repeat("x", size)
	section := Items{Sections: []Section{{Only: Text}}}
	message := func(seq, uid int) string {
		return fmt.Sprintf("* %d FETCH (UID %d BODY[TEXT] {%d}\r\n%s)\r\n", seq, uid, size, body)
	}
	tests := []struct {
		name string
		set  NumSet
		send func(i int) string
		want int
	}{
		{"messages nobody asked for", UIDs(7), func(i int) string { return message(i+1, i+1) }, 1},
		{"the same message", UIDs(7), func(int) string { return message(7, 7) }, 1},
		{"the same number, other messages", SeqRange{7, 7}, func(i int) string { return message(7, i+1) }, 1},
		{"messages whose number comes last", UIDs(7), func(i int) string {
			return fmt.Sprintf("* %d FETCH (BODY[TEXT] {%d}\r\n%s UID %d)\r\n", i+1, size, body, i+1)
		}, 1},
		{"sections of one message", UIDs(7), func(i int) string {
			return fmt.Sprintf("* 7 FETCH (UID 7 BODY[%d] {%d}\r\n%s)\r\n", i+1, size, body)
		}, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			sent, proceed := make(chan struct{}), make(chan struct{})
			cfg := serve(t, func(s *scripted.Conn) {
				s.Login()
				tag, _ := s.Expect()
				for i := range times {
					s.Send(tc.send(i))
				}
				close(sent)
				<-proceed
				s.Send(tag + " OK done\r\n")
				s.Drain()
			})
			cfg.Limits.Bytes = 1 << 30
			before := live()
			using(t, cfg, func(s *Session) error {
				f := s.Fetch(tc.set, section)
				<-sent
				if after := live(); after > before+8<<20 {
					t.Errorf("holds %d bytes of %d", after-before, size*times)
				}
				close(proceed)
				data, err := f.Wait()
				if err == nil && len(data) != tc.want {
					err = fmt.Errorf("%d messages", len(data))
				}
				return err
			})
		})
	}
}

// Where it is known how much an answer can need, a flood ends early.
func TestBudgetFitsWhatWasAsked(t *testing.T) {
	chunk := strings.Repeat("* 1 FETCH (UID 7 BODY[TEXT] {1000}\r\n"+strings.Repeat("x", 1000)+")\r\n", 100)
	got := make(chan int, 1)
	cfg := serve(t, func(s *scripted.Conn) {
		s.Login()
		s.Expect()
		n := 0
		defer func() { got <- n }()
		for {
			if _, err := io.WriteString(s.Conn, chunk); err != nil {
				return
			}
			n += len(chunk)
		}
	})
	s := dial(t, cfg)
	partial := Items{Sections: []Section{{Only: Text, Size: 1000}}}
	err := s.Use(t.Context(), func(_ context.Context, s *Session) error { return second(s.Fetch(UIDs(7), partial).Wait()) })
	if wantError(t, err, wire.KindLimit, StageFetch); !overLimit(err, "bytes") {
		t.Errorf("ended by %v", err)
	}
	_ = s.Close()
	if n := <-got; n > 24<<20 { // of the 64 MiB that any lend may cost
		t.Errorf("read about %d bytes", n)
	}
}

// A fetch takes from the budget of a lend what it used, and no more.
func TestBudgetIsGivenBack(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	cfg := serve(t, scripted.AnswerIMAP(scripted.Caps, func(command string) string {
		if strings.Contains(command, "BODY") {
			return fmt.Sprintf("* 1 FETCH (UID 7 BODY[TEXT] {%d}\r\n%s)\r\nTAG OK done\r\n", len(body), body)
		}
		return "* 1 FETCH (UID 7 FLAGS ())\r\nTAG OK done\r\n"
	}))
	cfg.Limits.Bytes = 12 << 20
	s := dial(t, cfg)
	fetch := func(opts Items) error { return second(s.Fetch(UIDs(7), opts).Wait()) }
	whole := Items{Sections: []Section{{Only: Text}}}
	err := s.Use(t.Context(), func(context.Context, *Session) error {
		for i := range 11 {
			if err := fetch(Items{Flags: true}); err != nil {
				return fmt.Errorf("flags %d: %w", i, err)
			}
			if err := fetch(whole); err != nil {
				return fmt.Errorf("body %d: %w", i, err)
			}
		}
		s.Renew()
		return fetch(whole)
	})
	must(t, err)
	err = s.Use(t.Context(), func(context.Context, *Session) error {
		for range 12 {
			if err := fetch(whole); err != nil {
				return err
			}
		}
		return nil
	})
	wantError(t, err, wire.KindLimit, StageFetch)
}
