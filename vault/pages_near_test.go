package vault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// tallFile makes a vault with n records in one bucket. The keys are long, so that four
// make a page and a few hundred a tree of several levels.
func tallFile(t testing.TB, n int) (path string, k Keys) {
	t.Helper()
	path, k = newVaultFile(t)
	v := mustOpen(t, path, k, nil)
	must(t, v.Update(t.Context(), func(tx *Tx) error {
		b := tx.Bucket("tall")
		for i := range n {
			if err := b.Put(tallKey(i), make([]byte, 100)); err != nil {
				return err
			}
		}
		return nil
	}))
	return path, k
}

func tallKey(i int) []byte { return append(fmt.Appendf(nil, "%06d", i), make([]byte, 900)...) }

// costOf says what each transaction came to.
func costOf(v *Vault, use func()) (list []cost) {
	v.file.looked = func(c cost) { list = append(list, c) }
	defer func() { v.file.looked = nil }()
	use()
	return list
}

// TestOpenReadsAsMuchOfABigFileAsOfASmallOne counts pages: what is checked when a
// vault is opened, and for one record, does not depend on how much it holds.
func TestOpenReadsAsMuchOfABigFileAsOfASmallOne(t *testing.T) {
	var opened, got []int
	for _, n := range []int{200, 5000} {
		path, k := tallFile(t, n)
		f, err := findFile(path)
		must(t, err)
		f.looked = func(c cost) { opened = append(opened, c.pages) }
		must(t, f.transactChecked(t.Context(), false, func(tx checkedTx) error { return tx.pages.firstPages() }))
		v := mustOpen(t, path, k, nil)
		used := costOf(v, func() {
			must(t, v.View(t.Context(), func(tx *Tx) error {
				_, err := tx.Bucket("tall").Get(tallKey(n / 2))
				return err
			}))
		})
		got = append(got, used[0].pages)
	}
	if len(opened) != 2 || opened[0] != opened[1] || opened[0] > 5 {
		t.Errorf("pages to open: %v", opened)
	}
	// A few levels more, of two dozen times the pages; tallKey makes trees tall.
	if len(got) != 2 || got[1] > got[0]+5 {
		t.Errorf("pages for one record: %v", got)
	}
}

// spot is a page in the tall bucket and the records below it.
type spot struct {
	id          uint64
	first, last int
}

// spots finds a branch below the first, and a leaf, both in the middle of the tree.
func spots(t *testing.T, path string, records int) (root uint64, branch, leaf spot) {
	t.Helper()
	f, err := findFile(path)
	must(t, err)
	must(t, f.transactChecked(t.Context(), false, func(tx checkedTx) error {
		c := tx.pages
		root = c.roots[statePrefix+"tall"]
		find := func(p place) spot {
			s := spot{id: p.id, last: records - 1}
			if p.low != nil {
				_, err = fmt.Sscanf(string(p.low), "%d", &s.first)
			}
			if p.end != nil && err == nil {
				_, err = fmt.Sscanf(string(p.end), "%d", &s.last)
				s.last--
			}
			return s
		}
		b, err := c.visit(place{id: root})
		must(t, err)
		upper := place{id: root}.child(b, 0)
		b, err = c.visit(upper)
		must(t, err)
		if b == nil {
			t.Fatal("the tree has two levels only")
		}
		mid := upper.child(b, children(b)/2)
		inner, err := c.visit(mid)
		must(t, err)
		if inner == nil {
			t.Fatal("the tree has three levels only")
		}
		branch = find(mid)
		at := mid
		for b := inner; b != nil; {
			at = at.child(b, children(b)/2)
			b, err = c.visit(at)
			must(t, err)
		}
		leaf = find(at)
		return nil
	}))
	must(t, err)
	return root, branch, leaf
}

