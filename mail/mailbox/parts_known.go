package mailbox

import "sync"

// maxPartFacts bounds the messages of one account that are remembered.
const maxPartFacts = 100_000

// partFacts remembers which messages have attachments: a message never changes
// under its UID. It is safe for concurrent use; its zero value knows nothing.
type partFacts struct {
	mu      sync.Mutex
	folders map[string]*folderParts
	count   int
}

type folderParts struct {
	uidValidity uint32
	has         map[uint32]bool
}

// begun reports whether anything is known of a folder.
func (f *partFacts) begun(folder string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.folders[folder] != nil
}

func (f *partFacts) known(folder string, uidValidity, uid uint32) (has, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.folders[folder]
	if p == nil || p.uidValidity != uidValidity {
		return false, false
	}
	has, known = p.has[uid]
	return has, known
}

// note remembers one message. When there are too many, all is forgotten: it costs
// a list a few bytes to learn it again.
func (f *partFacts) note(folder string, uidValidity, uid uint32, has bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.folders == nil || f.count >= maxPartFacts {
		f.folders, f.count = make(map[string]*folderParts), 0
	}
	p := f.folders[folder]
	if p == nil || p.uidValidity != uidValidity {
		if p != nil {
			f.count -= len(p.has)
		}
		p = &folderParts{uidValidity: uidValidity, has: make(map[uint32]bool)}
		f.folders[folder] = p
	}
	if _, ok := p.has[uid]; !ok {
		f.count++
	}
	p.has[uid] = has
}
