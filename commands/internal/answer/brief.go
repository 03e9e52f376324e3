package answer

import "github.com/postern-mail/postern/discovery"

// Rest ends a compact answer: what went wrong in part, where else to look, and the command
// that goes on. All of it is left out where there is nothing to say.
type Rest struct {
	Issues []string `json:"issues,omitempty" acli:"untrusted"` // they name folders
	Hint   string   `json:"hint,omitempty"`
	More   string   `json:"more,omitempty"`
}

// List is the compact form of a list.
type List[R any] struct {
	discovery.Table[R]
	Rest
}

// ListOf makes a row of each entry of a list, with what ends the answer.
func ListOf[E, R any](entries []E, rest Rest, row func(*E) R) List[R] {
	return List[R]{discovery.TableOf(Each(entries, row)), rest}
}

// Each makes something of each element of a list. It is never nil: an answer has no null in
// place of a list.
func Each[E, T any](list []E, of func(*E) T) []T {
	made := make([]T, len(list))
	for i := range list {
		made[i] = of(&list[i])
	}
	return made
}

// Shorten keeps about a fraction of a list, from its beginning, and notes that it did;
// false where that would leave none.
func Shorten[T any](list *[]T, truncated *bool, fraction float64) bool {
	keep := int(float64(len(*list)) * min(fraction, 0.95))
	if keep < 1 {
		return false
	}
	*list, *truncated = (*list)[:keep], true
	return true
}
