package mailbox

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

const (
	// headerBytes bounds a header that is fetched whole. A sender can make it longer: a
	// policy that hides messages does not show one whose header is cut.
	headerBytes = 64 << 10
	// shownBytes is how much is fetched of the fields in shownFields.
	shownBytes = 16 << 10
	// maxPeople bounds the addresses shown of one field.
	maxPeople = 100
)

// The fields that a list shows, and those that a full one shows besides.
var (
	shownFields = []string{"FROM", "SUBJECT", "DATE", "CONTENT-TYPE"}
	fullFields  = append(slices.Clone(shownFields), "TO", "CC", "MESSAGE-ID")
)

// mimeFields say how the text is encoded, for snippets.
var mimeFields = []string{"MIME-VERSION", "CONTENT-TRANSFER-ENCODING"}

// traceFields are what a sender is judged by besides From.
var traceFields = strings.Fields(strings.ToUpper(strings.Join(mail.VerdictFields()[1:], " ")))

// head is the section of the header that is fetched. From may stand below any number of
// trace fields, which are therefore bounded as a whole header is.
func (w wanted) head() *goimap.FetchItemBodySection {
	fields, size := shownFields, int64(shownBytes)
	switch {
	case w.header:
		return headerSection()
	case w.read:
		fields, size = readFields, headerBytes
	case w.full:
		fields = fullFields
	}
	if w.text && !w.read {
		fields = slices.Concat(fields, mimeFields)
	}
	if w.thread {
		fields = slices.Concat(fields, threadFields)
	} else if w.copies && !w.full {
		fields = slices.Concat(fields, []string{"MESSAGE-ID"})
	}
	if w.trace {
		fields, size = slices.Concat(fields, traceFields), headerBytes
	}
	return &goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierHeader, HeaderFields: fields, Partial: &goimap.SectionPartial{Size: size}}
}

func headerSection() *goimap.FetchItemBodySection {
	return &goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierHeader, Partial: &goimap.SectionPartial{Size: headerBytes}}
}

// wanted selects the data to fetch of each message besides its flags and fields.
type wanted struct {
	header    bool // all of the header, for the policy to judge: the server may leave out a field that another reader would see
	structure bool
	dates     bool // INTERNALDATE
	full      bool // every field of a Summary
	text      bool // the beginning of the text
	thread    bool // the fields that link conversations
	copies    bool // what tells a copy from another message
	trace     bool // the fields that the sender is judged by
	read      bool // the fields that Get shows
}

// headers selects what a list fetches of the headers: where the policy hides messages, or
// all is to be told of senders that it judges, all of them.
func (j judge) headers(full bool) wanted {
	return wanted{header: !j.ShowsAll() || full && j.Judges(), trace: j.Judges(), full: full}
}

// fetched is one message as fetched by IMAP or POP3.
type fetched struct {
	ref      mail.Ref
	flags    []string
	header   rfc5322.Header
	readable bool // the server gave the header
	whole    bool // and all of it
	internal time.Time
	size     int64
	headed   int           // length of the header that came, in bytes
	root     *message.Part // nil when the server did not tell
	data     *imapclient.FetchMessageBuffer
}

func (w wanted) options() goimap.FetchOptions {
	// The fields come from the header itself and not from ENVELOPE, so that lists and the
	// policy read them the same way.
	opts := goimap.FetchOptions{Flags: true, InternalDate: w.dates, RFC822Size: w.full || w.thread || w.copies, BodySection: []*goimap.FetchItemBodySection{w.head()}}
	if w.text {
		opts.BodySection = append(opts.BodySection,
			&goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierText, Partial: &goimap.SectionPartial{Size: textBytes}})
	}
	if w.structure {
		opts.BodyStructure = &goimap.FetchItemBodyStructure{Extended: true}
	}
	return opts
}

// maxAlone is how many messages of a window are asked for one by one.
const maxAlone = 100

