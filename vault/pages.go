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
// into a recursion that no recover can catch, a page beyond the end of the file is
// a memory fault, and a page that is used twice is overwritten while it is needed.
// So pages are read here first, with plain reads: by every transaction those that
// bbolt is about to step on, see pages_near.go, and by Check all there are.

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

// pageCheck is what was found out about a file's pages, under one lock.
type pageCheck struct {
	file *os.File
	meta meta
	used []uint64 // one bit per page that something leads to

	// Pages that were checked, so that each is read once.
	branches map[uint64][]byte
	leaves   map[uint64]bool // whether the leaf is empty

	steps int // see cost

	roots map[string]uint64 // of the buckets, by name; 0 where the page is inside the bucket's value
}

// newPageCheck checks what every transaction steps on: the head, the tree of the
// buckets' names, and for one that writes the list of free pages. That is a handful
// of pages however much the buckets hold, and as many as bbolt reads itself.
func newPageCheck(f *os.File, write bool) (*pageCheck, error) {
	m, err := readMeta(f)
	if err != nil {
		return nil, err
	}
	c := &pageCheck{file: f, meta: m, used: make([]uint64, m.high/64+1), branches: map[uint64][]byte{}, leaves: map[uint64]bool{}, roots: map[string]uint64{}}
	c.take(0, 2)
	if write && m.freelist != noFreelist {
		if err := c.freelist(); err != nil {
			return nil, err
		}
	}
	if !c.take(m.root, 1) {
		return nil, errors.New("its root is used twice")
	}
	if err := c.tree(place{id: m.root, top: true}, 0); err != nil {
		return nil, err
	}
	return c, nil
}

