package admin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/outbox"
)

// accountOptions are the options that account add and account edit share. One that is not
// given changes nothing.
type accountOptions struct {
	Email          string        `json:"email,omitempty" jsonschema:"minLength=3,maxLength=320,example=ann@example.org" jsonschema_description:"The account's own address"`
	OwnAddress     []string      `json:"own-address,omitempty" jsonschema:"maxItems=50,maxLength=320" jsonschema_description:"The person's other addresses, which may be sent from; they replace those there were, an empty one removes them"`
	Protocol       mail.Protocol `json:"protocol,omitempty" jsonschema:"enum=imap,enum=pop3" jsonschema_description:"How mail is read; imap if left out"`
	IMAPHost       string        `json:"imap-host,omitempty" jsonschema:"minLength=1,maxLength=253,example=imap.example.org" jsonschema_description:"IMAP server"`
	IMAPPort       uint16        `json:"imap-port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"IMAP port; 993 for tls and 143 otherwise"`
	IMAPSecurity   mail.Security `json:"imap-security,omitempty" jsonschema:"enum=tls,enum=starttls,enum=none" jsonschema_description:"IMAP protection; none only to this machine"`
	POP3Host       string        `json:"pop3-host,omitempty" jsonschema:"minLength=1,maxLength=253" jsonschema_description:"POP3 server"`
	POP3Port       uint16        `json:"pop3-port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"POP3 port; 995 for tls and 110 otherwise"`
	POP3Security   mail.Security `json:"pop3-security,omitempty" jsonschema:"enum=tls,enum=starttls,enum=none" jsonschema_description:"POP3 protection; none only to this machine"`
	SMTP           string        `json:"smtp,omitempty" jsonschema:"enum=server,enum=graph" jsonschema_description:"How mail is sent: by a submission server, or with Microsoft Graph, for accounts with oauth2 alone"`
	SMTPHost       string        `json:"smtp-host,omitempty" jsonschema:"minLength=1,maxLength=253,example=smtp.example.org" jsonschema_description:"Submission server; none for an account that never sends"`
	SMTPPort       uint16        `json:"smtp-port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"Submission port; 465 for tls and 587 otherwise"`
	SMTPSecurity   mail.Security `json:"smtp-security,omitempty" jsonschema:"enum=tls,enum=starttls,enum=none" jsonschema_description:"Submission protection; none only to this machine"`
	Username       string        `json:"username,omitempty" jsonschema:"minLength=1,maxLength=320" jsonschema_description:"Login name; the address if left out"`
	DisplayName    *string       `json:"display-name,omitempty" jsonschema:"maxLength=200" jsonschema_description:"The person's name, for the From field of sent messages; an empty one removes it"`
	SentCopy       mail.SentCopy `json:"sent-copy,omitempty" jsonschema:"enum=auto,enum=always,enum=never" jsonschema_description:"Whether a copy of each sent message is put into the Sent folder; auto leaves it to providers that do so themselves"`
	Mode           mail.Mode     `json:"mode,omitempty" jsonschema:"enum=RO,enum=draft,enum=approve,enum=reply,enum=RW" jsonschema_description:"RO only reads, draft also flags, files and drafts, approve also sends what a person approved, reply also some replies unasked, RW sends unasked"`
	Destroy        mail.Destroy  `json:"destroy,omitempty" jsonschema:"enum=on,enum=off" jsonschema_description:"Whether messages may be deleted for good, in modes before RW after a person's word; without it there is the trash"`
	Codes          mail.Codes    `json:"codes,omitempty" jsonschema:"enum=mask,enum=give,enum=show" jsonschema_description:"One-time codes, and links that log in, of the last three days: mask hides them from every command, give also tells one to 'mail code', show hides nothing"`
	AskChanges     *int          `json:"ask-changes,omitempty" jsonschema:"minimum=-1,maximum=1000000" jsonschema_description:"How many messages an agent may change within ten minutes, by one command or many, before a person decides; -1 is what is usual: 50, and any number in mode RW"`
	SubjectPattern *string       `json:"subject-pattern,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"RE2 pattern; only messages whose subject matches are visible, an empty one removes it"`
	ProcessBacklog *bool         `json:"process-backlog,omitempty" jsonschema_description:"Whether messages that are in a folder when Postern first looks at it count as new"`
	AuthServID     []string      `json:"authserv-id,omitempty" jsonschema:"maxItems=20,maxLength=255" jsonschema_description:"Names under which the account's own servers write Authentication-Results; none trusts nobody, an empty one the provider's"`
	CAFile         *string       `json:"ca-file,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"File of certificates to trust for this account instead of the system's, an empty one removes them"`
	authOptions
}

