package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// maxNoted bounds the changes that an entry names.
const maxNoted = 100

type changesKey struct{}

// changesNoted are the ids of what a command changes in mailboxes, each once.
type changesNoted struct {
	mu  sync.Mutex
	ids []string
}

// NoteChange names a change of a mailbox, or what it is a piece of, in the audit entry of the
// command whose context it is: the first 100 of them. Without a command it does nothing. It is
// safe for concurrent use.
func NoteChange(ctx context.Context, id string) {
	c, ok := ctx.Value(changesKey{}).(*changesNoted)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) < maxNoted && !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}

// noted are the ids, separated by spaces.
func (c *changesNoted) noted() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.ids, " ")
}
