package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"os"

	"github.com/postern-mail/postern/vault/kv"
)

// The layout of a bbolt file, as far as it is read here.
const (
	pageHeader   = 16
	metaSize     = 64
	metaSum      = 56 // offset of the checksum
	bucketHeader = 16
	elementSize  = 16

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)

	flagBranch = 0x01
	flagLeaf   = 0x02

	minPage = 1024
	maxPage = 1 << 16
)

var order = binary.NativeEndian // as bbolt writes

type meta struct {
	pageSize             uint32
	root, freelist, high uint64
	txid, sum            uint64
	info                 os.FileInfo // of the file
}

func parseMeta(b []byte) (meta, bool) {
	if len(b) < pageHeader+metaSize {
		return meta{}, false
	}
	b = b[pageHeader:][:metaSize]
	h := fnv.New64a()
	_, _ = h.Write(b[:metaSum])
	m := meta{
		pageSize: order.Uint32(b[8:]),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		high:     order.Uint64(b[40:]),
		txid:     order.Uint64(b[48:]),
		sum:      order.Uint64(b[metaSum:]),
	}
	ok := order.Uint32(b) == boltMagic && order.Uint32(b[4:]) == boltVersion && m.sum == h.Sum64() &&
		m.pageSize >= minPage && m.pageSize <= maxPage && bits.OnesCount32(m.pageSize) == 1
	return m, ok
}

// readMeta returns the meta page that bbolt will go by, after checking that the
// file is long enough for what it promises. With an error the meta has at most info.
func readMeta(f *os.File) (meta, error) {
	info, err := f.Stat()
	if err != nil {
		return meta{}, err
	}
	at := func(off int64) (meta, bool) {
		b := make([]byte, pageHeader+metaSize)
		if _, err := f.ReadAt(b, off); err != nil {
			return meta{}, false
		}
		return parseMeta(b)
	}
	first, ok0 := at(0)
	var second meta
	var ok1 bool
	if ok0 {
		second, ok1 = at(int64(first.pageSize))
	} else {
		for size := int64(minPage); size <= maxPage && !ok1; size *= 2 {
			second, ok1 = at(size)
			ok1 = ok1 && int64(second.pageSize) == size
		}
	}
	if !ok0 && !ok1 {
		return meta{info: info}, errors.New("it has no valid head")
	}
	if ok0 && ok1 && first.pageSize != second.pageSize {
		return meta{info: info}, errors.New("its two heads disagree")
	}
	m := first
	if !ok0 || (ok1 && second.txid > first.txid) {
		m = second
	}
	m.info = info
	pages := uint64(info.Size()) / uint64(m.pageSize)
	switch {
	case m.high > pages || pages < 4:
		err = errors.New("it is shorter than it was written")
	case m.root < 2 || m.root >= m.high:
		err = errors.New("its root lies outside")
	case m.freelist != noFreelist && (m.freelist < 2 || m.freelist >= m.high):
		err = errors.New("its free list lies outside")
	}
	return m, err
}

