package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
	"github.com/postern-mail/postern/mail/mailbox/internal/fetch"
	"github.com/postern-mail/postern/mail/mailbox/internal/reading"
	"github.com/postern-mail/postern/mail/mailbox/internal/thread"
)

// The bounds of Thread.
const (
	maxThreadRounds = 40 // searches, each for ids that those before found
)

// Thread returns the conversation of a message, oldest first: messages linked by References,
// then In-Reply-To, then a base subject where one of the two is a reply (004 section 5). It
// looks in the message's folder, in INBOX, and in the folders for sent and archived mail;
// where the account has a folder with the role \All, in that one instead of the three. A
// message that stands twice, by Message-ID, date and size, is shown once. With q.Chars each
// message comes with what is new in its text.
//
// It searches for the ids and the subject of what it has found until nothing new is named,
// so that the answer is the same from any of its messages. Of a long conversation the newest
// messages are kept. A message that the policy hides is neither shown nor used as a link.
func (m *Client) Thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	b, err := m.open(ctx, "mail thread", ref.Account)
	if err != nil {
		return nil, err
	}
	q.Limit, q.Chars = ThreadLimit.of(q.Limit), ThreadChars.of(q.Chars)
	t, err := b.thread(ctx, ref, q)
	if err == nil {
		t.Issues = append(t.Issues, b.base().Unjudged()...)
	}
	return t, err
}

// maxTexts is how many candidates are fetched together with their texts. Of more, most may
// only have a similar subject.
const maxTexts = 60

func (x *imapBox) thread(ctx context.Context, ref mail.Ref, q ThreadQuery) (*Thread, error) {
	ref, err := x.named(ref)
	if err != nil {
		return nil, err
	}
	var c *conversing
	err = fetch.WithStructure(ctx, func(structure bool) error {
		return x.lend(ctx, ref.Folder, func(s *imap.Session) error {
			c = &conversing{box: x, s: s, structure: structure, opened: map[string]uint32{}, looked: map[string]imap.UIDSet{}, whole: map[mail.Ref]bool{}}
			c.Threading = thread.New(&x.Viewer, q, c.rank)
			return c.run(ref)
		})
	})
	if err != nil {
		if c != nil && c.First != nil {
			c.Link()
			_ = c.texts()
		}
		var e *mail.Error
		if c == nil || len(c.Group) == 0 || !partial(ctx, err) || errors.As(err, &e) && e.Kind == mail.KindConflict {
			return nil, err
		}
		c.Cut, c.Issues = true, append(c.Issues, x.AsError(err).Issue())
	}
	out := c.Threading.Thread()
	out.Folder, out.UIDValidity = ref.Folder, c.opened[ref.Folder]
	return out, nil
}

// conversing is one Thread by IMAP in progress.
type conversing struct {
	*thread.Threading
	box       *imapBox
	s         *imap.Session
	structure bool

	folders []string               // to look in; the last stays open, for what comes after
	opened  map[string]uint32      // UIDVALIDITY of the folders that were opened
	looked  map[string]imap.UIDSet // the messages of each folder that were looked at
	whole   map[mail.Ref]bool      // the messages that were fetched with their texts
}

// rank prefers what is in the folder of all messages; else the account's own copy of what it
// sent, which no other could have written, then what is in INBOX.
func (c *conversing) rank(folder string) int {
	talking, all := c.box.pool.own.Talking()
	switch {
	case all && slices.Contains(talking, folder), !all && c.box.pool.own.Own(folder):
		return 0
	case !all && folder == inbox:
		return 1
	case slices.Contains(talking, folder):
		return 2
	}
	return 3
}

// run finds the messages in rounds: it searches every folder for what the messages found
// until then have or name, all in one write, and fetches what it did not know.
func (c *conversing) run(ref mail.Ref) error {
	if err := c.begin(ref); err != nil {
		return err
	}
	// What the fetch of a round finds may be named by messages that its search did not ask
	// for, so that a conversation is whole only when another search finds no more. All answers
	// of its time, fetched beside it, make that search superfluous. With an inbound list they
	// would not: texts are asked for only when the headers are judged, by one round trip more,
	// and the search leaves in the same write.
	var since time.Time
	if from := c.First.Earliest(); c.Policy.ShowsAll() && c.Now().Sub(from) < answersSince {
		since = from.Add(answersFrom)
	}
	for range maxThreadRounds {
		c.Link()
		ids, subjects := c.Unasked()
		if len(ids)+len(subjects) == 0 {
			return c.read()
		}
		c.box.Looking(0, ref.Folder)
		found, answers, err := c.search(thread.Criteria(ids, subjects), since)
		if err != nil {
			return err
		}
		if err := c.candidates(found, answers); err != nil {
			return err
		}
		if !since.IsZero() && c.allAnswers(answers, since) {
			c.Since = since
		}
		since = time.Time{}
	}
	c.Link()
	c.Cut = true
	return c.read()
}