// fetchAll fetches messages when the server may refuse some of them. A refused FETCH fails
// as a whole: fetchAll then asks which messages exist, and fetches the missing ones one by
// one. A message that is refused again is not readable.
func (x *imapBox) fetchAll(s *imap.Session, set goimap.NumSet, opts goimap.FetchOptions) ([]fetched, error) {
	box, _ := s.Selected()
	data, err := s.Fetch(set, opts).Wait()
	if !refusedByServer(err) {
		return x.readWindow(box, data), err
	}
	s.Renew()
	all, allErr := s.Fetch(set, goimap.FetchOptions{UID: true}).Wait()
	if allErr != nil || len(all)-len(data) > maxAlone {
		return nil, err
	}
	out := x.readWindow(box, data)
	for _, d := range all {
		if dataOf(data, uint32(d.UID)) != nil {
			continue
		}
		s.Renew()
		one, err := s.Fetch(imap.UIDs(uint32(d.UID)), opts).Wait()
		switch {
		case refusedByServer(err):
			out = append(out, fetched{ref: x.refTo(box.Name, box.UIDValidity, uint32(d.UID))})
		case err != nil:
			return nil, err
		default:
			out = append(out, x.readWindow(box, one)...)
		}
	}
	slices.SortFunc(out, func(a, b fetched) int { return cmp.Compare(a.ref.UID, b.ref.UID) })
	return out, nil
}

// readWindow returns messages of a folder by ascending UID.
func (x *imapBox) readWindow(box imap.Folder, data []*imapclient.FetchMessageBuffer) []fetched {
	out := make([]fetched, len(data))
	for i, d := range data {
		out[i] = readFetched(x.refTo(box.Name, box.UIDValidity, uint32(d.UID)), d)
	}
	return out
}

func readFetched(ref mail.Ref, d *imapclient.FetchMessageBuffer) fetched {
	g := fetched{ref: ref, flags: flagsOf(d.Flags), internal: d.InternalDate, size: d.RFC822Size, data: d}
	raw, ok := section(d, goimap.PartSpecifierHeader, nil, false)
	if ok {
		g.whole = len(raw) < headerBytes
	} else {
		raw, ok = section(d, goimap.PartSpecifierHeader, nil, true)
	}
	g.header, g.readable, g.headed = rfc5322.ParseHeader(raw), ok, len(raw)
	if d.BodyStructure != nil {
		if g.root = partsOf(d.BodyStructure); g.root != nil {
			g.root.Forward = message.IsForward(g.header.Text("Subject"))
		}
	}
	return g
}

// source is the messages to walk: a set of UIDs, or a range of sequence numbers.
type source struct {
	uids      goimap.UIDSet // none: by number
	low, high uint32        // from 1; high 0 means none
}

// next takes n messages from one end; nil means that no messages are left.
func (c *source) next(n uint32, oldest bool) goimap.NumSet {
	if len(c.uids) > 0 {
		var window goimap.UIDSet
		window, c.uids = imap.SplitUIDs(c.uids, n, oldest)
		return window
	}
	if c.high == 0 || c.low > c.high {
		return nil
	}
	n = min(n, c.high-c.low+1)
	var set goimap.SeqSet
	if oldest {
		set.AddRange(c.low, c.low+n-1)
		c.low += n
	} else {
		set.AddRange(c.high-n+1, c.high)
		c.high -= n
	}
	return set
}

// maxEmpty is how many windows in a row may come back empty: a server that keeps naming
// messages and returns no data would keep this busy for ever.
const maxEmpty = 5

// walk fetches messages of the folder that is open, window by window, and gives each
// window to fn in the order asked for, until fn returns false. size says how many
// messages the next window has; nil means maxWindow.
func (x *imapBox) walk(s *imap.Session, from source, oldest bool, w wanted, size func() int, fn func(got []fetched) (more bool)) error {
	box, _ := s.Selected()
	if size == nil {
		size = func() int { return maxWindow }
	}
	empty, looked := 0, 0
	for set := from.next(uint32(size()), oldest); set != nil; set = from.next(uint32(size()), oldest) {
		s.Renew()
		x.looking(uint64(looked), 0, box.Name)
		got, err := x.fetchAll(s, set, w.options())
		if err != nil {
			return err
		}
		looked += len(got)
		if empty++; len(got) > 0 {
			empty = 0
		} else if empty == maxEmpty {
			return x.givesNothing()
		}
		if uids, ok := set.(goimap.UIDSet); ok {
			got = slices.DeleteFunc(got, func(g fetched) bool { return !uids.Contains(goimap.UID(g.ref.UID)) })
		}
		if !oldest {
			slices.Reverse(got)
		}
		if !fn(got) {
			return nil
		}
	}
	return nil
}

