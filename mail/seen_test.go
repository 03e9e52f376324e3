package mail

import (
	"math/rand/v2"
	"slices"
	"testing"
)

const testMailbox = "imap.example.org:993 ann"

func TestSeenBeginsByBacklog(t *testing.T) {
	for _, tc := range []struct {
		backlog bool
		floor   uint32
	}{{false, 41}, {true, 0}} {
		var s SeenState
		s.Begin(testMailbox, 7, 41, tc.backlog)
		if s.Floor != tc.floor || !s.Known(testMailbox, 7) {
			t.Errorf("backlog %v: floor %d, want %d", tc.backlog, s.Floor, tc.floor)
		}
		s.Ack(50)
		s.Begin(testMailbox, 7, 99, tc.backlog)
		if s.Floor != tc.floor || s.IsNew(50) {
			t.Errorf("backlog %v: a second contact changed the state", tc.backlog)
		}
		for what, again := range map[string]struct {
			mailbox  string
			validity uint32
		}{"UIDVALIDITY": {testMailbox, 8}, "server": {"other:993 ann", 7}} {
			c := s
			c.Begin(again.mailbox, again.validity, 60, tc.backlog)
			want := uint32(60)
			if tc.backlog {
				want = 0
			}
			if c.Floor != want || len(c.Acked) != 0 {
				t.Errorf("another %s: floor %d with %v, want %d with nothing", what, c.Floor, c.Acked, want)
			}
		}
	}
}

// TestSeenAgreesWithASet acknowledges in random order and compares with a plain
// set after each step.
func TestSeenAgreesWithASet(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		floor := rnd.Uint32N(5)
		s := SeenState{UIDValidity: 1, Floor: floor}
		acked := map[uint32]bool{}
		for range 60 {
			batch := make([]uint32, rnd.IntN(4))
			for i := range batch {
				batch[i] = rnd.Uint32N(60)
				acked[batch[i]] = true
			}
			s.Ack(batch...)
			for uid := range uint32(70) {
				if want := uid > floor && !acked[uid]; s.IsNew(uid) != want {
					t.Fatalf("seed %d: IsNew(%d) = %v after %v", seed, uid, !want, s)
				}
				inRun := slices.ContainsFunc(s.Unacked(), func(r UIDRange) bool { return r.First <= uid && uid <= r.Last })
				if inRun != s.IsNew(uid) {
					t.Fatalf("seed %d: Unacked disagrees at %d: %v", seed, uid, s.Unacked())
				}
			}
			for i, r := range s.Acked {
				if r.First > r.Last || r.First <= s.Floor+1 || i > 0 && r.First <= s.Acked[i-1].Last+1 {
					t.Fatalf("seed %d: not compact: %+v", seed, s)
				}
			}
		}
	}
}

func TestSeenAtTheEndOfTheNumbers(t *testing.T) {
	const end = 1<<32 - 1
	s := SeenState{UIDValidity: 1, Floor: end - 2}
	s.Ack(end)
	if !s.IsNew(end-1) || s.IsNew(end) || len(s.Unacked()) != 1 {
		t.Errorf("%+v: %v", s, s.Unacked())
	}
	s.Ack(end - 1)
	if s.Floor != end || len(s.Acked) != 0 || len(s.Unacked()) != 0 {
		t.Errorf("not compacted: %+v, %v", s, s.Unacked())
	}
}
