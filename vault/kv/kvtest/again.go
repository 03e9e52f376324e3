package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/postern-mail/postern/vault/kv"
)

// again has two engines read and write the same few places, and compares each answer with
// what was written there: an engine may remember what is read again and again.
func again(t *testing.T, open func() kv.Engine) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	engines := []kv.Engine{open(), open()}
	written := map[string][]byte{} // by key; there is one bucket besides, which is empty
	gone := errors.New("given up")
	key := func() string { return fmt.Sprintf("key %d", r.IntN(4)) }
	for n := range 400 {
		e, write, keep := engines[r.IntN(2)], r.IntN(2) == 0, r.IntN(4) > 0
		next := maps.Clone(written)
		var did []string
		step := func(tx kv.Tx) error {
			k := key()
			switch what := r.IntN(6); {
			case what < 2:
				did = append(did, "get "+k)
				got, err := tx.Get("b", []byte(k))
				if want, there := next[k]; err == nil && (!bytes.Equal(got, want) || there != (got != nil)) {
					return fmt.Errorf("%s has %d bytes, %v, and not %d, %v", k, len(got), got != nil, len(want), there)
				}
				clear(got) // it is the caller's
				return err
			case what < 4:
				bounds := []kv.Range{{}, {Reverse: true}, {From: []byte("key 2")}, {To: []byte("key 3"), Reverse: true}, {From: []byte("key 1"), To: []byte("key 4")}}[r.IntN(5)]
				limit := 1 + 4*r.IntN(2)
				did = append(did, fmt.Sprintf("scan %q-%q %v %d", bounds.From, bounds.To, bounds.Reverse, limit))
				var want []string
				for _, k := range slices.Sorted(maps.Keys(next)) {
					if k >= string(bounds.From) && (bounds.To == nil || k < string(bounds.To)) {
						want = append(want, k)
					}
				}
				if bounds.Reverse {
					slices.Reverse(want)
				}
				want = want[:min(limit, len(want))]
				list, err := tx.Scan("b", bounds, limit)
				var got []string
				for _, record := range list {
					got = append(got, string(record.Key))
					if !bytes.Equal(record.Value, next[string(record.Key)]) {
						return fmt.Errorf("%s in a range has %d bytes", record.Key, len(record.Value))
					}
					clear(record.Key)
					clear(record.Value)
				}
				if err == nil && !slices.Equal(got, want) {
					return fmt.Errorf("a range has %q and not %q", got, want)
				}
				return err
			case !write:
				list, err := tx.Scan("none", kv.Range{}, 1)
				if len(list) > 0 {
					return errors.New("there is a record in no bucket")
				}
				return err
			case what == 4:
				did = append(did, "delete "+k)
				delete(next, k)
				return tx.Delete("b", []byte(k))
			default:
				next[k] = slices.Repeat([]byte{byte(1 + n)}, []int{0, 1, 100, 20 << 10, 100 << 10}[r.IntN(5)])
				did = append(did, fmt.Sprintf("put %s %d", k, len(next[k])))
				return tx.Put("b", []byte(k), next[k])
			}
		}
		_, err := e.Transact(t.Context(), write, func(tx kv.Tx) error {
			for range 1 + r.IntN(12) {
				if err := step(tx); err != nil {
					return err
				}
			}
			if write && !keep {
				return gone
			}
			return nil
		})
		if err != nil && !errors.Is(err, gone) {
			t.Fatalf("seed %d, transaction %d that writes %v, after %q: %v", seed, n, write, did, err)
		}
		if write && keep {
			written = next
		}
		if n%100 == 99 { // an engine may have other places for all of them then
			if _, err := copied(t, e, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