// apply sets the options that were given and fills in what follows from them.
func (o *accountOptions) apply(a *mail.Account, d *Deps) error {
	if o.Email != "" {
		if _, err := outbox.ParseAddress(o.Email); err != nil {
			return &discovery.Fault{Code: discovery.ValidationError, Message: "--email is not a mail address: " + err.Error() + "."}
		}
	}
	setIf(&a.Email, o.Email)
	if o.OwnAddress != nil {
		a.OwnAddresses = slices.DeleteFunc(slices.Clone(o.OwnAddress), func(s string) bool { return s == "" })
	}
	if o.AuthServID != nil {
		a.AuthServIDs = slices.DeleteFunc(slices.Clone(o.AuthServID), func(s string) bool { return s == "" })
		if len(a.AuthServIDs) == 0 {
			a.AuthServIDs = nil
		}
	}
	setIf(&a.Protocol, o.Protocol)
	setIf(&a.Username, o.Username)
	setIf(&a.SentCopy, o.SentCopy)
	setIf(&a.Mode, o.Mode)
	if o.Mode != "" { // what an account made before the right could do does not go on in another mode
		a.Destroy = cmp.Or(a.Destroy, mail.DestroyOff)
		a.AskChanges = cmp.Or(a.AskChanges, new(mail.AsksAsUsual))
	}
	a.AskChanges = cmp.Or(o.AskChanges, a.AskChanges)
	setIf(&a.Destroy, o.Destroy)
	setIf(&a.Codes, o.Codes)
	if err := o.applyAuth(a, d); err != nil {
		return err
	}
	if o.SMTP != "" || a.Submission == mail.SubmitGraph {
		o.applySubmission(a)
	}
	for _, e := range []struct {
		service  string
		endpoint *mail.Endpoint
		host     string
		port     uint16
		security mail.Security
	}{{"imap", &a.IMAP, o.IMAPHost, o.IMAPPort, o.IMAPSecurity}, {"pop3", &a.POP3, o.POP3Host, o.POP3Port, o.POP3Security}, {"smtp", &a.SMTP, o.SMTPHost, o.SMTPPort, o.SMTPSecurity}} {
		if setIf(&e.endpoint.Host, e.host); e.service == "smtp" && e.host == "none" { // as init takes it
			*e.endpoint = mail.Endpoint{}
		}
		if !e.endpoint.IsZero() {
			protect(e.endpoint, e.service, e.port, e.security)
		} else if e.port != 0 || e.security != "" {
			return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("--%s-host is missing.", e.service),
				Hint: "A port or security setting needs its host."}
		}
	}
	if a.Username == "" {
		a.Username = a.Email
	}
	if o.DisplayName != nil {
		a.DisplayName = *o.DisplayName
	}
	if o.SubjectPattern != nil {
		a.SubjectPattern = *o.SubjectPattern
	}
	if o.ProcessBacklog != nil {
		a.ProcessBacklog = *o.ProcessBacklog
	}
	if o.CAFile != nil {
		a.CAPEM = nil
		if *o.CAFile != "" {
			pem, err := d.ReadFile(*o.CAFile)
			if err != nil {
				return &discovery.Fault{Code: discovery.ValidationError, Message: "The CA file cannot be read.", Hint: "Check the path and its permissions.", Err: err}
			}
			a.CAPEM = pem
		}
	}
	if err := errors.Join(a.Validate(), a.CheckCA()); err != nil {
		return &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The account is not usable: %s.", err),
			Hint: "Run 'help account add' for what each option takes.", Err: err}
	}
	return nil
}

// applySubmission sets how mail is sent. Microsoft Graph has a host where the submission server
// has one; it is that of the public cloud unless one was chosen.
func (o *accountOptions) applySubmission(a *mail.Account) {
	was := a.Submission
	if o.SMTP == "server" {
		if a.Submission = ""; was == mail.SubmitGraph {
			a.SMTP = mail.Endpoint{}
		}
		return
	}
	if a.Submission = mail.SubmitGraph; was != mail.SubmitGraph {
		a.SMTP = mail.Endpoint{Host: mail.GraphHost}
	}
	a.SMTP.Port = cmp.Or(o.SMTPPort, a.SMTP.Port, 443)
	a.SMTP.Security = cmp.Or(o.SMTPSecurity, a.SMTP.Security, mail.TLS)
}

