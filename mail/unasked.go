package mail

import (
	"slices"
	"time"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Ask is why a message waits for a person: a condition of mode reply that it does not meet, or
// what every mode that sends asks about.
type Ask string

// The conditions, in the order in which Asks names those that fail.
const (
	AskNoReply    Ask = "no_reply"
	AskUnverified Ask = "unverified"
	AskUnnamed    Ask = "unnamed"
	AskOld        Ask = "old"
	AskSender     Ask = "sender"
	AskRecipient  Ask = "recipient"
	AskOutsider   Ask = "outsider"
	AskElsewhere  Ask = "elsewhere"
	AskList       Ask = "list"
	AskFile       Ask = "file"
	AskAttachment Ask = "attachment"
	AskLink       Ask = "link"
	AskNumber     Ask = "number"
	AskSubject    Ask = "subject"
	AskCode       Ask = "code"
	AskOften      Ask = "often"
	AskDraft      Ask = "draft" // in every mode that sends
)

// InEveryMode reports whether a message waits for this in every mode that sends, see Waits.
func (a Ask) InEveryMode() bool { return a == AskCode || a == AskDraft }

// Sentence says the condition that failed, as a clause without an end.
func (a Ask) Sentence() string {
	switch a {
	case AskNoReply:
		return "it was not written and sent by one command that replies"
	case AskUnverified:
		return "the sender of the message that it answers is not verified"
	case AskUnnamed:
		return "the message that it answers names no address of the account in To or Cc, so that somebody else may have sent it on"
	case AskOld:
		return "the message that it answers was dated days before it came, so that somebody else may have sent it on"
	case AskSender:
		return "the sender of the message that it answers is not on the inbound list"
	case AskRecipient:
		return "a recipient is not on the inbound list"
	case AskOutsider:
		return "a recipient took no part in the message that it answers"
	case AskElsewhere:
		return "the message that it answers asks for replies elsewhere than to its sender"
	case AskList:
		return "the message that it answers came through a list"
	case AskFile:
		return "its text comes from a file"
	case AskNumber:
		return "it has a long number or a name, as of an account, a wallet or a telephone, that the sender of the message that it answers did not write"
	case AskAttachment:
		return "it carries an attachment"
	case AskLink:
		return "it has a link or an address that the sender of the message that it answers did not write"
	case AskSubject:
		return "its subject is not that of the message that it answers"
	case AskCode:
		return "it carries a code or a link that logs in"
	case AskDraft:
		return "it is a draft that the agent did not write"
	case AskOften:
		return "five replies of the account went unasked within the last hour"
	}
	return "a condition failed that this version does not know"
}

// The bound of AskOften: so many messages of an account go unasked within so long.
const (
	MaxUnasked    = 5
	UnaskedWithin = time.Hour
)

// SendFacts are what Waits judges of a message.
type SendFacts struct {
	ReplyFacts       // in mode reply alone
	Coded       bool // it carries a one-time code, or a link that logs in, of another message
	OthersDraft bool // it is a stored draft that the caller did not write
	Passed      bool // it was judged before, and was to go unasked then: in mode reply nothing but Recipients counts any more
}

// Waits reports whether a message that CheckSend permits waits for a person, and why: in mode
// approve each does, without a reason. Only this function decides that, for every mode, and its
// result depends on nothing but the policy and the facts.
func (p *Policy) Waits(f *SendFacts) (waits bool, asks []Ask) {
	switch {
	case p.RepliesUnasked() && !f.Passed:
		asks = p.Asks(&f.ReplyFacts)
	case p.RepliesUnasked():
		if !p.Knows(f.Recipients) {
			asks = []Ask{AskRecipient}
		}
	case p.NeedsApproval():
		return true, nil
	case f.Coded:
		asks = []Ask{AskCode}
	case f.OthersDraft:
		asks = []Ask{AskDraft}
	}
	return len(asks) > 0, asks
}

// ReplyFacts are what Asks judges of a message.
type ReplyFacts struct {
	Reply         bool           // it was written as an answer, not sent from a stored draft
	Answered      rfc5322.Header // whole, of the message that it answers
	Verified      bool           // and its Verdict is Verified
	Recipients    []string       // of the envelope, plain
	Attachments   int
	FromFile      bool // the text was read from a file
	ForeignNumber bool // what is written has a long number or a handle that the sender of Answered did not write
	ForeignLink   bool // likewise a link or an address
	NewSubject    bool // the subject is not the one that an answer has by itself
	CarriesCode   bool // what leaves has a one-time code, or a link that logs in
	Unasked       int  // messages of the account that went unasked within UnaskedWithin
}

// RepliesUnasked reports whether the account's mode lets replies go unasked for which Asks has
// no reason.
func (p *Policy) RepliesUnasked() bool { return p != nil && p.mode == Reply }

// Asks returns why a message of an account that RepliesUnasked waits for a person; with no
// reason it goes unasked. The result depends on nothing but the policy and the facts.
func (p *Policy) Asks(f *ReplyFacts) []Ask {
	if !f.Reply {
		return []Ask{AskNoReply}
	}
	var asks []Ask
	unless := func(ok bool, a Ask) {
		if !ok {
			asks = append(asks, a)
		}
	}
	h := f.Answered
	senders, fromOK := authors(h)
	answers, answersOK := certainAddresses(h, "Reply-To")
	involved := slices.Clone(senders)
	for _, field := range []string{"To", "Cc"} {
		for _, a := range h.Addresses(field) {
			if normal, ok := NormalAddress(a.Addr); ok {
				involved = append(involved, normal)
			}
		}
	}
	unless(f.Verified, AskUnverified)
	unless(!f.Verified || p.addressed(h), AskUnnamed)
	unless(!f.Verified || timely(h), AskOld)
	unless(fromOK && p.Knows(senders), AskSender)
	unless(len(f.Recipients) > 0 && p.Knows(f.Recipients), AskRecipient)
	unless(!slices.ContainsFunc(f.Recipients, func(r string) bool {
		normal, ok := NormalAddress(r)
		return !ok || p.Owns(r) || !slices.Contains(involved, normal)
	}), AskOutsider)
	unless(answersOK && (len(answers) == 0 || sameSet(answers, senders)), AskElsewhere)
	unless(len(h.Values("List-Id"))+len(h.Values("List-Post")) == 0, AskList)
	unless(!f.FromFile, AskFile)
	unless(f.Attachments == 0, AskAttachment)
	unless(!f.ForeignLink, AskLink)
	unless(!f.ForeignNumber, AskNumber)
	unless(!f.NewSubject, AskSubject)
	unless(!f.CarriesCode, AskCode)
	unless(f.Unasked < MaxUnasked, AskOften)
	return asks
}

// Knows reports whether an entry of the inbound list names each of the addresses, whether that
// list hides messages or not. The entry * names nobody, and neither does @domain an address
// that the domain's server may lead elsewhere.
func (p *Policy) Knows(addrs []string) bool {
	return p != nil && p.in != nil && !slices.ContainsFunc(addrs, func(addr string) bool {
		normal, ok := NormalAddress(addr)
		return !ok || !p.in.names(normal)
	})
}

// sameSet reports whether two lists have the same members.
func sameSet(a, b []string) bool {
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
	}
	return within(a, b) && within(b, a)
}
