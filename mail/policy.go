package mail

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/postern-mail/postern/mail/internal/rfc5322"
)

// Policy is what an account lets its agents see and send (000 section 9). Its
// methods are pure functions of what they are given and safe for concurrent
// use. A nil or zero *Policy shows nothing and sends nothing.
type Policy struct {
	mode    Mode
	destroy Destroy
	codes   Codes
	asks    *int      // see AskChanges
	in, out *entrySet // nil: no address passes
	owns    entrySet  // the account's own addresses
	border  *Border   // nil: nobody judges senders
	subject *regexp.Regexp
	account string // its name
	fixed   bool   // the account comes from the environment

	allowFolders, hideFolders []string // by FolderKey
}

// CompilePolicy makes the policy of an account. An entry or a pattern that cannot be read
// is an error: without it the policy would mean something else.
func CompilePolicy(a *Account) (*Policy, error) {
	if a == nil {
		return nil, errors.New("there is no account to make a policy from")
	}
	p := &Policy{account: a.Name, mode: a.Mode, destroy: a.Destroy, codes: a.Codes, asks: a.AskChanges, fixed: a.FromEnvironment, border: a.border()}
	var err error
	if p.in, err = compileList(a.AllowIn); err != nil {
		return nil, fmt.Errorf("inbound allow-list: %w", err)
	}
	if p.out, err = compileList(a.AllowOut); err != nil {
		return nil, fmt.Errorf("outbound allow-list: %w", err)
	}
	p.owns = entrySet{entries: make(map[string]bool)}
	for _, own := range append([]string{a.Email}, a.OwnAddresses...) {
		if own, ok := NormalAddress(own); ok {
			p.owns.entries[own] = true
		}
	}
	p.allowFolders, p.hideFolders = folderKeys(a.AllowFolders, FolderKey), folderKeys(a.HideFolders, hideKey)
	if a.SubjectPattern != "" {
		if p.subject, err = regexp.Compile(a.SubjectPattern); err != nil {
			return nil, fmt.Errorf("subject pattern is not an RE2 expression: %w", err)
		}
	}
	return p, nil
}

// ShowsAll reports whether the policy hides no message at all, so that no header
// need be looked at: the inbound list is off, or holds * and demands no verified
// sender, and there is no subject pattern.
func (p *Policy) ShowsAll() bool {
	return p != nil && p.in != nil && p.in.all && !p.in.judges && p.subject == nil
}

// Visible reports whether a message with this header may be known to exist. The
// header must be whole as far as From and Subject fields go.
//
// With an inbound list every address of every From field must match an entry. Where one
// that demands a verified sender matches, the message must be Vouched.
// Where another mail program might read the From fields differently, the
// message is not visible, whatever the addresses are: when the strict and the
// tolerant reading name different addresses, and when something in the header
// may be a further From field or hide one. A subject pattern must match every
// Subject field, decoded and cleaned; a message without one has an empty
// subject.
func (p *Policy) Visible(h rfc5322.Header) bool {
	if p == nil || p.in == nil {
		return false
	}
	return p.in.wrote(h, p.Vouched) && p.subjectPasses(h)
}

// VisibleAsOwn is Visible for a message in the account's own folder for sent messages or
// for drafts. It is visible too if own addresses of the account alone are in its From fields: the
// inbound list is about what others write. The subject pattern holds there as well.
func (p *Policy) VisibleAsOwn(h rfc5322.Header) bool {
	return p.Visible(h) || p.Wrote(h) && p.subjectPasses(h)
}

// Wrote reports whether own addresses of the account alone are in the From fields of a header
// that is whole.
func (p *Policy) Wrote(h rfc5322.Header) bool { return p != nil && p.owns.wrote(h, nil) }

// wrote reports whether every address of every From field is on the list, and verified
// where the list demands that.
func (s *entrySet) wrote(h rfc5322.Header, vouched func(rfc5322.Header) bool) bool {
	if s.all && !s.judges {
		return true
	}
	from, ok := authors(h)
	if !ok {
		return false
	}
	demanded := false
	for _, a := range from {
		if !s.matches(a) {
			return false
		}
		demanded = demanded || s.judges && s.demands(a)
	}
	return !demanded || vouched(h)
}

// authors returns the addresses of every From field, normalised. ok is false where there are
// none, and where another mail program might read others.
func authors(h rfc5322.Header) (addrs []string, ok bool) {
	addrs, ok = certainAddresses(h, "From")
	return addrs, ok && len(addrs) > 0
}

