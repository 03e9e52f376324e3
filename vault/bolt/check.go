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
	"slices"

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

// readMeta returns the meta page that bbolt will use, after checking that the file
// is as long as the page says. With an error the meta has at most info.
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

// Check implements kv.Engine. It first reads every page with plain reads, since bbolt
// hangs at a branch that leads to itself and at a page outside the file; then bbolt's
// own check verifies the order of the keys and the free pages.
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
	return run(e.path, false, false, os.OpenFile, func(t kv.Tx) (err error) {
		for fault := range t.(*tx).bolt.Check() {
			if err == nil {
				err = fmt.Errorf("%w: %s: %w", kv.ErrDamaged, e.path, fault)
			}
		}
		return err
	}, nil)
}

// checkPages reads every page that is referred to, each once.
func checkPages(f *os.File, m meta) error {
	w := &pageWalk{file: f, meta: m, used: make([]bool, m.high)}
	if m.freelist != noFreelist {
		b, err := w.page(m.freelist)
		if err != nil {
			return err
		}
		n := uint64(order.Uint16(b[10:]))
		if n == 0xffff {
			n = order.Uint64(b[pageHeader:]) + 1 // the count itself takes an entry
		}
		if n > uint64(len(b)-pageHeader)/8 {
			return errors.New("the list of free pages is longer than its pages")
		}
	}
	// The tree of bucket names leads to each bucket with pages of its own.
	type tree struct {
		page  uint64
		names bool
	}
	for waiting := []tree{{m.root, true}}; len(waiting) > 0; {
		t := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		b, err := w.page(t.page)
		if err != nil {
			return err
		}
		list, err := elements(b)
		for _, e := range list {
			switch {
			case e.child != 0:
				waiting = append(waiting, tree{e.child, t.names})
			case e.bucket != t.names:
				err = errors.New("a bucket lies within a bucket, or something else where buckets lie")
			case e.bucket && (len(e.value) < bucketHeader || order.Uint64(e.value) == 0 && len(e.value) < bucketHeader+pageHeader):
				err = errors.New("a bucket is cut")
			case !t.names:
			case order.Uint64(e.value) != 0:
				waiting = append(waiting, tree{order.Uint64(e.value), false})
			default:
				var within []element
				within, err = elements(e.value[bucketHeader:])
				if slices.ContainsFunc(within, func(e element) bool { return e.bucket || e.child != 0 }) {
					err = errors.New("a bucket lies within a bucket")
				}
			}
			if err != nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("page %d: %w", t.page, err)
		}
	}
	return nil
}

type pageWalk struct {
	file *os.File
	meta meta
	used []bool
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

// element is a branch's entry for a page below it, or a leaf's record.
type element struct {
	child  uint64 // 0 in a leaf
	bucket bool
	value  []byte
}

// elements returns the elements of a branch or leaf.
func elements(page []byte) (list []element, err error) {
	kind, n := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	if kind != flagLeaf && (kind != flagBranch || n == 0) {
		return nil, errors.New("it is of no kind or leads nowhere")
	}
	for i := range n {
		at := pageHeader + i*elementSize
		if at+elementSize > len(page) {
			return nil, errors.New("it is cut")
		}
		b := page[at:] // offsets count from here
		e := element{bucket: order.Uint32(b) == 1}
		pos, key, value := order.Uint32(b[4:]), order.Uint32(b[8:]), order.Uint32(b[12:])
		if kind == flagBranch {
			e = element{child: order.Uint64(b[8:])}
			pos, key, value = order.Uint32(b), order.Uint32(b[4:]), 0
		}
		start, end := uint64(pos)+uint64(key), uint64(pos)+uint64(key)+uint64(value)
		if pos < elementSize || end > uint64(len(b)) || kind == flagLeaf && key == 0 || kind == flagBranch && e.child == 0 {
			return nil, errors.New("it is cut")
		}
		e.value = b[start:end]
		list = append(list, e)
	}
	return list, nil
}
