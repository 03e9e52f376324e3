package message

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
)

func day(n int) time.Time { return time.Date(2026, 5, n, 10, 0, 0, 0, time.UTC) }

// nodesOf makes a node of each line: its day, its id, references with commas between, subject. A
// day ? is no date, - is no id and no reference.
func nodesOf(s string) (nodes []ThreadNode) {
	for line := range strings.Lines(s) {
		w := strings.SplitN(strings.TrimRight(line, "\r\n"), " ", 4)
		if len(w) < 4 || w[0] == "" {
			continue
		}
		n := ThreadNode{ID: strings.TrimPrefix(w[1], "-"), Subject: w[3]}
		if w[0] != "?" {
			n.Date = day(int(w[0][0]) - '0')
		}
		if w[2] != "-" {
			n.References = strings.Split(w[2], ",")
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestThreads(t *testing.T) {
	for _, tc := range testmain.Table[struct{ Name, Nodes, Groups, Parents string }](t, "testdata/cases/thread.txt") {
		t.Run(tc.Name, func(t *testing.T) {
			nodes := nodesOf(tc.Nodes)
			got := Thread(nodes)
			if groups, parents := fmt.Sprint(got.Groups), fmt.Sprint(got.Parent); groups != tc.Groups || parents != tc.Parents {
				t.Errorf("groups %s, parents %s, want %s, %s", groups, parents, tc.Groups, tc.Parents)
			}
			checkThreading(t, nodes, got)
		})
	}
}

// checkThreading checks that every node is in one group, in order, and that its parents
// lead to a root in the same group.
func checkThreading(t *testing.T, nodes []ThreadNode, got Threading) {
	t.Helper()
	group := map[int]int{}
	for n, g := range got.Groups {
		if len(g) == 0 {
			t.Errorf("group %d is empty", n)
		}
		for k, i := range g {
			if _, twice := group[i]; twice {
				t.Errorf("node %d is in two groups", i)
			}
			group[i] = n
			if k > 0 {
				if c := nodes[g[k-1]].Date.Compare(nodes[i].Date); c > 0 || c == 0 && g[k-1] > i {
					t.Errorf("nodes %d and %d are not in order", g[k-1], i)
				}
			}
		}
	}
	if len(group) != len(nodes) || len(got.Parent) != len(nodes) {
		t.Fatalf("%d nodes, %d in groups, %d parents", len(nodes), len(group), len(got.Parent))
	}
	depth := make([]int, len(nodes)) // positive for nodes that are known to lead to a root
	for i := range nodes {
		var path []int
		for at := i; at >= 0 && depth[at] == 0; at = got.Parent[at] {
			if len(path) > len(nodes) {
				t.Fatalf("the parents of %d are a loop", i)
			}
			if p := got.Parent[at]; p < -1 || p >= len(nodes) || p >= 0 && group[p] != group[at] {
				t.Fatalf("the parent of %d is %d", at, p)
			}
			path = append(path, at)
		}
		for _, at := range path {
			depth[at] = 1
		}
	}
}

// The result does not depend on the order of the messages, as long as their dates differ.
func TestThreadsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		nodes := make([]ThreadNode, 12)
		for i := range nodes {
			nodes[i] = ThreadNode{ID: fmt.Sprint("m", r.IntN(14)), Subject: []string{"x", "Re: x", "y", "AW: y", ""}[r.IntN(5)], Date: day(i + 1)}
			for range r.IntN(4) {
				nodes[i].References = append(nodes[i].References, fmt.Sprint("m", r.IntN(16)))
			}
		}
		want := byDate(nodes, Thread(nodes))
		shuffled := slices.Clone(nodes)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := byDate(shuffled, Thread(shuffled)); got != want {
			t.Fatalf("%v\n%s in one order, %s in another", nodes, want, got)
		}
	}
}

// byDate formats a threading, with dates in place of indices.
func byDate(nodes []ThreadNode, t Threading) string {
	parent := map[int]int{}
	for i, p := range t.Parent {
		if p >= 0 {
			parent[nodes[i].Date.Day()] = nodes[p].Date.Day()
		}
	}
	var groups [][]int
	for _, g := range t.Groups {
		var days []int
		for _, i := range g {
			days = append(days, nodes[i].Date.Day())
		}
		groups = append(groups, days)
	}
	return fmt.Sprint(groups, parent)
}

var manyThreads = map[string]func(i int) ThreadNode{
	"chain": func(i int) ThreadNode {
		return ThreadNode{ID: fmt.Sprint(i), References: []string{fmt.Sprint(i - 1)}, Subject: "Re: x", Date: day(1).Add(time.Duration(i) * time.Minute)}
	},
	"chain, newest first": func(i int) ThreadNode {
		return ThreadNode{ID: fmt.Sprint(i), References: []string{fmt.Sprint(i + 1)}, Subject: "Re: x", Date: day(1).Add(time.Duration(i) * time.Minute)}
	},
	"star":         func(i int) ThreadNode { return ThreadNode{ID: fmt.Sprint(i), References: []string{"0"}} },
	"same id":      func(int) ThreadNode { return ThreadNode{ID: "a", References: []string{"b"}, Subject: "x"} },
	"same subject": func(i int) ThreadNode { return ThreadNode{ID: fmt.Sprint(i), Subject: "Re: x"} },
	"missing chains": func(i int) ThreadNode {
		n := ThreadNode{ID: fmt.Sprint(i)}
		for k := range 20 {
			n.References = append(n.References, fmt.Sprint("gone", i+k))
		}
		return n
	},
}

func TestThreadsOfMany(t *testing.T) {
	for name, make := range manyThreads {
		var nodes []ThreadNode
		for i := range 2000 {
			nodes = append(nodes, make(i))
		}
		got := Thread(nodes)
		checkThreading(t, nodes, got)
		if len(got.Groups) != 1 {
			t.Errorf("%s: %d groups", name, len(got.Groups))
		}
	}
}

func FuzzThreads(f *testing.F) {
	f.Add("1 a - x\n2 b a Re: x\n3 c a,b Re: x")
	f.Add("1 a b x\n1 b a x\n1 a a Re: x")
	f.Fuzz(func(t *testing.T, s string) {
		nodes := nodesOf(s)
		got := Thread(nodes)
		checkThreading(t, nodes, got)
		group := map[int]int{}
		for n, g := range got.Groups {
			for _, i := range g {
				group[i] = n
			}
		}
		// A message is in the same conversation as the messages that it references.
		for i, a := range nodes {
			for j, b := range nodes {
				if b.ID != "" && slices.Contains(a.References, b.ID) && group[i] != group[j] {
					t.Errorf("nodes %d and %d are apart", i, j)
				}
			}
		}
	})
}
