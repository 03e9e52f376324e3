package imap

import (
	"cmp"
	"slices"

	goimap "github.com/emersion/go-imap/v2"
)

// UIDs makes a set of UIDs.
func UIDs(uids ...uint32) goimap.UIDSet {
	var set goimap.UIDSet
	for _, u := range uids {
		set.AddNum(goimap.UID(u))
	}
	return set
}

// CountUIDs counts the UIDs of a set without expanding it.
func CountUIDs(set goimap.UIDSet) (n uint64) {
	for _, r := range set {
		n += uint64(r.Stop) - uint64(r.Start) + 1
	}
	return n
}

// SplitUIDs takes n UIDs from one end of a set, without expanding the rest.
func SplitUIDs(set goimap.UIDSet, n uint32, oldest bool) (taken, left goimap.UIDSet) {
	set = rising(set)
	for n > 0 && len(set) > 0 {
		i := len(set) - 1
		if oldest {
			i = 0
		}
		r := set[i]
		if size := uint64(r.Stop) - uint64(r.Start) + 1; size <= uint64(n) {
			taken.AddRange(r.Start, r.Stop)
			set = slices.Delete(set, i, i+1)
			n -= uint32(size)
			continue
		}
		if oldest {
			taken.AddRange(r.Start, r.Start+goimap.UID(n)-1)
			set[i].Start += goimap.UID(n)
		} else {
			taken.AddRange(r.Stop-goimap.UID(n)+1, r.Stop)
			set[i].Stop -= goimap.UID(n)
		}
		n = 0
	}
	return taken, set
}

// firstPiece is the size of the smallest piece of FetchNewest; each other is twice as large as
// the one before.
const firstPiece = 4

// newestFirst divides a set into pieces, of which the first has the highest numbers. A
// set of several ranges of sequence numbers stays as it is.
func newestFirst(set goimap.NumSet) (pieces []goimap.NumSet) {
	switch set := set.(type) {
	case goimap.UIDSet:
		for n, left := uint32(firstPiece), set; len(left) > 0 && !set.Dynamic(); n = max(n, n*2) { // at last half of all numbers
			var piece goimap.UIDSet
			piece, left = SplitUIDs(left, n, false)
			pieces = append(pieces, piece)
		}
	case goimap.SeqSet:
		if len(set) != 1 || set.Dynamic() {
			break
		}
		for n, low, high := uint32(firstPiece), set[0].Start, set[0].Stop; high >= low; n = max(n, n*2) {
			from := high - min(n, high-low+1) + 1
			pieces, high = append(pieces, goimap.SeqSet{{Start: from, Stop: high}}), from-1 // numbers begin at 1
		}
	}
	if len(pieces) == 0 {
		pieces = []goimap.NumSet{set}
	}
	return pieces
}

// NewestFirst divides UIDs as FetchNewest does.
func NewestFirst(uids goimap.UIDSet) (pieces []goimap.UIDSet) {
	if len(uids) == 0 {
		return nil
	}
	for _, p := range newestFirst(uids) {
		pieces = append(pieces, p.(goimap.UIDSet))
	}
	return pieces
}

// UIDsTogether are the UIDs of two sets.
func UIDsTogether(a, b goimap.UIDSet) (out goimap.UIDSet) {
	for _, r := range slices.Concat(a, b) {
		out.AddRange(r.Start, r.Stop)
	}
	return out
}

// UIDsWithout is the part of a set that another does not hold.
func UIDsWithout(set, other goimap.UIDSet) (out goimap.UIDSet) {
	other = rising(other)
	for _, r := range rising(set) {
		for len(other) > 0 && other[0].Stop < r.Start {
			other = other[1:]
		}
		for _, o := range other {
			if o.Start > r.Stop || r.Start > r.Stop {
				break
			}
			if o.Start > r.Start {
				out.AddRange(r.Start, o.Start-1)
			}
			if o.Stop >= r.Stop {
				r.Start, r.Stop = 1, 0 // nothing is left of it
			} else {
				r.Start = max(r.Start, o.Stop+1)
			}
		}
		if r.Start <= r.Stop {
			out.AddRange(r.Start, r.Stop)
		}
	}
	return out
}

// rising is a set with its ranges in order.
func rising(set goimap.UIDSet) goimap.UIDSet {
	set = slices.Clone(set)
	slices.SortFunc(set, func(a, b goimap.UIDRange) int { return cmp.Compare(a.Start, b.Start) })
	return set
}

// Numbers returns the UIDs of a set; none if it is invalid or has more than maxCopied.
// UIDSet.Nums does not end for a set that holds the greatest number.
func Numbers(set goimap.UIDSet) []uint32 {
	var all []uint32
	for _, r := range set {
		if r.Start == 0 || r.Stop < r.Start || int64(r.Stop)-int64(r.Start)+int64(len(all)) >= maxCopied {
			return nil
		}
		for u := r.Start; ; u++ {
			all = append(all, uint32(u))
			if u == r.Stop {
				break
			}
		}
	}
	return all
}
