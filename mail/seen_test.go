package mail

import (
	"math/rand/v2"
	"reflect"
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
		}{"UIDVALIDITY": {testMailbox, 8}, "UIDVALIDITY and server": {"other:993 ann", 8}} {
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

// Another name of server or user resets nothing by itself: what is new stays new
// where the folder can be the same.
func TestSeenFollowsAnotherName(t *testing.T) {
	const other = "mail.example.org:143 ann@example.org"
	for name, tc := range map[string]struct {
		validity, last uint32
		backlog        bool
		want           SeenState
	}{
		"the same folder":               {7, 60, false, SeenState{UIDValidity: 7, Floor: 41, Acked: []UIDRange{{50, 50}}}},
		"with the backlog":              {7, 60, true, SeenState{UIDValidity: 7, Floor: 41, Acked: []UIDRange{{50, 50}}}},
		"nothing came since":            {7, 50, false, SeenState{UIDValidity: 7, Floor: 41, Acked: []UIDRange{{50, 50}}}},
		"UIDs that are not out yet":     {7, 49, false, SeenState{UIDValidity: 7, Floor: 41}},
		"a younger folder":              {7, 5, false, SeenState{UIDValidity: 7, Floor: 5}},
		"a younger folder, its backlog": {7, 5, true, SeenState{UIDValidity: 7}},
		"another folder":                {8, 60, false, SeenState{UIDValidity: 8, Floor: 60}},
		"another folder's backlog":      {8, 60, true, SeenState{UIDValidity: 8}},
	} {
		s := SeenState{Mailbox: testMailbox, UIDValidity: 7, Floor: 41, Acked: []UIDRange{{50, 50}}}
		s.Begin(other, tc.validity, tc.last, tc.backlog)
		if tc.want.Mailbox = other; !reflect.DeepEqual(s, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, s, tc.want)
		}
	}
}

// A mailbox by another name keeps the names that are there and no others, so that
// none of what another mailbox gives later passes for dealt with.
func TestSeenNamesFollowAnotherName(t *testing.T) {
	var s SeenState
	s.BeginNames("pop.example.org:995 ann", []string{"a", "b", "c"}, false)
	s.FollowNames("pop.example.org:110 ann", []string{"b", "c", "d"})
	if s.Mailbox != "pop.example.org:110 ann" || s.IsNewName("b") || s.IsNewName("c") || !s.IsNewName("d") || !s.IsNewName("a") || len(s.Names) != 2 {
		t.Errorf("%+v", s)
	}
	s.FollowNames("pop.example.org:110 ann", nil)
	if len(s.Names) != 2 {
		t.Errorf("the same name changed the state: %+v", s)
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