// checkPages reads every page in use and reports the first thing that would lead
// bbolt astray. Nobody may write the file meanwhile.
func checkPages(f *os.File) error {
	c, err := newPageCheck(f, true)
	if err != nil {
		return err
	}
	for _, root := range c.roots {
		if err := c.bucket(root); err != nil {
			return err
		}
	}
	return nil
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

// page returns a page with its overflow. Whoever led here has taken the page.
func (c *pageCheck) page(id uint64) ([]byte, error) {
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
	if !c.take(id+1, overflow) {
		return nil, fmt.Errorf("page %d reaches into another", id)
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
	if !c.take(c.meta.freelist, 1) {
		return errors.New("the free list is used twice")
	}
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

// place is where a page stands in a tree.
type place struct {
	id       uint64
	top      bool   // in the tree of the buckets' names
	low, end []byte // its keys are not before low and before end; nil is no bound
}

// visit checks one page, once. It returns the page where it is a branch, whose children
// it has taken, and nil where it is a leaf.
func (c *pageCheck) visit(p place) (branch []byte, err error) {
	if b := c.branches[p.id]; b != nil {
		return b, nil
	}
	if _, ok := c.leaves[p.id]; ok {
		return nil, nil
	}
	b, err := c.page(p.id)
	if err != nil {
		return nil, err
	}
	switch order.Uint16(b[8:]) {
	case flagLeaf:
		c.leaves[p.id] = order.Uint16(b[10:]) == 0
		return nil, c.leaf(b, p)
	case flagBranch:
	default:
		return nil, fmt.Errorf("page %d is of no kind", p.id)
	}
	n := int(order.Uint16(b[10:]))
	if n == 0 {
		return nil, fmt.Errorf("page %d leads nowhere", p.id)
	}
	var last []byte
	filled := 0
	for i := range n {
		e := element(b, i)
		if e == nil {
			return nil, fmt.Errorf("page %d is cut", p.id)
		}
		key := span(e, order.Uint32(e), order.Uint32(e[4:]))
		filled = max(filled, len(b)-len(e)+int(order.Uint32(e))+len(key))
		if len(key) == 0 || i > 0 && bytes.Compare(last, key) >= 0 || p.end != nil && bytes.Compare(key, p.end) >= 0 {
			return nil, fmt.Errorf("page %d is out of order", p.id)
		}
		last = key
		child := order.Uint64(e[8:])
		if child < 2 || child >= c.meta.high {
			return nil, fmt.Errorf("page %d leads outside", p.id)
		}
		if !c.take(child, 1) {
			return nil, fmt.Errorf("page %d leads to a page that is used twice", p.id)
		}
	}
	if err := c.fits(b, p.id, filled); err != nil {
		return nil, err
	}
	c.branches[p.id] = b
	return b, nil
}

// fits refuses a page with more overflow than its content fills, which would take pages
// from others: bbolt gives a page what it needs.
func (c *pageCheck) fits(b []byte, id uint64, filled int) error {
	if size := int(c.meta.pageSize); len(b) > size && filled <= len(b)-size {
		return fmt.Errorf("page %d reaches further than it holds", id)
	}
	return nil
}

// child is the place of child i of a branch that was visited.
func (p place) child(branch []byte, i int) place {
	key := func(i int) []byte {
		e := element(branch, i)
		return span(e, order.Uint32(e), order.Uint32(e[4:]))
	}
	child := place{id: order.Uint64(element(branch, i)[8:]), top: p.top, low: p.low, end: p.end}
	if i > 0 {
		child.low = key(i)
	}
	if i+1 < children(branch) {
		child.end = key(i + 1)
	}
	return child
}

func children(branch []byte) int { return int(order.Uint16(branch[10:])) }

// tree checks everything from a place down.
func (c *pageCheck) tree(p place, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	b, err := c.visit(p)
	if err != nil || b == nil {
		return err
	}
	for i := range children(b) {
		if err := c.tree(p.child(b, i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

var errDeep = errors.New("the tree is too deep")

// bucket checks all of a bucket that has pages of its own.
func (c *pageCheck) bucket(root uint64) error {
	if root == 0 {
		return nil
	}
	return c.tree(place{id: root}, 0)
}

// leaf checks the elements of a leaf page, which in the top bucket are buckets
// and anywhere else are values.
func (c *pageCheck) leaf(b []byte, p place) error {
	var last []byte
	filled := 0
	for i := range int(order.Uint16(b[10:])) {
		e := element(b, i)
		if e == nil {
			return fmt.Errorf("page %d is cut", p.id)
		}
		pos, ksize, vsize := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key := span(e, pos, ksize)
		if len(key) == 0 || uint64(pos)+uint64(ksize)+uint64(vsize) > uint64(len(e)) {
			return fmt.Errorf("page %d is cut", p.id)
		}
		if i > 0 && bytes.Compare(last, key) >= 0 || bytes.Compare(key, p.low) < 0 || p.end != nil && bytes.Compare(key, p.end) >= 0 {
			return fmt.Errorf("page %d is out of order", p.id)
		}
		last = key
		filled = max(filled, len(b)-len(e)+int(pos)+int(ksize)+int(vsize))
		if isBucket := order.Uint32(e) == 1; isBucket != p.top {
			return fmt.Errorf("page %d holds what it should not", p.id)
		}
		if p.top {
			if err := c.header(string(key), span(e, pos+ksize, vsize)); err != nil {
				return err
			}
		}
	}
	return c.fits(b, p.id, filled)
}

// header checks what a bucket's name leads to: a page, or the page inside the value.
func (c *pageCheck) header(name string, v []byte) error {
	if len(v) < bucketHeader {
		return errors.New("a bucket is cut")
	}
	root := order.Uint64(v)
	c.roots[name] = root
	if root != 0 {
		if root < 2 || root >= c.meta.high || !c.take(root, 1) {
			return fmt.Errorf("a bucket begins at page %d wrongly", root)
		}
		return nil
	}
	inline := v[bucketHeader:]
	if len(inline) < pageHeader || order.Uint64(inline) != 0 || order.Uint16(inline[8:]) != flagLeaf || order.Uint32(inline[12:]) != 0 {
		return errors.New("a bucket is cut")
	}
	return c.leaf(inline, place{})
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
