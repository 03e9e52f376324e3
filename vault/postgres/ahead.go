package postgres

import (
	"encoding/base64"
	"fmt"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postern-mail/postern/vault/kv"
)

// The transactions of a process mostly read the same records. So each asks, in the message with
// which it begins, for what at least two of the last sixteen of its kind have read: after the
// lock, so that nothing is older than that.
const (
	keepHabits = 64       // conditions that are remembered of a kind of transaction
	maxAhead   = 32       // those of them that are asked for
	aheadSize  = 16 << 10 // their bytes when they were last read: more cost each write more than a round trip saves one
)

// habit is a condition, in words of SQL, on the records that transactions read. The lowest bit
// says whether the last one did, the next one whether the one before it did.
type habit struct {
	words string
	size  int
	by    uint16
}

// ahead returns the conditions of what a transaction probably reads.
func (e *Engine) ahead(write bool) (list []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := 0
	for _, h := range e.habits[write] {
		if bits.OnesCount16(h.by) > 1 && len(list) < maxAhead && size+h.size <= aheadSize {
			list, size = append(list, h.words), size+h.size
		}
	}
	return list
}

// learn remembers what a transaction read, with its bytes.
func (e *Engine) learn(write bool, read map[string]int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.habits[write]
	for i := range list {
		h := &list[i]
		h.by <<= 1
		if size, ok := read[h.words]; ok {
			h.size, h.by = size, h.by|1
			delete(read, h.words)
		}
	}
	list = slices.DeleteFunc(list, func(h habit) bool { return h.by == 0 })
	for words, size := range read {
		if len(list) < keepHabits {
			list = append(list, habit{words, size, 1})
		}
	}
	e.habits[write] = list
}

// answered takes the answers to what was asked ahead.
func (t *tx) answered(asked []string, results []*pgconn.Result) error {
	t.answers = map[string][]kv.Record{}
	for i, words := range asked {
		for _, row := range results[i].Rows {
			for column, text := range row {
				b, err := base64.StdEncoding.AppendDecode([]byte{}, text)
				if err != nil {
					return fmt.Errorf("%w: a record is not in base64", kv.ErrDamaged)
				}
				row[column] = b
			}
		}
		t.answers[words] = records(results[i].Rows)
	}
	return nil
}

// read returns the records of a condition as they were before this transaction wrote any. They
// may be kept for who asks again.
func (t *tx) read(words string, keep bool) (list []kv.Record, err error) {
	list, ok := t.answers[words]
	if !ok {
		if list, err = t.fetch(words); err != nil {
			return nil, err
		}
	}
	size := 0
	for _, r := range list {
		size += len(r.Key) + len(r.Value)
	}
	if keep && size < largeValue {
		t.answers[words] = list
	}
	if len(t.reads) < maxAhead {
		t.reads[words] = size
	}
	return list, nil
}

func (t *tx) fetch(words string) ([]kv.Record, error) {
	a := &arguments{}
	rows, err := t.ask("SELECT key, value FROM postern_records WHERE epoch = "+a.int(t.state.epoch)+" AND "+words, a)
	return records(rows), err
}

func records(rows [][][]byte) (list []kv.Record) {
	for _, row := range rows {
		list = append(list, kv.Record{Key: row[0], Value: row[1]})
	}
	return list
}