// inTime reports whether a message is dated within the bounds of a query. The server's
// search knows only days. A message without any date is outside all bounds.
func (g *fetched) inTime(since, until time.Time) bool {
	if since.IsZero() && until.IsZero() {
		return true
	}
	t, ok := g.date()
	if !ok {
		t = g.internal
	}
	return !t.IsZero() && !t.Before(since) && (until.IsZero() || t.Before(until))
}

// unreadable is the Issue of a message whose header the server did not give.
func (g *fetched) unreadable() mail.Issue {
	return mail.Issue{Kind: mail.KindRefused, Stage: "parse", UID: g.ref.UID, MessageID: g.ref.String(), Retryable: true,
		Message: "The server did not give the message's header."}
}

// section returns the fetched bytes of a section; listed tells a selection of header fields
// from the whole header.
func section(d *imapclient.FetchMessageBuffer, specifier goimap.PartSpecifier, part []int, listed bool) ([]byte, bool) {
	for _, b := range d.BodySection {
		if b.Section.Specifier == specifier && (len(b.Section.HeaderFields) > 0) == listed &&
			partID(b.Section.Part) == partID(part) && b.Bytes != nil {
			return b.Bytes, true
		}
	}
	return nil, false
}

// flagsOf keeps valid flags and leaves out \Recent, which belongs to the session.
func flagsOf(flags []goimap.Flag) []string {
	out := make([]string, 0, len(flags))
	for _, f := range flags {
		if s := plain.Line(string(f)); s != "" && !strings.EqualFold(s, `\Recent`) && len(out) < 100 {
			out = append(out, canonicalFlag(s))
		}
	}
	return out
}

// canonicalFlag gives the system flags, whose case does not matter, one spelling.
func canonicalFlag(s string) string {
	for _, f := range []goimap.Flag{goimap.FlagSeen, goimap.FlagAnswered, goimap.FlagFlagged, goimap.FlagDeleted, goimap.FlagDraft} {
		if strings.EqualFold(s, string(f)) {
			return string(f)
		}
	}
	return s
}

// sees applies the policy. An incomplete header proves nothing and passes only where the
// policy hides nothing.
func (j judge) sees(g *fetched) bool {
	return j.ShowsAll() || g.whole && j.shows(g.ref.Folder, g.header)
}

// verdict is what the policy thinks of the sender, unknown where the header was cut. A server
// that gives some fields can put them in another order and leave out a second From: they
// prove nothing in the sender's favour.
func (j judge) verdict(g *fetched) mail.Verdict {
	if !j.Judges() || g.headed >= headerBytes {
		return mail.Unknown
	}
	v := j.Verdict(g.header)
	if v == mail.Verified && !g.whole {
		return mail.Unknown
	}
	return v
}

// summary is the message as a list shows it; with full, with the fields of a full list.
func (x *access) summary(g *fetched, full bool) Summary {
	s := Summary{Ref: g.ref, Flags: g.flags, Size: g.size, InternalDate: g.internal, Subject: g.header.Text("Subject"),
		From: people(g.header, "From"), To: people(g.header, "To"), CC: people(g.header, "Cc"), InternetMessageID: messageID(g.header), Verdict: x.policy.verdict(g)}
	s.mask(x.masked(g, ""))
	s.Date, _ = g.date()
	s.HasAttachments, s.Invitation = g.hasAttachments(), message.HasCalendar(g.root)
	if !full {
		compact(&s)
	}
	return s
}

