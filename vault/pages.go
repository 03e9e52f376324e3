package vault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"os"
)

// bbolt trusts the pages it maps. A branch that points back at itself sends it
// into a recursion that no recover can catch, and a page beyond the end of the
// file is a memory fault. So the page tree is read here, with plain reads, before
// bbolt sees a file for the first time.

const (
	pageHeader   = 16
	metaSize     = 64
	metaSum      = 56 // offset of the checksum
	bucketHeader = 16
	elementSize  = 16

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10

	minPage  = 1024
	maxPage  = 1 << 16
	maxDepth = 32 // levels of one bucket; each level multiplies the keys by two or more
)

var order = binary.NativeEndian // as bbolt writes

type meta struct {
	pageSize             uint32
	root, freelist, high uint64
	txid                 uint64
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
	}
	ok := order.Uint32(b) == boltMagic && order.Uint32(b[4:]) == boltVersion && order.Uint64(b[metaSum:]) == h.Sum64() &&
		m.pageSize >= minPage && m.pageSize <= maxPage && bits.OnesCount32(m.pageSize) == 1
	return m, ok
}

// readMeta returns the meta page that bbolt will go by, after checking that the
// file is long enough for what it promises.
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
		return meta{}, errors.New("it has no valid head")
	}
	if ok0 && ok1 && first.pageSize != second.pageSize {
		return meta{}, errors.New("its two heads disagree")
	}
	m := first
	if !ok0 || (ok1 && second.txid > first.txid) {
		m = second
	}
	pages := uint64(info.Size()) / uint64(m.pageSize)
	switch {
	case m.high > pages || pages < 4:
		return meta{}, errors.New("it is shorter than it was written")
	case m.root < 2 || m.root >= m.high:
		return meta{}, errors.New("its root lies outside")
	case m.freelist != noFreelist && (m.freelist < 2 || m.freelist >= m.high):
		return meta{}, errors.New("its free list lies outside")
	}
	return m, nil
}

// checkPages reads every page in use and reports the first thing that would lead
// bbolt astray. Nobody may write the file meanwhile.
func checkPages(f *os.File) error {
	m, err := readMeta(f)
	if err != nil {
		return err
	}
	c := &pageCheck{file: f, meta: m, used: make([]uint64, m.high/64+1)}
	for i := range uint64(2) {
		c.take(i, 1)
	}
	if m.freelist != noFreelist {
		if err := c.freelist(); err != nil {
			return err
		}
	}
	return c.tree(m.root, 0, true, new([]byte))
}

type pageCheck struct {
	file *os.File
	meta meta
	used []uint64 // one bit per page
}

// take marks n pages from id on and reports whether all were free.
func (c *pageCheck) take(id, n uint64) bool {
	for p := id; p < id+n; p++ {
		if c.used[p/64]&(1<<(p%64)) != 0 {
			return false
		}
		c.used[p/64] |= 1 << (p % 64)
	}
	return true
}

// page returns a page with its overflow.
func (c *pageCheck) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.meta.high {
		return nil, fmt.Errorf("page %d lies outside", id)
	}
	size := int64(c.meta.pageSize)
	b := make([]byte, size)
	if _, err := c.file.ReadAt(b, int64(id)*size); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if order.Uint64(b) != id {
		return nil, fmt.Errorf("page %d is not itself", id)
	}
	overflow := uint64(order.Uint32(b[12:]))
	if overflow >= c.meta.high-id {
		return nil, fmt.Errorf("page %d reaches outside", id)
	}
	if !c.take(id, overflow+1) {
		return nil, fmt.Errorf("page %d is used twice", id)
	}
	if overflow > 0 {
		rest := make([]byte, int64(overflow)*size)
		if _, err := c.file.ReadAt(rest, int64(id+1)*size); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("page %d: %w", id, err)
		}
		b = append(b, rest...)
	}
	return b, nil
}

func (c *pageCheck) freelist() error {
	b, err := c.page(c.meta.freelist)
	if err != nil {
		return err
	}
	if order.Uint16(b[8:]) != flagFreelist {
		return errors.New("the free list is none")
	}
	n, ids := uint64(order.Uint16(b[10:])), b[pageHeader:]
	if n == 0xffff {
		n, ids = order.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids))/8 {
		return errors.New("the free list is longer than its pages")
	}
	for i := range n {
		id := order.Uint64(ids[8*i:])
		if id < 2 || id >= c.meta.high || !c.take(id, 1) {
			return fmt.Errorf("the free list names page %d wrongly", id)
		}
	}
	return nil
}

// tree checks one bucket from a page down. last is the greatest key so far.
func (c *pageCheck) tree(id uint64, depth int, top bool, last *[]byte) error {
	if depth > maxDepth {
		return errors.New("the tree is too deep")
	}
	b, err := c.page(id)
	if err != nil {
		return err
	}
	switch order.Uint16(b[8:]) {
	case flagLeaf:
		return c.leaf(b, id, top, last)
	case flagBranch:
	default:
		return fmt.Errorf("page %d is of no kind", id)
	}
	n := int(order.Uint16(b[10:]))
	if n == 0 {
		return fmt.Errorf("page %d leads nowhere", id)
	}
	for i := range n {
		e := element(b, i)
		if e == nil {
			return fmt.Errorf("page %d is cut", id)
		}
		key := span(e, order.Uint32(e), order.Uint32(e[4:]))
		if len(key) == 0 || bytes.Compare(*last, key) > 0 {
			return fmt.Errorf("page %d is out of order", id)
		}
		if err := c.tree(order.Uint64(e[8:]), depth+1, top, last); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks the elements of a leaf page, which in the top bucket are buckets
// and anywhere else are values.
func (c *pageCheck) leaf(b []byte, id uint64, top bool, last *[]byte) error {
	for i := range int(order.Uint16(b[10:])) {
		e := element(b, i)
		if e == nil {
			return fmt.Errorf("page %d is cut", id)
		}
		pos, ksize, vsize := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key := span(e, pos, ksize)
		if len(key) == 0 || uint64(pos)+uint64(ksize)+uint64(vsize) > uint64(len(e)) {
			return fmt.Errorf("page %d is cut", id)
		}
		if *last != nil && bytes.Compare(*last, key) >= 0 {
			return fmt.Errorf("page %d is out of order", id)
		}
		*last = key
		if isBucket := order.Uint32(e) == 1; isBucket != top {
			return fmt.Errorf("page %d holds what it should not", id)
		}
		if top {
			if err := c.bucket(span(e, pos+ksize, vsize)); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks one bucket: its own tree, or the page inside its value.
func (c *pageCheck) bucket(v []byte) error {
	if len(v) < bucketHeader {
		return errors.New("a bucket is cut")
	}
	if root := order.Uint64(v); root != 0 {
		return c.tree(root, 0, false, new([]byte))
	}
	inline := v[bucketHeader:]
	if len(inline) < pageHeader || order.Uint64(inline) != 0 || order.Uint16(inline[8:]) != flagLeaf || order.Uint32(inline[12:]) != 0 {
		return errors.New("a bucket is cut")
	}
	return c.leaf(inline, 0, false, new([]byte))
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

func span(b []byte, pos, size uint32) []byte {
	end := uint64(pos) + uint64(size)
	if pos < elementSize || end > uint64(len(b)) {
		return nil
	}
	return b[pos:end]
}
