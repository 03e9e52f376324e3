package demo

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
)

// The capabilities that the IMAP server announces besides the library's own.
// BINARY is missing because the library's answer to it also changes the charset
// of the text, against the part's header.
var capabilities = imap.CapSet{
	imap.CapIMAP4rev1:    {},
	imap.CapNamespace:    {},
	imap.CapUIDPlus:      {},
	imap.CapESearch:      {},
	imap.CapListExtended: {},
	imap.CapListStatus:   {},
	imap.CapStatusSize:   {},
	imap.CapMove:         {},
	imap.CapSpecialUse:   {},
	imap.CapChildren:     {},
}

// session is one IMAP connection. It is the library's in-memory session, except
// where that violates the protocol; each method gives the reason it is here.
// The library calls them one at a time, except Idle.
type session struct {
	*imapmemserver.UserSession // nil before login

	store    *store
	readOnly bool // the selected folder was opened with EXAMINE
}

var (
	_ imapserver.SessionIMAP4rev2   = (*session)(nil)
	_ imapserver.SessionAppendLimit = (*session)(nil)
)

func (s *store) newSession(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
	return &session{store: s}, nil, nil
}

// Login implements imapserver.Session.
func (s *session) Login(username, password string) error {
	if err := s.store.user.Login(username, password); err != nil {
		return err
	}
	s.UserSession = imapmemserver.NewUserSession(s.store.user)
	return nil
}

// AppendLimit implements imapserver.SessionAppendLimit: the library's own limit
// is ten times ours.
func (s *session) AppendLimit() uint32 { return MaxMessageBytes }

// Append is here so that an APPEND without a date gets the demo's time, and
// because of describable.
func (s *session) Append(name string, r imap.LiteralReader, options *imap.AppendOptions) (*imap.AppendData, error) {
	if options.Time.IsZero() {
		options.Time = s.store.now()
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if !describable(raw) {
		return nil, refuse(imap.ResponseCodeCannot, "The message has a multipart without a part")
	}
	return s.UserSession.Append(name, literal{bytes.NewReader(raw)}, options)
}

// describable reports whether the library can describe a message in a
// BODYSTRUCTURE. The library panics, amid an answer, at a multipart without a
// part, so one such message would end every connection that lists its folder.
func describable(raw []byte) bool {
	return hasParts(imapserver.ExtractBodyStructure(bytes.NewReader(raw)))
}

func hasParts(part imap.BodyStructure) bool {
	switch part := part.(type) {
	case *imap.BodyStructureMultiPart:
		return len(part.Children) > 0 && !slices.ContainsFunc(part.Children, func(p imap.BodyStructure) bool { return !hasParts(p) })
	case *imap.BodyStructureSinglePart:
		return part.MessageRFC822 == nil || hasParts(part.MessageRFC822.BodyStructure)
	}
	return false
}

// Create, Delete, Rename, Subscribe and Unsubscribe are here because the store
// keeps the names.
func (s *session) Create(name string, _ *imap.CreateOptions) error {
	return s.store.create(strings.TrimRight(name, string(delimiter)), "")
}

// Delete implements imapserver.Session.
func (s *session) Delete(name string) error { return s.store.remove(name) }

// Rename implements imapserver.Session.
func (s *session) Rename(from, to string, _ *imap.RenameOptions) error {
	return s.store.rename(from, to)
}

// Subscribe implements imapserver.Session.
func (s *session) Subscribe(name string) error { return s.store.subscribe(name, true) }

// Unsubscribe implements imapserver.Session.
func (s *session) Unsubscribe(name string) error { return s.store.subscribe(name, false) }

// List is here because the library's has no special uses (RFC 6154), no
// \HasChildren (RFC 3348), no levels without a folder, and does not find
// "inbox" in lower case.
func (s *session) List(w *imapserver.ListWriter, ref string, patterns []string, options *imap.ListOptions) error {
	if len(patterns) == 0 {
		return w.WriteList(&imap.ListData{Attrs: []imap.MailboxAttr{imap.MailboxAttrNoSelect}, Delim: delimiter})
	}
	for _, line := range s.store.list() {
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			if strings.EqualFold(pattern, "INBOX") {
				pattern = "INBOX"
			}
			return imapserver.MatchList(line.name, delimiter, ref, pattern)
		}) {
			continue
		}
		data := &imap.ListData{Mailbox: line.name, Delim: delimiter}
		if options.SelectSubscribed && !line.subscribed {
			if !options.SelectRecursiveMatch || !line.subscribedChild {
				continue
			}
		}
		if options.SelectRecursiveMatch && line.subscribedChild {
			data.ChildInfo = &imap.ListDataChildInfo{Subscribed: true}
		}
		if options.SelectSpecialUse && line.specialUse == "" {
			continue
		}
		if !line.exists {
			data.Attrs = append(data.Attrs, imap.MailboxAttrNonExistent, imap.MailboxAttrNoSelect)
		}
		if line.children {
			data.Attrs = append(data.Attrs, imap.MailboxAttrHasChildren)
		} else {
			data.Attrs = append(data.Attrs, imap.MailboxAttrHasNoChildren)
		}
		if line.specialUse != "" {
			data.Attrs = append(data.Attrs, line.specialUse)
		}
		if line.subscribed && (options.ReturnSubscribed || options.SelectSubscribed) {
			data.Attrs = append(data.Attrs, imap.MailboxAttrSubscribed)
		}
		if options.ReturnStatus != nil && line.exists {
			status, err := s.Status(line.name, options.ReturnStatus)
			if err == nil { // else it was deleted since
				data.Status = status
			}
		}
		if err := w.WriteList(data); err != nil {
			return err
		}
	}
	return nil
}