// compact removes the fields that only a full list shows.
func compact(s *Summary) {
	s.To, s.CC, s.InternetMessageID, s.Size = nil, nil, "", 0
	if !s.Date.IsZero() {
		s.InternalDate = time.Time{}
	}
}

// hasAttachments is what lists, searches and single messages mean by it. Images inside the
// text, signatures and calendars do not count: people do not call the first two attachments,
// and the third is an invitation. Where the server did not send the structure, it estimates
// from the header.
func (g *fetched) hasAttachments() bool {
	if g.root != nil {
		return slices.ContainsFunc(message.Attachments(g.root), func(p *message.Part) bool { return !p.Incidental() && !message.IsCalendar(p) })
	}
	return g.mediaType() == "multipart/mixed"
}

// doubtful reports whether the header leaves open what the message has besides its text: a
// message that is one text has nothing.
func (g *fetched) doubtful() bool {
	switch t := g.mediaType(); t {
	case "", "text/plain", "text/html":
		return strings.Contains(strings.ToLower(g.header.Get("Content-Disposition")), "attachment")
	}
	return true
}

func (g *fetched) mediaType() string {
	t, _, _ := strings.Cut(g.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// partsOf makes our tree of a BODYSTRUCTURE, with its section numbers (RFC 9051
// section 6.4.5.1), within the bounds of a tree parsed here.
func partsOf(b goimap.BodyStructure) *message.Part {
	left := message.MaxParts
	root := partOf(b, "", message.MaxDepth, &left)
	if root != nil && len(root.Children) == 0 && root.Type != "multipart" {
		root.ID = "1"
	}
	return root
}

func partOf(b goimap.BodyStructure, id string, depth int, left *int) *message.Part {
	if *left--; *left < 0 || depth < 0 {
		return nil
	}
	var disposition string
	var params map[string]string
	if d := b.Disposition(); d != nil {
		disposition, params = d.Value, d.Params
	}
	switch b := b.(type) {
	case *goimap.BodyStructureSinglePart:
		return message.NewPart(message.Part{ID: id, Type: b.Type, Subtype: b.Subtype, Params: b.Params, Disposition: disposition,
			Encoding: b.Encoding, Size: int64(b.Size), ContentID: b.ID}, params)
	case *goimap.BodyStructureMultiPart:
		p := message.Part{ID: id, Type: "multipart", Subtype: b.Subtype, Disposition: disposition}
		if b.Extended != nil {
			p.Params = b.Extended.Params
		}
		if id != "" {
			id += "."
		}
		for i, c := range b.Children {
			if child := partOf(c, id+strconv.Itoa(i+1), depth-1, left); child != nil {
				p.Children = append(p.Children, child)
			}
		}
		return message.NewPart(p, params)
	}
	return nil
}

// partID writes a section number as a Part has it.
func partID(part []int) string {
	s := make([]string, len(part))
	for i, n := range part {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ".")
}

// partNumbers reads what partID writes.
func partNumbers(id string) []int {
	var part []int
	for s := range strings.SplitSeq(id, ".") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil
		}
		part = append(part, n)
	}
	return part
}

// people returns the addresses to show of a field.
func people(h rfc5322.Header, field string) []mail.Address {
	list := h.Addresses(field)
	return list[:min(len(list), maxPeople)]
}

// messageID returns the Message-ID without its angle brackets.
func messageID(h rfc5322.Header) string {
	if ids := h.MsgIDs("Message-ID"); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// date is when the message says it was sent; ok is false when it does not say.
func (g *fetched) date() (t time.Time, ok bool) { return g.header.Date() }

func headerHolds(field, text string) goimap.SearchCriteria {
	return goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: field, Value: text}}}
}

// anyOf matches where one of the criteria does. It nests as little as possible, since
// servers bound the depth. It is nil without criteria.
func anyOf(all []goimap.SearchCriteria) *goimap.SearchCriteria {
	switch n := len(all); n {
	case 0:
		return nil
	case 1:
		return &all[0]
	default:
		return &goimap.SearchCriteria{Or: [][2]goimap.SearchCriteria{{*anyOf(all[:n/2]), *anyOf(all[n/2:])}}}
	}
}
