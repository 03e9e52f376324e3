package discovery

import (
	"slices"
	"strings"
)

// Nearest returns at most n of the names that a person may have meant by word,
// the likeliest first: names that word begins, then names within an edit
// distance of a third of their length, at least 1 and at most 3. Case does not count,
// and - and _ are one. Words of over 64 bytes have no neighbours, which bounds the work.
func Nearest(word string, names []string, n int) []string {
	if word == "" || len(word) > 64 {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	word = fold(word)
	for _, name := range names {
		folded := fold(name)
		if len(name) > 256 {
			continue
		}
		d := editDistance([]rune(word), []rune(folded))
		if len(word) >= 2 && strings.HasPrefix(folded, word) {
			d = 0
		}
		if d <= min(3, max(1, len(name)/3)) && d < len(name) {
			found = append(found, candidate{name, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var out []string
	for _, c := range found[:min(n, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// editDistance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours. It is
// ours because it is a dozen lines and no dependency carries less.
func editDistance(a, b []rune) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