// begin fetches the message asked for, and lists the folders where they are not known.
func (c *conversing) begin(ref mail.Ref) error {
	own := &c.box.pool.own
	c.box.beforeRoles(c.s)
	var learned func() error
	c.s.Ahead(func() { learned = c.box.learnRoles(c.s) })
	w := c.wanted(1)
	g, err := c.box.one(c.s, ref, w.Items())
	err = cmp.Or(err, learned())
	if err != nil {
		return err
	}
	if !g.Readable {
		return c.NoMessage("")
	}
	c.First, c.Known = g, []*fetch.Message{g}
	c.opened[ref.Folder] = g.Ref.UIDValidity
	c.looked[ref.Folder], c.whole[g.Ref] = imap.UIDs(ref.UID), w.Structure || w.Text
	talking, all := own.Talking()
	c.folders = slices.Clone(talking)
	for _, folder := range []string{ref.Folder, inbox} {
		if !(all && folder == inbox) && !slices.Contains(c.folders, folder) {
			c.folders = append(c.folders, folder)
		}
	}
	return nil
}

// wanted is what is fetched of n candidates. Where the policy hides messages, it judges
// their headers first.
func (c *conversing) wanted(n uint64) fetch.Wanted {
	w := c.Policy.Headers(c.Query.Full)
	w.Dates, w.Thread = true, true
	if c.Policy.ShowsAll() && n <= maxTexts {
		w.Structure, w.Text = c.structure, c.Query.Chars > 0
	}
	return w
}

// candidates fetches the messages that were not looked at before, the newest first, and with
// them the answers, where they are few.
func (c *conversing) candidates(found, answers map[string]imap.UIDSet) error {
	left, rest, n, others := map[string]imap.UIDSet{}, map[string]imap.UIDSet{}, uint64(0), uint64(0)
	for folder, uids := range found {
		left[folder] = uids.Without(c.looked[folder])
		rest[folder] = answers[folder].Without(uids).Without(c.looked[folder])
		n, others = n+left[folder].Count(), others+rest[folder].Count()
	}
	if n == 0 {
		return nil
	}
	w := c.wanted(n)
	head := w
	head.Structure, head.Text = false, false
	for ; ; rest = nil {
		var all fetch.Visits
		ask := func(folder string, set imap.UIDSet, w fetch.Wanted) {
			if len(set) > 0 {
				v := all.To(folder, c.opened[folder])
				v.Requests = append(v.Requests, imap.FetchRequest{UIDs: set, Items: w.Items()})
				c.looked[folder] = c.looked[folder].With(set)
			}
		}
		for _, folder := range c.folders { // the last stays open
			var set imap.UIDSet
			set, left[folder] = left[folder].Split(maxWindow, false)
			if ask(folder, set, w); others <= maxAnswers {
				ask(folder, rest[folder], head)
			}
		}
		if len(all) == 0 {
			return nil
		}
		var got []fetch.Message
		err := c.box.FetchFrom(c.s, all, mail.AdviceListAgain, func(_ int, _ *fetch.Visit, some []fetch.Message) { got = append(got, some...) })
		for _, v := range all {
			err = cmp.Or(err, v.Err)
		}
		for i := range got {
			g := &got[i]
			switch {
			case !g.Readable || !c.Policy.Sees(g):
			case len(c.Known) >= c.box.m.bounds.candidates:
				c.Cut = true // only for visible messages: hidden ones do not count
			default:
				c.Known = append(c.Known, g)
				c.whole[g.Ref] = (w.Structure || w.Text) && found[g.Ref.Folder].Contains(g.Ref.UID)
			}
		}
		if err != nil || c.Cut && c.Policy.ShowsAll() {
			return err
		}
	}
}

// missing are the messages to show whose texts and structures are not here.
func (c *conversing) missing() ([]*fetch.Message, fetch.Wanted) {
	w := c.wanted(0)
	w.Structure, w.Text = c.structure, c.Query.Chars > 0
	return slices.DeleteFunc(c.Shown(), func(g *fetch.Message) bool { return c.whole[g.Ref] || !w.Structure && !w.Text }), w
}