// TestPagesAreCheckedBeforeBboltComesToThem breaks pages deep in a tree, so that
// opening does not see them, and then goes there in every way. What lies elsewhere
// can still be read.
func TestPagesAreCheckedBeforeBboltComesToThem(t *testing.T) {
	const records = 400
	whole, k := tallFile(t, records)
	content, err := os.ReadFile(whole)
	must(t, err)
	root, branch, leaf := spots(t, whole, records)
	size := os.Getpagesize()
	for name, c := range map[string]struct {
		at     spot
		damage func(page []byte)
	}{
		"a branch leads to itself":      {branch, func(b []byte) { order.PutUint64(b[pageHeader+8:], branch.id) }},
		"a branch leads to the root":    {branch, func(b []byte) { order.PutUint64(b[pageHeader+8:], root) }},
		"a branch leads to a head":      {branch, func(b []byte) { order.PutUint64(b[pageHeader+8:], 1) }},
		"a branch leads outside":        {branch, func(b []byte) { order.PutUint64(b[pageHeader+8:], 1<<40) }},
		"a branch leads twice to one":   {branch, func(b []byte) { copy(b[pageHeader+8:][:8], b[pageHeader+elementSize+8:]) }},
		"a branch has no children":      {branch, func(b []byte) { order.PutUint16(b[10:], 0) }},
		"a branch has too many":         {branch, func(b []byte) { order.PutUint16(b[10:], 0xffff) }},
		"a branch is of no kind":        {branch, func(b []byte) { order.PutUint16(b[8:], 3) }},
		"a leaf is another page":        {leaf, func(b []byte) { order.PutUint64(b, 4) }},
		"a leaf says it is a branch":    {leaf, func(b []byte) { order.PutUint16(b[8:], flagBranch) }},
		"a leaf reaches over others":    {leaf, func(b []byte) { order.PutUint32(b[12:], 3) }},
		"a leaf holds a bucket":         {leaf, func(b []byte) { order.PutUint32(b[pageHeader:], 1) }},
		"a value in a leaf lies out":    {leaf, func(b []byte) { order.PutUint32(b[pageHeader+12:], 1<<31) }},
		"a leaf is not in order":        {leaf, func(b []byte) { b[int(order.Uint32(b[pageHeader+4:]))+pageHeader+3] = '9' }},
		"a leaf holds what is not here": {leaf, func(b []byte) { b[int(order.Uint32(b[pageHeader+4:]))+pageHeader] = '!' }},
	} {
		t.Run(name, func(t *testing.T) {
			path := fmt.Sprintf("%s/%d.db", t.TempDir(), c.at.id)
			b := slices.Clone(content)
			c.damage(b[int(c.at.id)*size:])
			must(t, os.WriteFile(path, b, 0o600))
			v := mustOpen(t, path, k, nil) // which is none of its business
			inside, before, after := tallKey((c.at.first+c.at.last)/2), tallKey(c.at.first-1), tallKey(c.at.last+1)
			for way, go_ := range map[string]func(b *Bucket) error{
				"get":    func(b *Bucket) error { _, err := b.Get(inside); return err },
				"put":    func(b *Bucket) error { return b.Put(inside, nil) },
				"delete": func(b *Bucket) error { return b.Delete(inside) },
				"seek":   func(b *Bucket) error { _, _, err := b.Cursor().Seek(inside); return err },
				"next": func(b *Bucket) error {
					c := b.Cursor()
					_, _, err := c.Seek(before)
					if err == nil {
						_, _, err = c.Next()
					}
					return err
				},
				"prev": func(b *Bucket) error {
					c := b.Cursor()
					_, _, err := c.Seek(after)
					if err == nil {
						_, _, err = c.Prev()
					}
					return err
				},
				"merge": func(b *Bucket) error { return b.Delete(before) }, // bbolt may join it with what follows
				"all":   func(b *Bucket) error { return b.ForEach(nil, func(_, _ []byte) error { return nil }) },
			} {
				err := v.Update(t.Context(), func(tx *Tx) error { return go_(tx.Bucket("tall")) })
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: %v, want ErrDamaged", way, err)
				}
			}
			must(t, v.View(t.Context(), func(tx *Tx) error {
				for _, i := range []int{0, records - 1} {
					if value, err := tx.Bucket("tall").Get(tallKey(i)); err != nil || len(value) != 100 {
						t.Errorf("record %d, elsewhere: %v", i, err)
					}
				}
				return nil
			}))
			if err := v.Check(t.Context()); !errors.Is(err, ErrDamaged) {
				t.Errorf("Check = %v, want ErrDamaged", err)
			}
		})
	}
}

// TestTheLastPagesAreCheckedToo has the way to the last record lead in a circle.
func TestTheLastPagesAreCheckedToo(t *testing.T) {
	const records = 400
	path, k := tallFile(t, records)
	f, err := findFile(path)
	must(t, err)
	way := []uint64{}
	must(t, f.transactChecked(t.Context(), false, func(tx checkedTx) error {
		for p := (place{id: tx.pages.roots[statePrefix+"tall"]}); ; {
			way = append(way, p.id)
			b, err := tx.pages.visit(p)
			if err != nil || b == nil {
				return err
			}
			p = p.child(b, children(b)-1)
		}
	}))
	content, err := os.ReadFile(path)
	must(t, err)
	branch := content[int(way[len(way)-2])*os.Getpagesize():]
	order.PutUint64(element(branch, children(branch)-1)[8:], way[0])
	must(t, os.WriteFile(path, content, 0o600))
	v := mustOpen(t, path, k, nil)
	err = v.View(t.Context(), func(tx *Tx) error {
		_, _, err := tx.Bucket("tall").Cursor().Last()
		return err
	})
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("Last = %v, want ErrDamaged", err)
	}
}

