package mailbox

import (
	"cmp"
	"errors"
	"slices"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/internal/imap"
)

// visit is what one folder is asked for, and its answers.
type visit struct {
	folder   string
	valid    uint32 // the UIDVALIDITY to which the UIDs of requests belong; 0 means the present one
	criteria []*goimap.SearchCriteria
	requests []imap.FetchRequest

	box   imap.Folder
	err   error           // the server did not open the folder, or it was replaced
	found []goimap.UIDSet // for each of criteria
	errs  []error         // for each of criteria, the server's refusal
	data  []*imapclient.FetchMessageBuffer
	// refused is the server's refusal of requests; data is incomplete then.
	refused error
}

// fetch adds a message to the requests. Messages with the same options share a FETCH; one
// that is in the requests already stays there.
func (v *visit) fetch(uid uint32, opts goimap.FetchOptions) {
	if slices.ContainsFunc(v.requests, func(r imap.FetchRequest) bool { return r.UIDs.Contains(goimap.UID(uid)) }) {
		return
	}
	i := slices.IndexFunc(v.requests, func(r imap.FetchRequest) bool { return sameOptions(r.Options, opts) })
	if i < 0 {
		i = len(v.requests)
		v.requests = append(v.requests, imap.FetchRequest{Options: opts})
	}
	v.requests[i].UIDs.AddNum(goimap.UID(uid))
}

func sameOptions(a, b goimap.FetchOptions) bool {
	return a.Flags == b.Flags && a.InternalDate == b.InternalDate && a.RFC822Size == b.RFC822Size &&
		(a.BodyStructure == nil) == (b.BodyStructure == nil) && slices.EqualFunc(a.BodySection, b.BodySection, sameSection)
}

func sameSection(a, b *goimap.FetchItemBodySection) bool {
	return a.Specifier == b.Specifier && slices.Equal(a.Part, b.Part) && slices.Equal(a.HeaderFields, b.HeaderFields) &&
		(a.Partial == nil) == (b.Partial == nil) && (a.Partial == nil || *a.Partial == *b.Partial)
}

// visits are visits to several folders, one to each.
type visits []*visit

// to is the visit to a folder, a new one at the end where there is none yet.
func (all *visits) to(folder string, valid uint32) *visit {
	for _, v := range *all {
		if v.folder == folder {
			return v
		}
	}
	v := &visit{folder: folder, valid: valid}
	*all = append(*all, v)
	return v
}

// errReplaced says that a folder has another UIDVALIDITY than the one visited.
var errReplaced = errors.New("the folder was replaced")

// start makes the visits in one write, each behind the opening of its folder, and waits for
// them; the last folder stays open. A single folder that is open is not opened again.
// answered, which may be nil, is called when a folder has answered and no error has ended
// the visits. The error is one that ends them all.
func (all visits) start(s *imap.Session, answered func(i int, v *visit)) (broken error) {
	type commands struct {
		opening  []*imap.Examining // all of the same folder
		searches []*imap.Searching
		fetch    *imap.Fetching
	}
	s.Renew()
	box, open := s.Selected()
	open = open && len(all) == 1 && box.Name == all[0].folder && box.UIDValidity == all[0].valid
	// Answers without tags need an EXAMINE between them.
	tagged := slices.ContainsFunc(all, func(v *visit) bool { return len(v.criteria) > 1 }) && s.HasAlready("ESEARCH")
	sent := make([]commands, len(all))
	s.Together(func() {
		for i, v := range all {
			c := &sent[i]
			if !open {
				c.opening = append(c.opening, s.Examine(v.folder))
			}
			for n, criteria := range v.criteria {
				if n > 0 && !tagged {
					c.opening = append(c.opening, s.Examine(v.folder))
				}
				c.searches = append(c.searches, s.Search(criteria))
			}
			if len(v.requests) > 0 {
				c.fetch = s.FetchEach(v.requests)
			}
		}
	})
	for i, v := range all {
		v.box, v.err, v.refused = box, nil, nil
		v.found, v.errs = make([]goimap.UIDSet, len(v.criteria)), make([]error, len(v.criteria))
		for n, o := range slices.Backward(sent[i].opening) {
			b, err := o.Wait()
			if n == 0 {
				v.box = b
			}
			v.err = cmp.Or(err, v.err)
		}
		for n, c := range sent[i].searches {
			v.found[n], v.errs[n] = c.Wait()
		}
		if c := sent[i].fetch; c != nil {
			v.data, v.refused = c.Wait()
		}
		for _, err := range append([]error{v.err, v.refused}, v.errs...) {
			if !refusedByServer(err) {
				broken = cmp.Or(broken, err)
			}
		}
		if v.err == nil && v.valid != 0 && v.valid != v.box.UIDValidity {
			v.err = errReplaced
		}
		if broken == nil && answered != nil {
			answered(i, v)
		}
	}
	return broken
}

// fetchFrom makes visits, and gives what was fetched of each folder to take. Of what a
// server refuses it fetches each message alone, where it has to. A folder that was replaced
// has an error with this advice.
func (x *imapBox) fetchFrom(s *imap.Session, all visits, advice mail.Advice, take func(i int, v *visit, got []fetched)) error {
	err := all.start(s, func(i int, v *visit) {
		switch {
		case v.err == errReplaced:
			v.err = x.madeAnew(advice)
		case v.err == nil && v.refused == nil:
			take(i, v, x.readWindow(v.box, v.data))
		}
	})
	for i, v := range all {
		if err != nil || v.err != nil || v.refused == nil {
			continue
		}
		if v.box, err = s.Examine(v.folder).Wait(); err == nil && v.valid != 0 && v.box.UIDValidity != v.valid {
			v.err = x.madeAnew(advice)
			continue
		}
		var got []fetched
		for _, r := range v.requests {
			if err == nil {
				var some []fetched
				some, err = x.fetchAll(s, r.UIDs, r.Options)
				got = append(got, some...)
			}
		}
		if err == nil {
			take(i, v, got)
		}
	}
	return err
}

// fetchAgain fetches other data of messages, which may be in several folders, and puts it in
// place of what is there. A message whose header does not come stays as it is.
func (x *imapBox) fetchAgain(s *imap.Session, messages []*fetched, w wanted) error {
	var all visits
	for _, g := range messages {
		all.to(g.ref.Folder, g.ref.UIDValidity).fetch(g.ref.UID, w.options())
	}
	err := x.fetchFrom(s, all, mail.AdviceListAgain, func(_ int, v *visit, got []fetched) {
		replace(messages, got)
	})
	for _, v := range all {
		err = cmp.Or(err, v.err)
	}
	return err
}

// replace puts what was fetched of messages in place of what is there, and returns those of
// which something came.
func replace(messages []*fetched, got []fetched) (replaced []*fetched) {
	for _, old := range messages {
		for _, g := range got {
			if g.ref == old.ref && g.readable {
				*old = g
				replaced = append(replaced, old)
			}
		}
	}
	return replaced
}
