package imap

import (
	"cmp"
	"slices"

	goimap "github.com/emersion/go-imap/v2"
)

// NumSet names messages of a folder: a UIDSet or a SeqRange.
type NumSet interface {
	wire() goimap.NumSet
	most() int64           // how many messages it can name
	holds(m *Fetched) bool // whether it can name this one
	newestFirst() []NumSet // in pieces, of which the first has the highest numbers
}

// UIDRange is the UIDs from First to Last, which is not lower.
type UIDRange struct{ First, Last uint32 }

// UIDSet is a set of UIDs, none of them 0: ranges that rise and do not touch. The zero value
// is empty.
type UIDSet []UIDRange

// UIDs makes a set of UIDs.
func UIDs(uids ...uint32) UIDSet {
	set := make(UIDSet, len(uids))
	for i, u := range uids {
		set[i] = UIDRange{u, u}
	}
	return UIDsIn(set)
}

// UIDsBetween is the set of the UIDs from first to last, empty where last is lower.
func UIDsBetween(first, last uint32) UIDSet {
	if last < first {
		return nil
	}
	return UIDSet{{first, last}}
}

// UIDsIn is the set of the UIDs in ranges, which may overlap. It puts them in order.
func UIDsIn(ranges []UIDRange) (set UIDSet) {
	slices.SortFunc(ranges, func(a, b UIDRange) int { return cmp.Compare(a.First, b.First) })
	for _, r := range ranges {
		if n := len(set); n > 0 && (set[n-1].Last == 1<<32-1 || r.First <= set[n-1].Last+1) {
			set[n-1].Last = max(set[n-1].Last, r.Last)
		} else {
			set = append(set, r)
		}
	}
	return set
}

// Contains reports whether a UID is in the set.
func (s UIDSet) Contains(uid uint32) bool {
	_, found := slices.BinarySearchFunc(s, uid, func(r UIDRange, uid uint32) int {
		switch {
		case r.Last < uid:
			return -1
		case r.First > uid:
			return 1
		}
		return 0
	})
	return found
}

// Count is the number of UIDs, without expanding them.
func (s UIDSet) Count() (n uint64) {
	for _, r := range s {
		n += uint64(r.Last) - uint64(r.First) + 1
	}
	return n
}

// Numbers returns the UIDs; none if there are more than maxCopied.
func (s UIDSet) Numbers() []uint32 {
	if s.Count() > maxCopied {
		return nil
	}
	var all []uint32
	for _, r := range s {
		for u := r.First; ; u++ {
			all = append(all, u)
			if u == r.Last {
				break
			}
		}
	}
	return all
}

// Split takes n UIDs from one end of the set, without expanding the rest.
func (s UIDSet) Split(n uint32, oldest bool) (taken, left UIDSet) {
	left = slices.Clone(s)
	for n > 0 && len(left) > 0 {
		i := len(left) - 1
		if oldest {
			i = 0
		}
		r := left[i]
		if size := uint64(r.Last) - uint64(r.First) + 1; size <= uint64(n) {
			taken = append(taken, r)
			left = slices.Delete(left, i, i+1)
			n -= uint32(size)
			continue
		}
		if oldest {
			taken = append(taken, UIDRange{r.First, r.First + n - 1})
			left[i].First += n
		} else {
			taken = append(taken, UIDRange{r.Last - n + 1, r.Last})
			left[i].Last -= n
		}
		n = 0
	}
	return UIDsIn(taken), left
}

// Newest are the n highest UIDs of the set, or all of them.
func (s UIDSet) Newest(n int) UIDSet {
	newest, _ := s.Split(uint32(n), false)
	return newest
}

// With is the UIDs of both sets.
func (s UIDSet) With(other UIDSet) UIDSet { return UIDsIn(slices.Concat(s, other)) }

// Without is the part of the set that another does not hold.
func (s UIDSet) Without(other UIDSet) (out UIDSet) {
	for _, r := range s {
		for len(other) > 0 && other[0].Last < r.First {
			other = other[1:]
		}
		kept := true
		for _, o := range other {
			if o.First > r.Last {
				break
			}
			if o.First > r.First {
				out = append(out, UIDRange{r.First, o.First - 1})
			}
			if kept = o.Last < r.Last; !kept {
				break
			}
			r.First = o.Last + 1
		}
		if kept {
			out = append(out, r)
		}
	}
	return out
}

// firstPiece is the size of the smallest piece of FetchNewest; each other is twice as large as
// the one before.
const firstPiece = 4

// NewestFirst divides the set as FetchNewest does.
func (s UIDSet) NewestFirst() (pieces []UIDSet) {
	for n, left := uint32(firstPiece), s; len(left) > 0; n = max(n, 2*n) {
		var piece UIDSet
		piece, left = left.Split(n, false)
		pieces = append(pieces, piece)
	}
	return pieces
}

func (s UIDSet) newestFirst() (pieces []NumSet) {
	for _, piece := range s.NewestFirst() {
		pieces = append(pieces, piece)
	}
	return pieces
}

func (s UIDSet) most() int64 { return int64(min(s.Count(), 1<<31-1)) }

func (s UIDSet) holds(m *Fetched) bool { return s.Contains(m.UID) }

func (s UIDSet) wire() goimap.NumSet { return s.uids() }

func (s UIDSet) uids() goimap.UIDSet {
	set := make(goimap.UIDSet, len(s))
	for i, r := range s {
		set[i] = goimap.UIDRange{Start: goimap.UID(r.First), Stop: goimap.UID(r.Last)}
	}
	return set
}

// uidsOf is a set that a server sent; false where it has * in it, or is none.
func uidsOf(sent goimap.UIDSet) (UIDSet, bool) {
	set := make([]UIDRange, len(sent))
	for i, r := range sent {
		if r.Start == 0 || r.Stop < r.Start {
			return nil, false
		}
		set[i] = UIDRange{uint32(r.Start), uint32(r.Stop)}
	}
	return UIDsIn(set), true
}

// SeqRange is messages by their sequence numbers, from First to Last, which is not lower. A Last
// of 0 is the newest message there is.
type SeqRange struct{ First, Last uint32 }

func (r SeqRange) newestFirst() (pieces []NumSet) {
	for n, high := uint32(firstPiece), r.Last; high >= r.First; n = max(n, 2*n) {
		low := high - min(n, high-r.First+1) + 1
		pieces, high = append(pieces, SeqRange{low, high}), low-1 // numbers begin at 1
	}
	return pieces
}

func (r SeqRange) most() int64 {
	if r.Last == 0 {
		return maxOpenSet
	}
	return int64(r.Last) - int64(r.First) + 1
}

// holds is true for any message where the range is open: the newest may have a lower number.
func (r SeqRange) holds(m *Fetched) bool {
	return r.Last == 0 || m.Number >= r.First && m.Number <= r.Last
}

func (r SeqRange) wire() goimap.NumSet { return goimap.SeqSet{{Start: r.First, Stop: r.Last}} }
