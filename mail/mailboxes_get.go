package mail

import (
	"context"
	"strings"
	"unicode/utf8"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/internal/message"
)

// The bounds of Get.
const (
	defaultBodyChars = 2000 // 001 section 5
	minBodyChars     = 100
	maxBodyChars     = 20_000

	textBytes     = 8 << 10   // of the body, fetched at once: most messages are no longer
	maxPartBytes  = 512 << 10 // of one text part
	maxTextRounds = 3         // fetches of text after the first

	maxHeaderChars = 4000 // of one header field
)

// curated are the fields that matter to a reader and that Message has no field
// of its own for.
var curated = []string{"Sender", "Reply-To", "Bcc", "In-Reply-To", "References", "List-Id", "List-Unsubscribe", "Auto-Submitted"}

// Get returns one message. A Ref without UIDVALIDITY means the folder as it is
// now; one whose UIDVALIDITY is gone is KindConflict, and never the content of
// another message. A message that the inbound policy hides is answered exactly
// as one that does not exist. BodyChars is brought into 100..20,000. Only what is
// shown is fetched: the header, and of the text parts as much as BodyChars needs,
// 512 KiB of each at most. GetQuery.HTML is not served yet: BodyHTML stays empty.
func (m *Mailboxes) Get(ctx context.Context, ref Ref, q GetQuery) (*Message, error) {
	x, err := m.open(ctx, "mail get", ref.Account)
	if err != nil {
		return nil, err
	}
	ref.Folder = imap.FolderName(ref.Folder)
	if ref.Protocol != IMAP || ref.UID == 0 {
		return nil, noMessage(x.op, ref.Account, "")
	}
	if err := x.checkFolder(ref.Folder); err != nil {
		return nil, err
	}
	if q.BodyChars == 0 {
		q.BodyChars = defaultBodyChars
	}
	q.BodyChars = min(max(q.BodyChars, minBodyChars), maxBodyChars)
	if q.Headers == "" {
		q.Headers = HeadersCurated
	}
	r := &reading{access: x, ref: ref, q: q, structure: true}
	if err = r.run(ctx); unreadable(err) && ctx.Err() == nil {
		// The structure is what a hostile or broken message makes unreadable.
		// The message itself is bytes, and those can be parsed here.
		r.structure = false
		err = r.run(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r.message, nil
}

// reading is one Get in progress.
type reading struct {
	*access
	ref       Ref
	q         GetQuery
	structure bool // ask for the BODYSTRUCTURE

	message *Message
}

func (r *reading) run(ctx context.Context) error {
	return r.lend(ctx, r.ref.Folder, func(s *imap.Session) error {
		r.message = nil
		d, validity, err := r.fetch(s)
		if err != nil {
			return err
		}
		g := readFetched(d)
		if !g.visible(r.policy) {
			return noMessage(r.op, r.ref.Account, "filtered")
		}
		return r.read(s, d, &g, validity)
	})
}

// options is what the first fetch asks for. The policy judges the same bytes of
// the header as in a list.
func (r *reading) options() goimap.FetchOptions {
	opts := goimap.FetchOptions{Flags: true, InternalDate: true, RFC822Size: true, BodySection: []*goimap.FetchItemBodySection{headerSection()}}
	if !r.structure {
		opts.BodySection = append(opts.BodySection, prefixSection())
		return opts
	}
	opts.BodyStructure = &goimap.FetchItemBodyStructure{Extended: true}
	opts.BodySection = append(opts.BodySection,
		&goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierText, Partial: &goimap.SectionPartial{Size: textBytes}})
	return opts
}

// prefixSection is the beginning of the whole message.
func prefixSection() *goimap.FetchItemBodySection {
	return &goimap.FetchItemBodySection{Partial: &goimap.SectionPartial{Size: maxPartBytes}}
}

// fetch gets the message in one round trip: EXAMINE and FETCH leave together. The
// EXAMINE is sent also where the folder is open already, because a session may
// answer from what it knew before, down to a folder that was made anew since. The
// FETCH counts only when the UIDVALIDITY turns out to be the right one.
func (r *reading) fetch(s *imap.Session) (*imapclient.FetchMessageBuffer, uint32, error) {
	var examine *imap.Examining
	var fetch *imap.Fetching
	s.Together(func() {
		examine = s.Examine(r.ref.Folder)
		fetch = s.Fetch(goimap.UIDSetNum(goimap.UID(r.ref.UID)), r.options())
	})
	box, err := examine.Wait()
	data, fetchErr := fetch.Wait()
	if err != nil {
		return nil, 0, err
	}
	if r.ref.UIDValidity != 0 && r.ref.UIDValidity != box.UIDValidity {
		return nil, 0, gone(r.op, r.ref.Account)
	}
	if refusedByServer(fetchErr) && !r.policy.ShowsAll() {
		// Whether the policy would show it cannot be told, and an error would
		// tell that it is there.
		return nil, 0, noMessage(r.op, r.ref.Account, "filtered")
	}
	if fetchErr != nil {
		return nil, 0, fetchErr
	}
	for _, d := range data {
		if uint32(d.UID) == r.ref.UID && len(d.BodySection) > 0 {
			return d, box.UIDValidity, nil
		}
	}
	return nil, 0, noMessage(r.op, r.ref.Account, "")
}

// read fills in the message from what was fetched, and fetches the text that is
// still missing.
func (r *reading) read(s *imap.Session, d *imapclient.FetchMessageBuffer, g *fetched, validity uint32) error {
	head, hasHead := section(d, goimap.PartSpecifierHeader, nil, false)
	body, hasBody := section(d, goimap.PartSpecifierText, nil, false)
	whole := hasHead && hasBody && len(body) < textBytes && g.whole

	var entity *message.Entity // the message as far as it is here
	root := g.root
	var issues []Issue
	switch {
	case whole, root != nil && g.whole:
		entity = message.Parse(joinMessage(head, body))
		if whole {
			root = entity.Root
		}
	case root != nil:
	default:
		raw, ok := section(d, goimap.PartSpecifierNone, nil, false)
		if !ok {
			var err error
			if raw, err = r.fetchPrefix(s); err != nil {
				return err
			}
		}
		entity = message.Parse(raw)
		root, whole = entity.Root, true // there is no more to be had
		if d.RFC822Size > int64(len(raw)) {
			issues = append(issues, r.issue("The server did not tell the message's parts; only its first 512 KiB were read."))
		}
	}
	if !g.whole && hasHead {
		issues = append(issues, r.issue("The header is longer than 64 KiB; what lies beyond is not shown."))
	} else if !hasHead && entity != nil {
		g.header = entity.Header
	}

	g.root = root
	out := &Message{Summary: g.summary(), Issues: issues, Headers: r.headers(g.header)}
	out.Ref = r.ref
	out.Ref.UIDValidity = validity
	for _, p := range message.Attachments(root) {
		out.Attachments = append(out.Attachments, Attachment{PartID: p.ID, Filename: p.Filename, ContentType: message.CleanLine(p.MediaType()), Size: p.Size})
	}
	var err error
	if out.BodyText, out.BodyTruncated, err = r.text(s, root, entity, whole); err != nil {
		return err
	}
	r.message = out
	return nil
}

func (r *reading) issue(text string) Issue {
	return Issue{Code: "EXECUTION_ERROR", Stage: "parse", Message: text, UID: r.ref.UID}
}

// joinMessage puts a header and a body together that were fetched apart. The
// header brings its empty line with it, unless the message ends there.
func joinMessage(head, body []byte) []byte {
	raw := make([]byte, 0, len(head)+len(body)+4)
	raw = append(raw, head...)
	if !strings.HasSuffix(string(head), "\n\r\n") && !strings.HasSuffix(string(head), "\n\n") && string(head) != "\r\n" && len(body) > 0 {
		if len(head) > 0 && head[len(head)-1] != '\n' {
			raw = append(raw, "\r\n"...)
		}
		raw = append(raw, "\r\n"...)
	}
	return append(raw, body...)
}

func (r *reading) fetchPrefix(s *imap.Session) ([]byte, error) {
	got, err := r.again(s, prefixSection())
	if err != nil {
		return nil, err
	}
	raw, ok := section(got, goimap.PartSpecifierNone, nil, false)
	if !ok {
		return nil, noMessage(r.op, r.ref.Account, "")
	}
	return raw, nil
}

// again fetches sections of the message that was found before.
func (r *reading) again(s *imap.Session, sections ...*goimap.FetchItemBodySection) (*imapclient.FetchMessageBuffer, error) {
	data, err := s.Fetch(goimap.UIDSetNum(goimap.UID(r.ref.UID)), goimap.FetchOptions{BodySection: sections}).Wait()
	if err != nil {
		return nil, err
	}
	for _, d := range data {
		if uint32(d.UID) == r.ref.UID {
			return d, nil
		}
	}
	return nil, noMessage(r.op, r.ref.Account, "") // it vanished in between
}

// text reads what a person would read. It makes do with what is here already,
// and fetches beginnings of those parts alone that the text turns out to need.
func (r *reading) text(s *imap.Session, root *message.Part, entity *message.Entity, whole bool) (string, bool, error) {
	have := make(map[string][]byte)
	if entity != nil {
		for p := range leaves(entity.Root) {
			have[p.ID] = entity.Raw(p)
		}
	}
	asked := make(map[string]bool)
	for round := 0; ; round++ {
		var missing []*message.Part
		text, truncated := message.Text(root, func(p *message.Part) []byte {
			b := have[p.ID]
			if !whole && !asked[p.ID] && int64(len(b)) < p.Size && partNumbers(p.ID) != nil {
				missing = append(missing, p)
			}
			return b
		}, r.q.BodyChars)
		if len(missing) == 0 || round == maxTextRounds || truncated && utf8.RuneCountInString(text) >= r.q.BodyChars {
			text, cut := message.Truncate(text, r.q.BodyChars)
			return text, truncated || cut, nil
		}
		var sections []*goimap.FetchItemBodySection
		for _, p := range missing {
			if !asked[p.ID] {
				asked[p.ID] = true
				sections = append(sections, &goimap.FetchItemBodySection{Part: partNumbers(p.ID), Partial: &goimap.SectionPartial{Size: r.need(p)}})
			}
		}
		s.Renew()
		d, err := r.again(s, sections...)
		if err != nil {
			return "", false, err
		}
		for _, p := range missing {
			if b, ok := section(d, goimap.PartSpecifierNone, partNumbers(p.ID), false); ok && len(b) > len(have[p.ID]) {
				have[p.ID] = b
			}
		}
	}
}

// need is how many octets of a part hold BodyChars characters, at four bytes
// each and as its encoding swells them; HTML says little in many.
func (r *reading) need(p *message.Part) int64 {
	n := int64(r.q.BodyChars)*4 + 1024
	switch p.Encoding {
	case "base64":
		n = n * 3 / 2
	case "quoted-printable":
		n *= 3
	}
	if p.Subtype == "html" {
		n = max(n*8, 128<<10)
	}
	return min(n, maxPartBytes)
}

// leaves iterates over the parts that hold no others.
func leaves(p *message.Part) func(yield func(*message.Part) bool) {
	return func(yield func(*message.Part) bool) {
		var walk func(p *message.Part) bool
		walk = func(p *message.Part) bool {
			for _, c := range p.Children {
				if !walk(c) {
					return false
				}
			}
			return len(p.Children) > 0 || yield(p)
		}
		walk(p)
	}
}

// headers returns the fields asked for, in the message's order.
func (r *reading) headers(h message.Header) []HeaderField {
	var out []HeaderField
	if r.q.Headers == HeadersNone {
		return nil
	}
	for _, f := range h.Fields() {
		if f.Name == "" || r.q.Headers == HeadersCurated && !isCurated(f.Name) {
			continue
		}
		value, _ := message.Truncate(f.Text(), maxHeaderChars)
		out = append(out, HeaderField{Name: message.CleanLine(f.Name), Value: value})
	}
	return out
}

func isCurated(name string) bool {
	for _, c := range curated {
		if strings.EqualFold(c, name) {
			return true
		}
	}
	return false
}