// TestAFreePageThatIsInUseIsNotOverwritten has the list of free pages name one that a
// bucket needs. Whoever writes there must not have it given away.
func TestAFreePageThatIsInUseIsNotOverwritten(t *testing.T) {
	const records = 400
	path, k := tallFile(t, records)
	v := mustOpen(t, path, k, nil)
	must(t, v.Update(t.Context(), func(tx *Tx) error {
		for i := range 100 {
			if err := tx.Bucket("tall").Delete(tallKey(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	_, _, leaf := spots(t, path, records)
	f, err := os.Open(path)
	must(t, err)
	m, err := readMeta(f)
	must(t, err)
	must(t, f.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	free := b[int(m.freelist)*os.Getpagesize():]
	order.PutUint64(free[pageHeader:], leaf.id)
	must(t, os.WriteFile(path, b, 0o600))
	change := func(tx *Tx) error { return tx.Bucket("tall").Put(tallKey(leaf.first), []byte("x")) }
	if err := v.Update(t.Context(), change); !errors.Is(err, ErrDamaged) {
		t.Errorf("Update = %v, want ErrDamaged", err)
	}
	if err := v.Check(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("Check = %v, want ErrDamaged", err)
	}
}

// TestNoSoundFileIsRefused changes a bucket at random, in many transactions that also
// empty whole pages, and compares what cursors find with a map. The check must never
// call damaged what bbolt wrote.
func TestNoSoundFileIsRefused(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 2))
	path, k := newVaultFile(t)
	v := mustOpen(t, path, k, nil)
	model := map[string]int{}
	for round := range 40 {
		must(t, v.Update(t.Context(), func(tx *Tx) error {
			b := tx.Bucket("tall")
			if from := dice.IntN(1500); round%3 == 2 { // a whole range goes, pages and all
				for i := from; i < from+400; i++ {
					delete(model, string(tallKey(i)))
					if err := b.Delete(tallKey(i)); err != nil {
						return err
					}
				}
			}
			for range 60 {
				i, n := dice.IntN(1500), dice.IntN(300)
				if dice.IntN(200) == 0 {
					n = 9000
				}
				model[string(tallKey(i))] = n
				if err := b.Put(tallKey(i), make([]byte, n)); err != nil {
					return err
				}
			}
			// And within the same transaction, over pages that are empty by now.
			// Backwards bbolt stops at those.
			c := b.Cursor()
			return compareWalk(c.First, c.Next, model)
		}))
		must(t, v.View(t.Context(), func(tx *Tx) error {
			c := tx.Bucket("tall").Cursor()
			return errors.Join(compareWalk(c.First, c.Next, model), compareWalk(c.Last, c.Prev, model))
		}))
	}
	must(t, v.Check(t.Context()))
	boltClean(t, v)
}

func compareWalk(start, step func() (key, value []byte, err error), model map[string]int) error {
	n := 0
	for key, value, err := start(); key != nil || err != nil; key, value, err = step() {
		if err != nil {
			return err
		}
		if size, ok := model[string(key)]; !ok || size != len(value) {
			return fmt.Errorf("record %s has %d bytes, want %d, %v", key, len(value), size, ok)
		}
		n++
	}
	if n != len(model) {
		return fmt.Errorf("a walk found %d of %d records", n, len(model))
	}
	return nil
}

// FuzzDamagedTree changes bytes in the pages of a tree of several levels, which long
// keys make out of few pages, and goes everywhere in it. It must neither crash nor
// hang. An edit is the number of a page, two bytes of offset, and the new byte.
func FuzzDamagedTree(f *testing.F) {
	dir := f.TempDir()
	path, k := newVaultFile(f)
	const records = 60
	fill := mustOpen(f, path, k, nil)
	for round := range 2 { // the second leaves free pages behind
		must(f, fill.Update(f.Context(), func(tx *Tx) error {
			for i := range records {
				if err := tx.Bucket("tall").Put(tallKey(i), make([]byte, 100*round)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	whole, err := os.ReadFile(path)
	must(f, err)
	f.Add([]byte{})
	f.Add([]byte{20, 0, 24, 20})
	f.Add([]byte{30, 0, 8, 1, 30, 0, 10, 255})
	f.Fuzz(func(t *testing.T, edits []byte) {
		b := slices.Clone(whole)
		for ; len(edits) >= 4; edits = edits[4:] {
			at := int(edits[0])*os.Getpagesize() + int(edits[1])<<8 + int(edits[2])
			b[at%len(b)] = edits[3]
		}
		path := fmt.Sprintf("%s/%d.db", dir, os.Getpid())
		must(t, os.WriteFile(path, b, 0o600))
		v, err := Open(t.Context(), path, k, nil)
		if err != nil {
			return
		}
		for i := range records {
			for _, change := range []func(*Bucket) error{
				func(b *Bucket) error { _, err := b.Get(tallKey(i)); return err },
				func(b *Bucket) error { return b.Put(tallKey(i), make([]byte, 300)) },
				func(b *Bucket) error { return b.ForEach(tallKey(i), func(_, _ []byte) error { return nil }) },
				func(b *Bucket) error { _, _, err := b.Cursor().Last(); return err },
				func(b *Bucket) error { return b.Delete(tallKey(i)) },
			} {
				if i%7 != 0 && i > 2 {
					continue
				}
				err := v.Update(t.Context(), func(tx *Tx) error { return change(tx.Bucket("tall")) })
				if errors.Is(err, ErrBusy) {
					t.Fatal(err) // a call that failed left the file locked
				}
			}
		}
	})
}