// certainAddresses returns the addresses of every field of the name, normalised. ok is false
// where another mail program might read others.
func certainAddresses(h rfc5322.Header, name string) (addrs []string, ok bool) {
	strict, ok := h.StrictAddresses(name)
	tolerant := h.Addresses(name)
	if !ok || len(strict) != len(tolerant) || !h.Certain(name) {
		return nil, false
	}
	for i, addr := range strict {
		a, ok := NormalAddress(addr)
		if b, same := NormalAddress(tolerant[i].Addr); !ok || !same || a != b {
			return nil, false
		}
		addrs = append(addrs, a)
	}
	return addrs, true
}

func (p *Policy) subjectPasses(h rfc5322.Header) bool {
	if p.subject == nil {
		return true
	}
	subjects := h.Values("Subject")
	if len(subjects) == 0 {
		subjects = []string{""}
	}
	for _, s := range subjects {
		if !p.subject.MatchString(rfc5322.DecodeHeader(s)) {
			return false
		}
	}
	return h.Certain("Subject")
}

// Inbound returns the entries of the inbound list, those that demand a verified sender
// among them, sorted, in the form of ValidateEntry. It is nil where there is no list, or
// one that names no senders because everybody is on it.
func (p *Policy) Inbound() []string {
	if p == nil || p.in == nil || p.in.all || p.in.verified["*"] {
		return nil
	}
	all := maps.Clone(p.in.entries)
	maps.Copy(all, p.in.verified)
	return slices.Sorted(maps.Keys(all))
}

// Own returns the account's own addresses in the form in which addresses are compared.
func (p *Policy) Own() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.owns.entries))
}

// Owns reports whether an address is one of the account's own.
func (p *Policy) Owns(addr string) bool {
	normal, ok := NormalAddress(addr)
	return ok && p != nil && p.owns.entries[normal]
}

// The reasons why CheckSend refuses. Each has words in SendRefused.Error, and a hint in
// SendRefusal of commands/internal/answer.
const (
	ReasonReadOnly  = "ro_mode"       // the account only reads
	ReasonDraft     = "draft_mode"    // the account sends nothing
	ReasonAllowList = "whitelist_out" // a recipient is outside the outbound list
	ReasonAddress   = "address"       // a recipient is not a plain address, or there is no recipient
)

// ReasonDestroy is the audit's reason for a deletion that the account does not allow.
const ReasonDestroy = "destroy"

// MayFile reports whether mailboxes of the account may be changed: flags set, messages
// copied, moved or put into the trash, drafts made.
func (p *Policy) MayFile() bool { return p != nil && p.mode.allows(Draft) }

// MaySend reports whether the account's mode allows sending. Where to is CheckSend's to say.
func (p *Policy) MaySend() bool { return p != nil && p.mode.allows(Approve) }

// MayDestroy reports whether messages may be deleted for good, by a person's word where
// DestroyNeedsApproval.
func (p *Policy) MayDestroy() bool {
	return p.MayFile() && (p.destroy == DestroyOn || p.keepsOldRight())
}

// DestroyNeedsApproval reports whether a deletion that MayDestroy permits waits for a
// person. Only this function decides that.
func (p *Policy) DestroyNeedsApproval() bool {
	return p == nil || p.mode != ReadWrite && !p.keepsOldRight()
}

// Account.AskChanges is AsksAsUsual, or 0 to MaxAskChanges messages.
const (
	AsksAsUsual     = -1
	UsualAskChanges = 50 // in every mode below ReadWrite; there is no bound in that
	MaxAskChanges   = 1_000_000
)

// AskChanges returns how many messages a principal may change within AskWithin before a person
// decides about more: 0 to MaxAskChanges, or -1 for any number.
// Only this function decides that; Journal.BeginChange counts.
func (p *Policy) AskChanges() int {
	switch {
	case p == nil:
		return 0
	case p.asks != nil && *p.asks != AsksAsUsual:
		return *p.asks
	case p.mode == ReadWrite:
		return -1
	}
	return UsualAskChanges
}

// UnsubscribeNeedsApproval reports whether leaving a list by a request waits for a person. Only this
// function decides that.
func (p *Policy) UnsubscribeNeedsApproval() bool { return p == nil || p.mode != ReadWrite }