func setIf[T comparable](field *T, given T) {
	var zero T
	if given != zero {
		*field = given
	}
}

// protect sets the port and the security of a server as given. The port follows
// the security unless somebody chose it.
func protect(e *mail.Endpoint, service string, port uint16, security mail.Security) {
	chosen := e.Port != 0 && e.Port != mail.DefaultPort(service, e.Security)
	e.Security = cmp.Or(security, e.Security, mail.TLS)
	if !chosen {
		e.Port = mail.DefaultPort(service, e.Security)
	}
	setIf(&e.Port, port)
}

// accountNameArgs name the account a command is about.
type accountNameArgs struct {
	Name string `json:"name" acli:"form=account,positional" jsonschema_description:"Account name"`
}

// AccountDetail is an account without any secret.
type AccountDetail struct {
	Name           string          `json:"name"`
	Email          string          `json:"email,omitempty"`
	OwnAddresses   []string        `json:"own_addresses,omitempty"`
	Protocol       mail.Protocol   `json:"protocol"`
	IMAP           mail.Endpoint   `json:"imap,omitzero"`
	POP3           mail.Endpoint   `json:"pop3,omitzero"`
	SMTP           mail.Endpoint   `json:"smtp,omitzero"`
	Submission     mail.Submission `json:"submission,omitempty" jsonschema:"enum=graph"`
	Username       string          `json:"username"`
	DisplayName    string          `json:"display_name,omitempty"`
	SentCopy       mail.SentCopy   `json:"sent_copy"`
	Auth           mail.Auth       `json:"auth"`
	Helper         []string        `json:"helper,omitempty"`
	OAuth          mail.OAuth      `json:"oauth,omitzero"`
	Mode           mail.Mode       `json:"mode"`
	Destroy        string          `json:"destroy" jsonschema:"enum=on,enum=off,enum=before" jsonschema_description:"The right to delete for good; before: the account is older than it, and deletes unasked in the modes approve and RW"`
	Codes          mail.Codes      `json:"codes" jsonschema:"enum=mask,enum=give,enum=show"`
	AskChanges     *int            `json:"ask_changes,omitempty" jsonschema_description:"Where it is not what is usual in the mode"`
	AllowIn        ListShown       `json:"allow_in"`
	AllowOut       ListShown       `json:"allow_out"`
	AllowFolders   []string        `json:"allow_folders,omitempty"`
	HideFolders    []string        `json:"hide_folders,omitempty"`
	SubjectPattern string          `json:"subject_pattern,omitempty"`
	ProcessBacklog bool            `json:"process_backlog"`
	AuthServIDs    []string        `json:"authserv_ids,omitempty"`
	JudgesSenders  bool            `json:"judges_senders" jsonschema_description:"Whether it is known whose word on senders counts: that of authserv_ids, or of the provider"`
	CustomCA       bool            `json:"custom_ca"`
}

// accountBrief is an account without what is usual: a password in the vault, the address as
// login name, copies of sent messages by the provider's ways, no right to delete for good, no
// list that is on.
type accountBrief struct {
	Name           string          `json:"name"`
	Email          string          `json:"email,omitempty"`
	OwnAddresses   []string        `json:"own_addresses,omitempty"`
	IMAP           string          `json:"imap,omitempty"`
	POP3           string          `json:"pop3,omitempty"`
	SMTP           string          `json:"smtp,omitempty"`
	Submission     mail.Submission `json:"submission,omitempty"`
	Username       string          `json:"username,omitempty"`
	DisplayName    string          `json:"display_name,omitempty"`
	SentCopy       mail.SentCopy   `json:"sent_copy,omitempty"`
	Auth           mail.Auth       `json:"auth,omitempty"`
	Helper         []string        `json:"helper,omitempty"`
	OAuth          mail.OAuth      `json:"oauth,omitzero"`
	Mode           mail.Mode       `json:"mode"`
	Destroy        string          `json:"destroy,omitempty"`
	Codes          mail.Codes      `json:"codes,omitempty"`
	AskChanges     *int            `json:"ask_changes,omitempty"`
	AllowIn        string          `json:"allow_in,omitempty"`
	AllowOut       string          `json:"allow_out,omitempty"`
	AllowFolders   []string        `json:"allow_folders,omitempty"`
	HideFolders    []string        `json:"hide_folders,omitempty"`
	SubjectPattern string          `json:"subject_pattern,omitempty"`
	ProcessBacklog bool            `json:"process_backlog,omitempty"`
	AuthServIDs    []string        `json:"authserv_ids,omitempty"`
	JudgesSenders  bool            `json:"judges_senders,omitempty"`
	CustomCA       bool            `json:"custom_ca,omitempty"`
	LeftInKeyring  string          `json:"left_in_keyring,omitempty"`
	answer.Rest
}