// Select is here because the library opens every folder for writing, and lists
// only the flags that its messages have.
func (s *session) Select(name string, options *imap.SelectOptions) (*imap.SelectData, error) {
	data, err := s.UserSession.Select(name, options)
	if err != nil {
		return nil, err
	}
	s.readOnly = options.ReadOnly
	flags := []imap.Flag{imap.FlagAnswered, imap.FlagFlagged, imap.FlagDeleted, imap.FlagSeen, imap.FlagDraft}
	for _, flag := range data.Flags {
		if !slices.ContainsFunc(flags, func(f imap.Flag) bool { return strings.EqualFold(string(f), string(flag)) }) {
			flags = append(flags, flag)
		}
	}
	data.Flags = flags
	data.PermanentFlags = nil
	if !s.readOnly {
		data.PermanentFlags = append(slices.Clone(flags), imap.FlagWildcard)
	}
	return data, nil
}

// errReadOnly answers a change to a folder that was opened with EXAMINE, which
// must not change it (RFC 9051 section 6.3.3).
var errReadOnly = refuse("READ-ONLY", "The folder is open for reading only")

// Fetch is here because EXAMINE forbids setting \Seen, and because the library
// shows a message the client has not been told of under the number 0, which no
// message can have (RFC 9051 section 9, nz-number).
func (s *session) Fetch(w *imapserver.FetchWriter, numbers imap.NumSet, options *imap.FetchOptions) error {
	if s.readOnly {
		for _, section := range options.BodySection {
			section.Peek = true
		}
	}
	numbers, err := s.announced(numbers)
	if err != nil {
		return err
	}
	return s.UserSession.Fetch(w, numbers, options)
}

// announced returns the sequence numbers of those messages that the client
// knows to exist. They stay valid until the end of the command.
func (s *session) announced(numbers imap.NumSet) (imap.NumSet, error) {
	uids, ok := numbers.(imap.UIDSet)
	if !ok {
		return numbers, nil
	}
	found, err := s.Search(imapserver.NumKindSeq, &imap.SearchCriteria{UID: []imap.UIDSet{uids}}, &imap.SearchOptions{})
	if err != nil {
		return nil, err
	}
	return found.All, nil
}

// Store is here for EXAMINE, and for the number 0 as in Fetch.
func (s *session) Store(w *imapserver.FetchWriter, numbers imap.NumSet, flags *imap.StoreFlags, options *imap.StoreOptions) error {
	if s.readOnly {
		return errReadOnly
	}
	numbers, err := s.announced(numbers)
	if err != nil {
		return err
	}
	return s.UserSession.Store(w, numbers, flags, options)
}

// Expunge is here for EXAMINE. CLOSE also comes this way, and in a folder open
// for reading only it removes nothing and succeeds (RFC 9051 section 6.4.1).
func (s *session) Expunge(w *imapserver.ExpungeWriter, uids *imap.UIDSet) error {
	if s.readOnly {
		if *w == (imapserver.ExpungeWriter{}) { // a writer that writes nowhere: CLOSE
			return nil
		}
		return errReadOnly
	}
	return s.UserSession.Expunge(w, uids)
}

// Copy is here because copies in opposite directions must not meet, and because
// the library answers a copy of nothing with a COPYUID that has no numbers,
// which no client can read.
func (s *session) Copy(numbers imap.NumSet, dest string) (*imap.CopyData, error) {
	s.store.transfer.Lock()
	defer s.store.transfer.Unlock()
	return s.copy(numbers, dest)
}

func (s *session) copy(numbers imap.NumSet, dest string) (*imap.CopyData, error) {
	numbers, err := s.announced(numbers)
	if err != nil {
		return nil, err
	}
	data, err := s.UserSession.Copy(numbers, dest)
	if err != nil || len(data.SourceUIDs) == 0 {
		return nil, err
	}
	return data, nil
}

// Move is here for the reasons of Copy, for EXAMINE, and because the library
// tells the client twice that a message is gone, the first time with the number
// of another message.
func (s *session) Move(w *imapserver.MoveWriter, numbers imap.NumSet, dest string) error {
	if s.readOnly {
		return errReadOnly
	}
	s.store.transfer.Lock()
	defer s.store.transfer.Unlock()
	data, err := s.copy(numbers, dest)
	if err != nil || data == nil {
		return err
	}
	if err := w.WriteCopyData(data); err != nil {
		return err
	}
	// The end of the command announces the removed messages.
	remove := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}
	if err := s.UserSession.Store(nil, data.SourceUIDs, remove, nil); err != nil {
		return err
	}
	return s.UserSession.Expunge(nil, &data.SourceUIDs)
}
