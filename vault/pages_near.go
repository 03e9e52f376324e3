package vault

import (
	"bytes"
	"sort"

	bolt "go.etcd.io/bbolt"
)

// What a transaction costs must not grow with what the file holds, and a check of the
// whole tree does. So a transaction has the pages checked that it comes to, right
// before bbolt does, and no others. What that keeps of a check of everything:
//
//   - bbolt follows no pointer that was not checked: a lookup or a change of a key goes
//     down one path, and a cursor or the merging of emptied pages goes from there to the
//     next page on each side, at every level.
//   - A page has one way that leads to it. A branch takes its children when it is
//     visited, a writer takes the free pages before, and whatever is taken twice is an
//     error. So there is no circle, and nothing that is needed is overwritten by this
//     transaction.
//   - Pages are checked by every transaction anew, so what is damaged while a process
//     runs is found as well.
//
// A fault is a panic, which guard makes ErrDamaged, as it does bbolt's own.

// checkedBucket is a bbolt bucket whose pages are checked before bbolt comes to them.
type checkedBucket struct {
	bolt  *bolt.Bucket
	pages *pageCheck // nil for a file that is being made
	root  uint64     // 0 where nothing of the bucket is in pages of its own
}

// checkedTx is a bbolt transaction that lends such buckets.
type checkedTx struct {
	bolt  *bolt.Tx
	pages *pageCheck // nil for a file that is being made
}

// bucket returns the named bucket, or nil where there is none.
func (t checkedTx) bucket(name string) *checkedBucket {
	return t.checked(name, t.bolt.Bucket([]byte(name)))
}

// makeBucket returns the named bucket, which it makes where there is none.
func (t checkedTx) makeBucket(name string) (*checkedBucket, error) {
	b, err := t.bolt.CreateBucketIfNotExists([]byte(name))
	return t.checked(name, b), err
}

func (t checkedTx) checked(name string, b *bolt.Bucket) *checkedBucket {
	if b == nil {
		return nil
	}
	c := &checkedBucket{bolt: b, pages: t.pages}
	if t.pages != nil {
		c.root = t.pages.roots[name]
	}
	return c
}

// Get returns the value as bbolt does: valid within the transaction, nil for none.
func (b *checkedBucket) Get(key []byte) []byte {
	b.step(key, false)
	return b.bolt.Get(key)
}

func (b *checkedBucket) Put(key, value []byte) error {
	b.step(key, false)
	return b.bolt.Put(key, value)
}

func (b *checkedBucket) Delete(key []byte) error {
	b.step(key, true)
	return b.bolt.Delete(key)
}

// ForEach calls fn with every record in the order of keys.
func (b *checkedBucket) ForEach(fn func(key, value []byte) error) error {
	c := b.Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (b *checkedBucket) Cursor() *checkedCursor {
	return &checkedCursor{bucket: b, bolt: b.bolt.Cursor()}
}

// checkedCursor is a bbolt cursor with the same care. It stands nowhere at first, where
// Next and Prev must not be called.
type checkedCursor struct {
	bucket *checkedBucket
	bolt   *bolt.Cursor
	at     []byte
}

func (c *checkedCursor) First() (key, value []byte) {
	c.bucket.step(nil, true)
	return c.stand(c.bolt.First())
}

func (c *checkedCursor) Last() (key, value []byte) {
	c.bucket.last()
	return c.stand(c.bolt.Last())
}

func (c *checkedCursor) Seek(key []byte) (found, value []byte) {
	c.bucket.step(key, true)
	return c.stand(c.bolt.Seek(key))
}

func (c *checkedCursor) Next() (key, value []byte) {
	c.bucket.step(c.at, true)
	return c.stand(c.bolt.Next())
}

func (c *checkedCursor) Prev() (key, value []byte) {
	c.bucket.step(c.at, true)
	return c.stand(c.bolt.Prev())
}

// stand keeps the key for the next step. At an end a cursor stays where it was.
func (c *checkedCursor) stand(key, value []byte) ([]byte, []byte) {
	if key != nil {
		c.at = key
	}
	return key, value
}

// step checks the way to a key, and with around also to its neighbours on both sides.
func (b *checkedBucket) step(key []byte, around bool) {
	if b.pages != nil {
		b.pages.steps++
	}
	if b.root == 0 {
		return
	}
	if err := b.pages.near(b.root, key, around); err != nil {
		panic(pageFault{err})
	}
}

// last checks the way to the last key and what lies beside it.
func (b *checkedBucket) last() {
	if b.root == 0 {
		return
	}
	p, err := b.pages.outermost(place{id: b.root}, true, 0)
	if err != nil {
		panic(pageFault{err})
	}
	b.step(p.low, true)
}

// pageFault is the panic of a page that bbolt must not see.
type pageFault struct{ error }

// near checks the pages on the way to a key. around adds, at every level, the pages
// on both sides and the way from them to the nearest leaf. A cursor does not stop at an
// empty leaf, as bbolt leaves none behind; where one is found all of the bucket is
// checked.
func (c *pageCheck) near(root uint64, key []byte, around bool) error {
	p := place{id: root}
	for depth := 0; ; depth++ {
		if depth > maxDepth {
			return errDeep
		}
		b, err := c.visit(p)
		if err != nil || b == nil {
			return err
		}
		i := childFor(b, key)
		for _, beside := range []int{i - 1, i + 1} {
			if !around || beside < 0 || beside >= children(b) {
				continue
			}
			q, err := c.outermost(p.child(b, beside), beside < i, depth+1)
			if err != nil {
				return err
			}
			if c.leaves[q.id] {
				return c.bucket(root)
			}
		}
		p = p.child(b, i)
	}
}

// childFor is the child of a branch that bbolt would go to for a key.
func childFor(branch, key []byte) int {
	n := children(branch)
	i := sort.Search(n, func(i int) bool {
		e := element(branch, i)
		return bytes.Compare(span(e, order.Uint32(e), order.Uint32(e[4:])), key) > 0
	})
	return max(i-1, 0)
}

// outermost checks the way from a place to the last leaf below it, or to the first,
// and returns that leaf.
func (c *pageCheck) outermost(p place, last bool, depth int) (place, error) {
	for ; ; depth++ {
		if depth > maxDepth {
			return p, errDeep
		}
		b, err := c.visit(p)
		if err != nil || b == nil {
			return p, err
		}
		i := 0
		if last {
			i = children(b) - 1
		}
		p = p.child(b, i)
	}
}

// firstPages checks the first page of every bucket: what a process looks at before it
// relies on a file.
func (c *pageCheck) firstPages() error {
	for _, root := range c.roots {
		if root == 0 {
			continue
		}
		if _, err := c.visit(place{id: root}); err != nil {
			return err
		}
	}
	return nil
}