// MasksCodes reports whether one-time codes of recent messages are masked.
func (p *Policy) MasksCodes() bool { return p == nil || p.codes != CodesShow }

// GivesCodes reports whether a masked code may be told once.
func (p *Policy) GivesCodes() bool { return p != nil && p.codes == CodesGive }

// keepsOldRight reports whether the account was made before the right to delete existed, and
// keeps what it could do.
func (p *Policy) keepsOldRight() bool {
	return p.destroy == DestroyUnset && (p.mode == Approve || p.mode == ReadWrite)
}

// SendRefused says why a whole send is refused.
type SendRefused struct {
	Reason     string   // one of the Reason constants
	Account    string   // whose policy it is, empty where there is none
	Recipients []string // the refused ones, as they were given; none for ReasonReadOnly and ReasonDraft
	Fixed      bool     // the account comes from the environment, which gives it nothing to send with
}

func (e *SendRefused) Error() string {
	switch e.Reason {
	case ReasonReadOnly:
		return "nothing is sent: the account is read-only"
	case ReasonDraft:
		return "nothing is sent: the account's mode allows drafts, and no sending"
	case ReasonAllowList:
		return fmt.Sprintf("nothing is sent: the outbound allow-list does not have %d of the recipients", len(e.Recipients))
	case ReasonAddress:
		if len(e.Recipients) == 0 {
			return "nothing is sent: there is no recipient"
		}
		return fmt.Sprintf("nothing is sent: recipients have to be plain addresses such as ann@example.org, and %d of them are not", len(e.Recipients))
	}
	return "nothing is sent: the account's policy refuses it"
}

// CheckSend reports whether a message may go to all of these recipients: to, cc
// and bcc together. Each must be one plain address, without a name, angle
// brackets or white space. One that is not allowed refuses them all. The error
// is a *SendRefused. Whether a permitted send waits for a person is Waits.
func (p *Policy) CheckSend(recipients []string) error {
	switch {
	case p == nil || p.out == nil || !p.MayFile():
		if p == nil {
			return &SendRefused{Reason: ReasonReadOnly}
		}
		return &SendRefused{Reason: ReasonReadOnly, Account: p.account, Fixed: p.fixed}
	case !p.MaySend():
		return &SendRefused{Reason: ReasonDraft, Account: p.account}
	}
	return p.checkRecipients(recipients)
}

// CheckDraft reports whether a draft may be to all of these recipients, of which there may be
// none: a person who sends it trusts that the outbound list was looked at. An account in mode
// draft never sends, and a list that names nobody holds its drafts to nobody. The error is as
// for CheckSend.
func (p *Policy) CheckDraft(recipients []string) error {
	if p == nil || p.out == nil || !p.MayFile() {
		return &SendRefused{Reason: ReasonReadOnly}
	}
	if len(recipients) == 0 || p.mode == Draft && len(p.out.entries) == 0 {
		return nil
	}
	return p.checkRecipients(recipients)
}

func (p *Policy) checkRecipients(recipients []string) error {
	var bad, outside []string
	for _, r := range recipients {
		a, ok := NormalAddress(r)
		switch {
		case !ok:
			bad = append(bad, r)
		case !p.out.reaches(a):
			outside = append(outside, r)
		}
	}
	switch {
	case len(bad) > 0 || len(recipients) == 0:
		return &SendRefused{Reason: ReasonAddress, Recipients: bad}
	case len(outside) > 0:
		return &SendRefused{Reason: ReasonAllowList, Account: p.account, Fixed: p.fixed, Recipients: outside}
	}
	return nil
}

// NeedsApproval reports whether sends wait for a person as a rule. Waits decides about each.
func (p *Policy) NeedsApproval() bool { return p == nil || p.mode != ReadWrite }

// entrySet is a compiled allow-list.
type entrySet struct {
	all      bool            // it is off, or holds *
	entries  map[string]bool // normalised: local@domain or @domain
	verified map[string]bool // likewise, or *: those that demand a verified sender
	judges   bool            // it is not off, and has one of verified
}

func compileList(l AllowList) (*entrySet, error) {
	set := &entrySet{all: !l.Enabled, entries: make(map[string]bool, len(l.Entries)), verified: make(map[string]bool, len(l.Verified))}
	for i, e := range l.Entries {
		n, err := normalEntry(e)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		if n == "*" {
			set.all = true
		}
		set.entries[n] = true
	}
	set.judges = l.Enabled && len(l.Verified) > 0
	for i, e := range l.Verified {
		n, err := normalEntry(e)
		if err != nil {
			return nil, fmt.Errorf("verified entry %d: %w", i+1, err)
		}
		set.verified[n] = true
	}
	return set, nil
}