func (a *AccountDetail) brief(leftInKeyring string, more *answer.NextAction) accountBrief {
	b := accountBrief{Name: a.Name, Email: a.Email, OwnAddresses: a.OwnAddresses, IMAP: briefEndpoint(a.IMAP), POP3: briefEndpoint(a.POP3), SMTP: briefEndpoint(a.SMTP), Submission: a.Submission, Username: a.Username,
		DisplayName: a.DisplayName, SentCopy: a.SentCopy, Auth: a.Auth, Helper: a.Helper, OAuth: a.OAuth, Mode: a.Mode, Destroy: a.Destroy, Codes: a.Codes, AskChanges: a.AskChanges, AllowIn: a.AllowIn.brief(), AllowOut: a.AllowOut.brief(),
		AllowFolders: a.AllowFolders, HideFolders: a.HideFolders,
		SubjectPattern: a.SubjectPattern, ProcessBacklog: a.ProcessBacklog, AuthServIDs: a.AuthServIDs, JudgesSenders: a.JudgesSenders, CustomCA: a.CustomCA, LeftInKeyring: leftInKeyring, Rest: (&answer.Outcome{}).Rest(more)}
	if b.Username == b.Email {
		b.Username = ""
	}
	if b.SentCopy == mail.SentAuto {
		b.SentCopy = ""
	}
	if b.Destroy == string(mail.DestroyOff) {
		b.Destroy = ""
	}
	if b.Codes == mail.CodesMask {
		b.Codes = ""
	}
	if b.Auth == mail.AuthPassword {
		b.Auth = ""
	}
	if a.Protocol == mail.POP3 {
		b.IMAP = "" // not used
	} else {
		b.POP3 = ""
	}
	return b
}

// briefEndpoint is a server as host:port and its protection; empty for none.
func briefEndpoint(e mail.Endpoint) string {
	if e.IsZero() {
		return ""
	}
	return e.Address() + " " + string(e.Security)
}

// brief is a list in a word, or its entries; empty for one that is off and has none.
func (l ListShown) brief() string {
	switch {
	case l.Enabled && len(l.Entries)+len(l.Verified) == 0:
		return "nobody"
	case l.Enabled && len(l.Verified) > 0:
		return strings.TrimSpace(strings.Join(l.Entries, " ") + " only verified: " + strings.Join(l.Verified, " "))
	case l.Enabled:
		return strings.Join(l.Entries, " ")
	case len(l.Entries)+len(l.Verified) > 0:
		return "off, with " + answer.Count(len(l.Entries)+len(l.Verified), "entry", "entries")
	}
	return ""
}

// ListShown is one allow-list. Verified has the entries that demand a verified sender.
type ListShown struct {
	Enabled  bool     `json:"enabled"`
	Entries  []string `json:"entries"`
	Verified []string `json:"verified,omitempty"`
}

func detailOfAccount(a *mail.Account) AccountDetail {
	p, _ := mail.CompilePolicy(a) // a policy that cannot be made is nil and judges nobody
	asks := a.AskChanges
	if asks != nil && *asks == mail.AsksAsUsual {
		asks = nil
	}
	return AccountDetail{Name: a.Name, Email: a.Email, OwnAddresses: a.OwnAddresses, Protocol: a.Protocol, IMAP: a.IMAP, POP3: a.POP3, SMTP: a.SMTP, Submission: a.Submission,
		Username: a.Username, DisplayName: a.DisplayName, SentCopy: cmp.Or(a.SentCopy, mail.SentAuto),
		Auth: a.Auth, Helper: a.Helper, OAuth: a.OAuth, Mode: a.Mode, Destroy: cmp.Or(string(a.Destroy), "before"), Codes: cmp.Or(a.Codes, mail.CodesMask), AskChanges: asks, AllowIn: shownList(a.AllowIn), AllowOut: shownList(a.AllowOut), AllowFolders: a.AllowFolders, HideFolders: a.HideFolders,
		SubjectPattern: a.SubjectPattern, ProcessBacklog: a.ProcessBacklog, AuthServIDs: a.AuthServIDs, JudgesSenders: p.Judges(), CustomCA: len(a.CAPEM) > 0}
}

func shownList(l mail.AllowList) ListShown {
	return ListShown{l.Enabled, append([]string{}, l.Entries...), l.Verified}
}