// Check implements kv.Engine. It reads every page with plain reads first, since bbolt
// does not come back from a branch that leads to itself, nor from a page outside the
// file; then bbolt's own check looks at the order of the keys and the free pages.
func (e *Engine) Check(ctx context.Context) error {
	unlock, err := e.lock(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	h, m, err := openChecked(e.path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	if err := checkPages(h, m); err != nil {
		return fmt.Errorf("%w: %s: %w", kv.ErrDamaged, e.path, err)
	}
	return run(e.path, false, os.OpenFile, func(t kv.Tx) (err error) {
		for fault := range t.(*tx).bolt.Check() {
			if err == nil {
				err = fmt.Errorf("%w: %s: %w", kv.ErrDamaged, e.path, fault)
			}
		}
		return err
	}, nil)
}

// pageWalk reads the pages that something leads to, each once.
type pageWalk struct {
	file *os.File
	meta meta
	used []bool
}

func checkPages(f *os.File, m meta) error {
	w := &pageWalk{file: f, meta: m, used: make([]bool, m.high)}
	w.used[0], w.used[1] = true, true
	if m.freelist != noFreelist {
		b, err := w.page(m.freelist)
		if err != nil {
			return err
		}
		if n := freePages(b); n > uint64(len(b)-pageHeader)/8 {
			return errors.New("the list of free pages is longer than its pages")
		}
	}
	// The tree of the buckets' names, and then each bucket that has pages of its own.
	roots := []uint64{}
	err := w.tree(m.root, func(value []byte, isBucket bool) error {
		if !isBucket || len(value) < bucketHeader {
			return errors.New("a bucket is cut")
		}
		root := order.Uint64(value)
		if root != 0 {
			roots = append(roots, root)
			return nil
		}
		inline := value[bucketHeader:]
		if len(inline) < pageHeader || order.Uint16(inline[8:]) != flagLeaf {
			return errors.New("a bucket is cut")
		}
		return leaf(inline, isValue)
	})
	for _, root := range roots {
		if err == nil {
			err = w.tree(root, isValue)
		}
	}
	return err
}

// freePages is how many pages the list of free pages says it has.
func freePages(list []byte) uint64 {
	if n := order.Uint16(list[10:]); n != 0xffff {
		return uint64(n)
	}
	return order.Uint64(list[pageHeader:]) + 1 // the count takes a place itself
}

func isValue(_ []byte, isBucket bool) error {
	if isBucket {
		return errors.New("a bucket lies within a bucket")
	}
	return nil
}

// tree reads the pages below one, and calls fn with the value of each element of its
// leaves.
func (w *pageWalk) tree(root uint64, fn func(value []byte, isBucket bool) error) error {
	for waiting := []uint64{root}; len(waiting) > 0; {
		id := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		b, err := w.page(id)
		if err != nil {
			return err
		}
		switch order.Uint16(b[8:]) {
		case flagLeaf:
			err = leaf(b, fn)
		case flagBranch:
			n := int(order.Uint16(b[10:]))
			if n == 0 {
				return fmt.Errorf("page %d leads nowhere", id)
			}
			for i := range n {
				e := element(b, i)
				if e == nil || span(e, order.Uint32(e), order.Uint32(e[4:])) == nil {
					return fmt.Errorf("page %d is cut", id)
				}
				waiting = append(waiting, order.Uint64(e[8:]))
			}
		default:
			err = errors.New("it is of no kind")
		}
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
	}
	return nil
}

// page returns a page with its overflow, once.
func (w *pageWalk) page(id uint64) ([]byte, error) {
	size := int64(w.meta.pageSize)
	if id < 2 || id >= w.meta.high {
		return nil, fmt.Errorf("page %d lies outside", id)
	}
	head := make([]byte, pageHeader)
	if _, err := w.file.ReadAt(head, int64(id)*size); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	pages := uint64(order.Uint32(head[12:])) + 1
	if order.Uint64(head) != id || pages > w.meta.high-id {
		return nil, fmt.Errorf("page %d is not itself", id)
	}
	for p := id; p < id+pages; p++ {
		if w.used[p] {
			return nil, fmt.Errorf("page %d is used twice", p)
		}
		w.used[p] = true
	}
	b := make([]byte, int64(pages)*size)
	if _, err := w.file.ReadAt(b, int64(id)*size); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return b, nil
}

func leaf(b []byte, fn func(value []byte, isBucket bool) error) error {
	for i := range int(order.Uint16(b[10:])) {
		e := element(b, i)
		if e == nil {
			return errors.New("it is cut")
		}
		pos, keySize, valueSize := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		if len(span(e, pos, keySize)) == 0 || uint64(pos)+uint64(keySize)+uint64(valueSize) > uint64(len(e)) {
			return errors.New("it is cut")
		}
		if err := fn(e[pos+keySize:][:valueSize], order.Uint32(e) == 1); err != nil {
			return err
		}
	}
	return nil
}

// element returns the rest of the page from element i on, to which its offsets
// are relative, or nil when it lies outside.
func element(page []byte, i int) []byte {
	off := pageHeader + i*elementSize
	if off+elementSize > len(page) {
		return nil
	}
	return page[off:]
}

// span returns size bytes at pos of an element; nil where they lie outside.
func span(b []byte, pos, size uint32) []byte {
	end := uint64(pos) + uint64(size)
	if pos < elementSize || end > uint64(len(b)) {
		return nil
	}
	return b[pos:end]
}
