package message

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func day(n int) time.Time { return time.Date(2026, 5, n, 10, 0, 0, 0, time.UTC) }

// node makes a node of "id: references": subject.
func node(d int, id, references, subject string) ThreadNode {
	return ThreadNode{ID: id, References: strings.Fields(references), Subject: subject, Date: day(d)}
}

func TestThreads(t *testing.T) {
	for _, tc := range []struct {
		name    string
		nodes   []ThreadNode
		groups  string
		parents string
	}{
		{"none", nil, "[]", "[]"},
		{"one", []ThreadNode{node(1, "a", "", "x")}, "[[0]]", "[-1]"},
		{"chain", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "a", "Re: x"), node(3, "c", "a b", "Re: x")}, "[[0 1 2]]", "[-1 0 1]"},
		{"chain in another order", []ThreadNode{node(3, "c", "a b", "Re: x"), node(2, "b", "a", "Re: x"), node(1, "a", "", "x")}, "[[2 1 0]]", "[1 2 -1]"},
		{"branches", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "a", "Re: x"), node(3, "c", "a", "Re: x")}, "[[0 1 2]]", "[-1 0 0]"},
		{"the subject changes", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "a", "y")}, "[[0 1]]", "[-1 0]"},
		{"a message in between is missing", []ThreadNode{node(1, "a", "", "x"), node(3, "c", "a b", "Re: x")}, "[[0 1]]", "[-1 0]"},
		{"the first is missing", []ThreadNode{node(2, "b", "a", "Re: x"), node(3, "c", "a", "y")}, "[[0 1]]", "[-1 -1]"},
		{"many in between are missing", []ThreadNode{node(1, "a", "", "x"), node(9, "z", "a b c d e", ""), node(8, "y", "a b c d e", "")}, "[[0 2 1]]", "[-1 0 0]"},
		{"In-Reply-To repeats one of References", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "a", "Re: x"), node(3, "c", "a b a", "Re: x")}, "[[0 1 2]]", "[-1 0 1]"},
		{"what others say of a parent counts less", []ThreadNode{node(1, "a", "", "x"), node(1, "b", "", "y"), node(2, "c", "a", "z"), node(3, "d", "b c", "w")}, "[[0 1 2 3]]", "[-1 -1 0 2]"},

		{"a broken chain", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "gone", "Re: X")}, "[[0 1]]", "[-1 0]"},
		{"a broken chain without ids", []ThreadNode{node(1, "", "", "x"), node(2, "", "", "AW: x")}, "[[0 1]]", "[-1 0]"},
		{"a forwarded message", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "", "Fwd: x")}, "[[0 1]]", "[-1 0]"},
		{"two that are no replies", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "", "x")}, "[[0] [1]]", "[-1 -1]"},
		{"two that are no replies with an id in common", []ThreadNode{node(1, "a", "r", "x"), node(2, "b", "r", "x")}, "[[0 1]]", "[-1 -1]"},
		{"two replies", []ThreadNode{node(1, "a", "p", "Re: x"), node(2, "b", "q", "Re: x")}, "[[0 1]]", "[-1 -1]"},
		{"replies to the latest before them", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "", "Re: x"), node(5, "c", "", "x"), node(6, "d", "", "Re: x")}, "[[0 1] [2 3]]", "[-1 0 -1 2]"},
		{"a reply before all others", []ThreadNode{node(5, "a", "", "x"), node(1, "b", "", "Re: x")}, "[[1 0]]", "[-1 0]"},
		{"a reply without a date", []ThreadNode{node(5, "a", "", "x"), {ID: "b", Subject: "Re: x"}}, "[[1 0]]", "[-1 0]"},
		{"conversations join whole", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "a", "Re: x"), node(3, "c", "p", "Re: x"), node(4, "d", "p", "Re: x"), node(5, "e", "d", "Re: x")}, "[[0 1 2 3 4]]", "[-1 0 0 0 3]"},
		{"no subject", []ThreadNode{node(1, "a", "", ""), node(2, "b", "", "Re:"), node(3, "c", "", "Re: ")}, "[[0] [1] [2]]", "[-1 -1 -1]"},
		{"a subject within a conversation joins nothing", []ThreadNode{node(1, "a", "", "x"), node(2, "b", "a", "y"), node(3, "c", "", "Re: y")}, "[[0 1] [2]]", "[-1 0 -1]"},

		{"itself", []ThreadNode{node(1, "a", "a", "x")}, "[[0]]", "[-1]"},
		{"each other", []ThreadNode{node(1, "a", "b", "x"), node(2, "b", "a", "y")}, "[[0 1]]", "[1 -1]"},
		{"a loop of three", []ThreadNode{node(1, "a", "c", "x"), node(2, "b", "a", "y"), node(3, "c", "b", "z")}, "[[0 1 2]]", "[2 0 -1]"},
		{"a loop within one", []ThreadNode{node(1, "a", "b c b", "x"), node(2, "b", "c a", "y")}, "[[0 1]]", "[-1 0]"},
		{"an id twice", []ThreadNode{node(1, "a", "", "x"), node(2, "a", "", "y"), node(3, "b", "a", "z")}, "[[0 1 2]]", "[-1 -1 0]"},
		{"an id twice, with references", []ThreadNode{node(1, "r", "", "x"), node(2, "a", "r", "y"), node(3, "a", "r", "y")}, "[[0 1 2]]", "[-1 0 0]"},
		{"no ids", []ThreadNode{node(1, "", "", "x"), node(2, "", "", "y")}, "[[0] [1]]", "[-1 -1]"},
		{"empty references", []ThreadNode{{ID: "a", References: []string{""}, Subject: "x"}, {ID: "b", References: []string{"", ""}, Subject: "y"}}, "[[0] [1]]", "[-1 -1]"},
		{"equal dates", []ThreadNode{node(1, "b", "a", "Re: x"), node(1, "a", "", "x")}, "[[0 1]]", "[1 -1]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Thread(tc.nodes)
			if groups, parents := fmt.Sprint(got.Groups), fmt.Sprint(got.Parent); groups != tc.groups || parents != tc.parents {
				t.Errorf("groups %s, parents %s, want %s, %s", groups, parents, tc.groups, tc.parents)
			}
			checkThreading(t, tc.nodes, got)
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
			nodes[i] = node(i+1, fmt.Sprint("m", r.IntN(14)), "", []string{"x", "Re: x", "y", "AW: y", ""}[r.IntN(5)])
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
		for i := range many(20_000) {
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
		var nodes []ThreadNode
		for line := range strings.Lines(s) {
			w := strings.SplitN(strings.TrimSpace(line), " ", 4)
			if len(w) == 4 && len(w[0]) > 0 {
				nodes = append(nodes, ThreadNode{ID: w[1], References: strings.Split(w[2], ","), Subject: w[3], Date: day(int(w[0][0]))})
			}
		}
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