// demands reports whether mail from a normalised address has to be verified.
func (s *entrySet) demands(addr string) bool {
	return s.verified["*"] || s.verified[addr] || s.verified[addr[strings.LastIndexByte(addr, '@'):]]
}

// matches reports whether a normalised address is on the list.
func (s *entrySet) matches(addr string) bool {
	return s.all || s.demands(addr) || s.entries[addr] || s.entries[addr[strings.LastIndexByte(addr, '@'):]]
}

// reaches is matches for a recipient. A server that takes the domain for its own may
// read a route to elsewhere, a program or a file in the local part (RFC 5321
// appendix C, and what servers did before; the sender rewriting scheme, bounce address
// tags and Exchange's encapsulated addresses): such an address is on the list only by itself.
func (s *entrySet) reaches(addr string) bool {
	return s.all || s.names(addr)
}

// names reports whether an entry other than * has the address. Unlike reaches it does not
// matter whether the list is on.
func (s *entrySet) names(addr string) bool {
	at := strings.LastIndexByte(addr, '@')
	listed := func(e string) bool { return s.entries[e] || s.verified[e] }
	return listed(addr) || listed(addr[at:]) && !leadsElsewhere.MatchString(norm.NFKC.String(addr[:at]))
}

var leadsElsewhere = regexp.MustCompile(`(?i)[%!@:|"\\=#]|\A(?:[-/~.]|imcea[a-z0-9]*-|srs[01][-+])`)

// ValidateEntry returns the one form in which an allow-list entry is kept and
// compared: "*" for everybody, "@domain" for that domain without its
// subdomains, or one address. Letters become lower case, characters NFC, and a
// domain its ASCII form (RFC 5891), so that names that only look alike differ.
// The error does not repeat s.
func ValidateEntry(s string) (normalized string, err error) {
	// An address may have an asterisk, but a person who types one means a pattern, which would
	// never match.
	if s != "*" && strings.Contains(s, "*") {
		return "", errors.New("the entry has an asterisk: only * alone, @domain and whole addresses match")
	}
	return normalEntry(s)
}

func normalEntry(s string) (string, error) {
	if s == "*" {
		return s, nil
	}
	if domain, ok := strings.CutPrefix(s, "@"); ok {
		// A whole address proves the syntax of its domain.
		if n, ok := NormalAddress("a@" + domain); ok {
			return n[1:], nil
		}
		return "", errors.New("the entry is not a domain such as @example.org")
	}
	if n, ok := NormalAddress(s); ok {
		return n, nil
	}
	return "", errors.New("the entry must be *, @domain or one plain address such as ann@example.org")
}

// NormalAddress returns the form in which addresses are compared. ok is false for text that
// is not a plain address, and for an address that would become another one by more than its
// case: a letter outside ASCII that folds to one inside, such as the Kelvin sign.
func NormalAddress(s string) (string, bool) {
	local, domain, ok := rfc5322.SplitAddr(s)
	if !ok {
		return "", false
	}
	composed := norm.NFC.String(local)
	for _, r := range local + composed {
		if r >= utf8.RuneSelf && holdsASCII(norm.NFC.String(string(unicode.ToLower(r)))) {
			return "", false
		}
	}
	domain, ok = normalDomain(domain)
	return norm.NFC.String(strings.ToLower(composed)) + "@" + domain, ok
}

func holdsASCII(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < utf8.RuneSelf })
}

// normalDomain returns a domain's ASCII form in lower case. A label outside
// ASCII must stay one label and become an A-label: full-width letters and the
// ideographic full stop, which IDNA maps to ASCII, are refused.
func normalDomain(domain string) (string, bool) {
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil || len(ascii) > 253 {
		return "", false
	}
	ascii = strings.ToLower(ascii)
	was, is := strings.Split(domain, "."), strings.Split(ascii, ".")
	if len(was) != len(is) {
		return "", false
	}
	for i, label := range is {
		foreign := strings.ContainsFunc(was[i], func(r rune) bool { return r >= utf8.RuneSelf })
		if label == "" || len(label) > 63 || foreign && !strings.HasPrefix(label, "xn--") {
			return "", false
		}
	}
	return ascii, true
}
