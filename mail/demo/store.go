package demo

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
)

// store is the mailbox behind all sessions of both servers. The library's user
// keeps the messages; names and their attributes are kept here, because the
// library's LIST supports neither special uses nor levels.
type store struct {
	user *imapmemserver.User
	now  func() time.Time

	// transfer is held while messages go from one folder to another. The library
	// locks both folders in the order of the transfer, so two in opposite
	// directions would wait for each other forever.
	transfer sync.Mutex

	mu       sync.Mutex
	folders  map[string]*folder // by name
	outgoing []Message
}

// folder is the LIST data of a folder.
type folder struct {
	specialUse imap.MailboxAttr // empty without one
	subscribed bool
}

const delimiter = '/'

func newStore(password string, now func() time.Time) (*store, error) {
	s := &store{
		user:    imapmemserver.NewUser(Username, password),
		now:     now,
		folders: map[string]*folder{},
	}
	for _, f := range sampleFolders {
		if err := s.create(f.name, f.specialUse); err != nil {
			return nil, err
		}
	}
	messages, err := sampleMessages(now())
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if err := s.add(m.folder, m.raw, m.time, m.flags...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add puts a message into a folder.
func (s *store) add(folder string, raw []byte, at time.Time, flags ...imap.Flag) error {
	_, err := s.user.Append(folder, literal{bytes.NewReader(raw)}, &imap.AppendOptions{Time: at, Flags: flags})
	return err
}

type literal struct{ *bytes.Reader }

// Size implements imap.LiteralReader.
func (l literal) Size() int64 { return l.Reader.Size() }

func (s *store) create(name string, use imap.MailboxAttr) error {
	if err := checkName(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.user.Create(name, nil); err != nil {
		return err
	}
	s.folders[name] = &folder{specialUse: use, subscribed: use != "" || name == "INBOX"}
	return nil
}

// checkName refuses names that would confuse the levels of the hierarchy.
func checkName(name string) error {
	for level := range strings.SplitSeq(name, string(delimiter)) {
		if level == "" || strings.ContainsFunc(level, func(r rune) bool { return r < ' ' || r == 0x7f || r == '*' || r == '%' }) {
			return refuse(imap.ResponseCodeCannot, "A folder cannot have this name")
		}
	}
	return nil
}

// remove deletes a folder. The library would delete INBOX too, which must
// always exist (RFC 9051 section 6.3.5).
func (s *store) remove(name string) error {
	if name == "INBOX" {
		return refuse(imap.ResponseCodeCannot, "INBOX cannot be deleted")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.user.Delete(name); err != nil {
		return err
	}
	delete(s.folders, name)
	return nil
}

// rename renames a folder and those below it. The library would leave those
// below behind, and remove INBOX.
func (s *store) rename(from, to string) error {
	if from == "INBOX" {
		return refuse(imap.ResponseCodeCannot, "INBOX cannot be renamed")
	}
	to = strings.TrimRight(to, string(delimiter))
	if err := checkName(to); err != nil {
		return err
	}
	if strings.HasPrefix(to, from+string(delimiter)) {
		return refuse(imap.ResponseCodeCannot, "A folder cannot move below itself")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.folders {
		if name == from || strings.HasPrefix(name, from+string(delimiter)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return refuse(imap.ResponseCodeNonExistent, "No such folder")
	}
	for _, name := range names {
		if s.folders[to+strings.TrimPrefix(name, from)] != nil {
			return refuse(imap.ResponseCodeAlreadyExists, "A folder of that name exists")
		}
	}
	for _, name := range names {
		renamed := to + strings.TrimPrefix(name, from)
		if err := s.user.Rename(name, renamed, nil); err != nil {
			return err
		}
		s.folders[renamed] = s.folders[name]
		delete(s.folders, name)
	}
	return nil
}

func (s *store) subscribe(name string, yes bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[name]
	if f == nil {
		return refuse(imap.ResponseCodeNonExistent, "No such folder")
	}
	f.subscribed = yes
	return nil
}

// listed is one line of LIST.
type listed struct {
	name string
	folder
	exists          bool // false for a level that only has folders below it
	children        bool
	subscribedChild bool // some folder below is subscribed
}

// list returns every folder, and every level above one, INBOX first.
func (s *store) list() []listed {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := map[string]*listed{}
	line := func(name string) *listed {
		if lines[name] == nil {
			lines[name] = &listed{name: name}
		}
		return lines[name]
	}
	for name, f := range s.folders {
		l := line(name)
		l.folder, l.exists = *f, true
		for i, r := range name {
			if r == delimiter {
				above := line(name[:i])
				above.children = true
				above.subscribedChild = above.subscribedChild || f.subscribed
			}
		}
	}
	all := make([]listed, 0, len(lines))
	for _, l := range lines {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b listed) int {
		if (a.name == "INBOX") != (b.name == "INBOX") {
			if a.name == "INBOX" {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.name, b.name)
	})
	return all
}

func refuse(code imap.ResponseCode, text string) error {
	return &imap.Error{Type: imap.StatusResponseTypeNo, Code: code, Text: text}
}