// read fetches the texts and the structures of the messages that are shown, as far as they
// are not here.
func (c *conversing) read() error {
	if missing, w := c.missing(); len(missing) > 0 {
		replaced, err := c.box.FetchAgain(c.s, missing, w)
		if err == nil {
			replaced = missing
		}
		for _, g := range replaced {
			c.whole[g.Ref] = true
		}
		if err != nil {
			return err
		}
	}
	return c.texts()
}

// texts reads what is new in the messages that are shown, of those that are here.
func (c *conversing) texts() error {
	if c.Query.Chars == 0 {
		return nil
	}
	var members []*reading.Reading
	for _, g := range c.Shown() {
		if c.whole[g.Ref] {
			r := reading.Excerpt{Chars: c.Query.Chars, Lines: true}.Begin(c.Viewer, g, c.structure)
			c.Texts[g.Ref], members = r, append(members, r)
			r.Start(*g)
		}
	}
	return reading.Rest(c.s, members)
}

// What tells at once which messages answer those of a conversation: the answers that came
// since shortly before, where they are so few and it was not long ago. Else another search
// for what was found does, which costs a round trip: an answer can have come at any time
// since, so that fewer of them would leave messages out, and the headers of more would cost
// every conversation more bytes than the round trip is worth.
const (
	maxAnswers   = 80
	answersFrom  = -14 * 24 * time.Hour
	answersSince = 400 * 24 * time.Hour
)

// search returns the UIDs that match in each folder and, unless since is zero, those of all
// answers that came from then on. With it come the texts that are missing of the messages
// found until now. A folder that cannot be opened is left out from then on.
func (c *conversing) search(criteria imap.Criteria, since time.Time) (found, answers map[string]imap.UIDSet, refused error) {
	var all fetch.Visits
	for _, folder := range c.folders {
		v := all.To(folder, 0)
		if v.Criteria = append(v.Criteria, criteria); !since.IsZero() {
			v.Criteria = append(v.Criteria, thread.AnswersAfter(since))
		}
	}
	missing, w := c.missing()
	for _, g := range missing {
		if slices.Contains(c.folders, g.Ref.Folder) {
			all.To(g.Ref.Folder, 0).Fetch(g.Ref.UID, w.Items())
		}
	}
	found, answers = map[string]imap.UIDSet{}, map[string]imap.UIDSet{}
	err := all.Start(c.s, func(_ int, v *fetch.Visit) {
		if len(v.Errs) > 1 && v.Errs[1] == nil {
			answers[v.Folder] = v.Found[1]
		}
		switch before := c.opened[v.Folder]; {
		case v.Err != nil && v.Folder != c.First.Ref.Folder:
			c.folders = slices.DeleteFunc(c.folders, func(f string) bool { return f == v.Folder })
			c.Issues = append(c.Issues, mail.Issue{Kind: mail.KindRefused, Stage: imap.StageExamine, Retryable: true,
				Message: fmt.Sprintf("Folder %q was left out: the server did not open it.", v.Folder)})
		case v.Err != nil || v.Errs[0] != nil:
			refused = cmp.Or(refused, v.Err, v.Errs[0])
		case len(v.Found[0])+len(v.Data) > 0 && before != 0 && before != v.Box.UIDValidity: // Courier gives an empty folder a new one each time
			refused = cmp.Or(refused, error(c.MadeAnew(mail.AdviceListAgain)))
		default:
			if found[v.Folder] = v.Found[0]; len(v.Found[0])+len(answers[v.Folder]) > 0 {
				c.opened[v.Folder] = v.Box.UIDValidity
			}
			for _, g := range fetch.Replace(missing, c.box.Window(v.Box, v.Data)) {
				c.whole[g.Ref] = v.Refused == nil
			}
		}
	})
	return found, answers, cmp.Or(err, refused)
}

// allAnswers reports whether all answers of the folders are known: they were few enough to
// be fetched, and the server named those among them that were found otherwise.
func (c *conversing) allAnswers(answers map[string]imap.UIDSet, since time.Time) bool {
	for _, folder := range c.folders {
		named, ok := answers[folder]
		if !ok || len(named.Without(c.looked[folder])) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(c.Known, func(g *fetch.Message) bool {
		return len(g.Links()) > 0 && g.Internal.After(since.AddDate(0, 0, 2)) && slices.Contains(c.folders, g.Ref.Folder) && !answers[g.Ref.Folder].Contains(g.Ref.UID)
	})
}
