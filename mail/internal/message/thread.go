package message

import (
	"cmp"
	"slices"
	"time"
)

// ThreadNode holds the fields of a message that Thread reads.
type ThreadNode struct {
	ID         string    // of the message, without angle brackets; "" when absent
	References []string  // ids of References, then of In-Reply-To
	Subject    string    // decoded
	Date       time.Time // zero when unknown, which counts as the earliest
}

// Threading says which messages belong together. Both slices speak of nodes by
// their index.
type Threading struct {
	Groups [][]int // conversations by the date of their first message; in each, messages by date, ties by index
	Parent []int   // the nearest message above each in its conversation, -1 for a root
}

// Thread groups messages into conversations (004 section 5) in the manner of the
// REFERENCES algorithm of RFC 5256: by References, then In-Reply-To, then by base
// subject. Messages that name an id in common belong together although the message
// of that id is missing. A message that is not linked to an older one and has the
// subject of a reply joins the latest conversation before it whose first message
// has the same base subject and is not a reply; if all are later, the earliest of
// them; if there are only such replies, those. Two messages that are not replies
// are never joined by subject, and an empty subject joins nothing.
//
// Every node is in exactly one group. Of equal ids the earliest message counts,
// the others are in its conversation. Loops in references are cut. Time is linear
// except for sorting.
func Thread(nodes []ThreadNode) Threading {
	t := newThreader(nodes)
	t.link()
	t.resolve()
	t.joinBySubject()
	return Threading{Groups: t.groups(), Parent: t.parents[:len(nodes):len(nodes)]}
}

// threader works on nodes by index; indexes beyond the nodes are messages that
// are referred to but missing.
type threader struct {
	nodes    []ThreadNode
	order    []int          // the nodes by date, ties by index
	byID     map[string]int // the first node of an id, or the index of a missing message
	parents  []int          // direct, -1 for a root
	trees    forest         // nodes linked by parents
	together forest         // nodes of one conversation
}

func newThreader(nodes []ThreadNode) *threader {
	t := &threader{nodes: nodes, byID: map[string]int{}, order: make([]int, len(nodes))}
	for i := range nodes {
		t.order[i] = i
		t.add()
	}
	slices.SortFunc(t.order, func(a, b int) int {
		if c := nodes[a].Date.Compare(nodes[b].Date); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	for _, i := range t.order {
		id := nodes[i].ID
		if id == "" {
			continue
		}
		if first, taken := t.byID[id]; taken {
			t.together.union(i, first)
		} else {
			t.byID[id] = i
		}
	}
	return t
}

// add makes room for one more message.
func (t *threader) add() int {
	t.parents = append(t.parents, -1)
	t.trees = append(t.trees, len(t.trees))
	t.together = append(t.together, len(t.together))
	return len(t.parents) - 1
}

// references returns the distinct messages that a node refers to, oldest first.
func (t *threader) references(i int) []int {
	var refs []int
	seen := map[string]bool{t.nodes[i].ID: true, "": true}
	for _, id := range t.nodes[i].References {
		if seen[id] {
			continue
		}
		seen[id] = true
		ref, ok := t.byID[id]
		if !ok {
			ref = t.add()
			t.byID[id] = ref
		}
		refs = append(refs, ref)
	}
	return refs
}

// link sets the parents that references name. A message's own references
// count more than those of others, so they come first.
func (t *threader) link() {
	all := make([][]int, len(t.nodes))
	for _, i := range t.order {
		all[i] = t.references(i)
		if refs := all[i]; len(refs) > 0 {
			t.setParent(i, refs[len(refs)-1])
		}
	}
	for _, i := range t.order {
		refs := all[i]
		for n, ref := range refs {
			t.together.union(i, ref)
			if n > 0 && t.parents[ref] < 0 {
				t.setParent(ref, refs[n-1])
			}
		}
	}
}

// setParent links a message without a parent, unless that would make a loop.
func (t *threader) setParent(child, parent int) {
	// A message without a parent is the root of its tree, so that it is above
	// the other exactly when the two are in one tree.
	if t.trees.find(child) != t.trees.find(parent) {
		t.parents[child] = parent
		t.trees.union(child, parent)
	}
}

// resolve replaces missing parents by the nearest ancestor that is present.
func (t *threader) resolve() {
	var path []int
	for i := range t.nodes {
		above := t.parents[i]
		path = path[:0]
		for above >= len(t.nodes) {
			path = append(path, above)
			above = t.parents[above]
		}
		t.parents[i] = above
		for _, missing := range path {
			t.parents[missing] = above // found at once the next time
		}
	}
}

// joinBySubject joins conversations whose chain of ids is broken.
func (t *threader) joinBySubject() {
	type conversation struct {
		root  int // its first message of those without a parent
		reply bool
	}
	seen := map[int]bool{}
	var keys []string
	bySubject := map[string][]conversation{}
	tops := map[int][]int{} // messages without a parent, by conversation
	for _, i := range t.order {
		if t.parents[i] >= 0 {
			continue
		}
		set := t.together.find(i)
		tops[set] = append(tops[set], i)
		if seen[set] {
			continue
		}
		seen[set] = true
		base, reply := BaseSubject(t.nodes[i].Subject)
		if key := foldSubject(base); key != "" {
			if bySubject[key] == nil {
				keys = append(keys, key)
			}
			bySubject[key] = append(bySubject[key], conversation{i, reply})
		}
	}
	for _, key := range keys {
		same := bySubject[key]
		start := slices.IndexFunc(same, func(c conversation) bool { return !c.reply })
		if start < 0 {
			for _, c := range same[1:] {
				t.together.union(c.root, same[0].root)
			}
			continue
		}
		at := same[start].root
		for _, c := range same {
			if !c.reply {
				at = c.root
				continue
			}
			for _, top := range tops[t.together.find(c.root)] {
				t.parents[top] = at
			}
			t.together.union(c.root, at)
		}
	}
}

// groups lists the conversations.
func (t *threader) groups() [][]int {
	var groups [][]int
	index := map[int]int{}
	for _, i := range t.order {
		set := t.together.find(i)
		n, ok := index[set]
		if !ok {
			n = len(groups)
			index[set] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// forest is a set of disjoint sets: each element points to another of its set,
// the last to itself.
type forest []int

func (f forest) find(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

// union puts the set of a into that of b.
func (f forest) union(a, b int) { f[f.find(a)] = f.find(b) }
