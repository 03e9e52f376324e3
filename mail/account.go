package mail

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// Protocol is how an account's messages are read.
type Protocol string

// The protocols an account can be read with.
const (
	IMAP Protocol = "imap"
	POP3 Protocol = "pop3"
)

// Security is how a connection to a server is protected.
type Security = wire.Security

// TLS is TLS from the first byte, StartTLS an upgrade before login, Plaintext
// no protection at all, which is allowed to a loopback address only.
const (
	TLS       = wire.TLS
	StartTLS  = wire.StartTLS
	Plaintext = wire.Plaintext
)

// Auth is where an account's credential comes from and what kind it is.
type Auth string

// The credential sources.
const (
	AuthPassword Auth = "password" // sealed in the vault
	AuthOAuth2   Auth = "oauth2"   // refresh token sealed in the vault
	AuthHelper   Auth = "helper"   // a command run at start, memory only
	AuthKeyring  Auth = "keyring"  // the system keyring
)

// Mode is what an account may be used for beyond reading.
type Mode string

// The modes are a ladder: each allows what the one before allows. ReadOnly refuses every
// change and every send; Draft allows flags, filing and drafts; Approve also sends, each
// message after a person's word; Reply sends a reply unasked where Policy.Asks has no reason
// to ask; ReadWrite sends what the lists allow.
const (
	ReadOnly  Mode = "RO"
	Draft     Mode = "draft"
	Approve   Mode = "approve"
	Reply     Mode = "reply"
	ReadWrite Mode = "RW"
)

var ladder = []Mode{ReadOnly, Draft, Approve, Reply, ReadWrite}

// allows reports whether m stands at step or above it. A mode that does not exist allows
// nothing.
func (m Mode) allows(step Mode) bool {
	return slices.Index(ladder, m) >= slices.Index(ladder, step)
}

// Destroy is the right to delete messages for good.
type Destroy string

// DestroyUnset is that of an account made before the right existed: ReadWrite and Approve
// delete, and nobody is asked.
const (
	DestroyUnset Destroy = ""
	DestroyOn    Destroy = "on"
	DestroyOff   Destroy = "off"
)

// Codes is what agents see of one-time codes, and of links that log in, in recent messages.
type Codes string

// Codes are masked unless CodesShow; with CodesGive 'mail code' tells one besides. The empty
// Codes is CodesMask.
const (
	CodesMask Codes = "mask"
	CodesGive Codes = "give"
	CodesShow Codes = "show"
)

// Endpoint is one server of an account. The zero Endpoint means there is none.
type Endpoint struct {
	Host     string   `json:"host"`
	Port     uint16   `json:"port"`
	Security Security `json:"security"`
}

// IsZero reports whether the account has no such server.
func (e Endpoint) IsZero() bool { return e.Host == "" }

// Address returns host:port, IPv6 hosts in brackets.
func (e Endpoint) Address() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// Loopback reports whether the host is this machine by its very form: the name
// localhost or a literal loopback address. No name is looked up, so that
// nothing a resolver says can permit plaintext.
func (e Endpoint) Loopback() bool { return wire.Loopback(e.Host) }

// DefaultPort is the port of a service, which is imap, pop3 or smtp, with a protection
// (RFC 8314 section 3, RFC 9051, RFC 1939, RFC 6409). It is 0 for another service.
func DefaultPort(service string, s Security) uint16 {
	if s == TLS {
		return ports[service][0]
	}
	return ports[service][1]
}

// ports are those of each service: with TLS from the beginning, and without.
var ports = map[string][2]uint16{"imap": {993, 143}, "pop3": {995, 110}, "smtp": {465, 587}}

// UsualSecurity is how a connection to a port is protected that is the DefaultPort of a service;
// empty for another port.
func UsualSecurity(port uint16) Security {
	for _, p := range ports {
		switch port {
		case p[0]:
			return TLS
		case p[1]:
			return StartTLS
		}
	}
	return ""
}

func (e Endpoint) validate(what string) error {
	if e.IsZero() {
		return nil
	}
	if len(e.Host) > 253 || strings.ContainsFunc(e.Host, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '/' || r == '@' }) {
		return fmt.Errorf("%s host is not a host name", what)
	}
	if e.Port == 0 {
		return fmt.Errorf("%s port is missing", what)
	}
	switch e.Security {
	case TLS, StartTLS:
	case Plaintext:
		if !e.Loopback() {
			return fmt.Errorf("%s security none is allowed to this machine only: use tls or starttls", what)
		}
	default:
		return fmt.Errorf("%s security must be tls, starttls or none", what)
	}
	return nil
}

// SentCopy says whether a copy of each sent message is put into the Sent folder.
type SentCopy string

// SentAuto leaves the copy to providers that are known to file it themselves;
// the empty SentCopy means the same.
const (
	SentAuto   SentCopy = "auto"
	SentAlways SentCopy = "always"
	SentNever  SentCopy = "never"
)

// Submission is how an account's messages are sent.
type Submission string

// The empty Submission is a submission server (RFC 6409); SubmitGraph is Microsoft Graph, for
// tenants without one.
const SubmitGraph Submission = "graph"

// GraphHost is Microsoft Graph of the public cloud. National clouds have others.
const GraphHost = "graph.microsoft.com"

// OAuth is where and as whom an account gets its tokens (RFC 6749). It holds no
// secret. The zero OAuth means that the account does not use OAuth.
type OAuth struct {
	Provider  string   `json:"provider"` // the name of an OAuthService, or ProviderCustom
	ClientID  string   `json:"client_id"`
	Tenant    string   `json:"tenant,omitempty"`     // of a service that has tenants; empty means the service's default
	AuthURL   string   `json:"auth_url,omitempty"`   // custom only
	TokenURL  string   `json:"token_url,omitempty"`  // custom only
	DeviceURL string   `json:"device_url,omitempty"` // custom only; empty: no device code
	Scopes    []string `json:"scopes,omitempty"`     // empty means the provider's own for mail
}

// IsZero reports whether nothing is set.
func (o OAuth) IsZero() bool { return o.Provider == "" && o.ClientID == "" }

// Equal reports whether both have the same settings.
func (o OAuth) Equal(p OAuth) bool {
	return slices.Equal(o.Scopes, p.Scopes) && o.Provider == p.Provider && o.ClientID == p.ClientID && o.Tenant == p.Tenant &&
		o.AuthURL == p.AuthURL && o.TokenURL == p.TokenURL && o.DeviceURL == p.DeviceURL
}

// AllowList is one direction of an account's allow-list. An entry "@domain"
// matches that domain exactly, "*" everything, any other entry one whole
// address. An enabled empty list allows nothing. A message that matches an entry of
// Verified, which only the inbound list has, is allowed if its sender is verified, whatever
// Entries says.
type AllowList struct {
	Enabled  bool     `json:"enabled"`
	Entries  []string `json:"entries,omitempty"`
	Verified []string `json:"verified,omitempty"`
}

// Timeouts bounds the stages of a connection. Zero means the default.
type Timeouts struct {
	Connect  time.Duration `json:"connect,omitempty"`  // default 30 s: TCP and TLS
	Greeting time.Duration `json:"greeting,omitempty"` // default 15 s: the server's first line
	Socket   time.Duration `json:"socket,omitempty"`   // default 300 s: silence in the middle of an answer
}

// Account is everything about one mailbox but its secret: where it is, how to
// log in, and the policy that holds for it. It carries no credential, so it
// can be printed.
type Account struct {
	Name           string     `json:"name"`
	Email          string     `json:"email"`
	OwnAddresses   []string   `json:"own_addresses,omitempty"` // the person's others, which the account may send as
	Protocol       Protocol   `json:"protocol"`
	IMAP           Endpoint   `json:"imap,omitzero"`
	POP3           Endpoint   `json:"pop3,omitzero"`
	SMTP           Endpoint   `json:"smtp,omitzero"` // also of Microsoft Graph, see Submission
	Submission     Submission `json:"submission,omitempty"`
	DisplayName    string     `json:"display_name,omitempty"` // of the person, for the From field of sent messages
	Username       string     `json:"username"`
	Auth           Auth       `json:"auth"`
	Helper         []string   `json:"helper,omitempty"` // argument vector, AuthHelper only
	OAuth          OAuth      `json:"oauth,omitzero"`   // AuthOAuth2 only
	SentCopy       SentCopy   `json:"sent_copy,omitempty"`
	Mode           Mode       `json:"mode"`
	Destroy        Destroy    `json:"destroy,omitempty"`
	Codes          Codes      `json:"codes,omitempty"`
	AskChanges     *int       `json:"ask_changes,omitempty"` // see Policy.AskChanges; nil, of accounts made before there was that, is as AsksAsUsual
	AllowIn        AllowList  `json:"allow_in"`
	AllowOut       AllowList  `json:"allow_out"`
	AuthServIDs    []string   `json:"authserv_ids,omitempty"`    // whose Authentication-Results are believed; none: what is known of the provider
	SubjectPattern string     `json:"subject_pattern,omitempty"` // RE2; empty means none
	AllowFolders   []string   `json:"allow_folders,omitempty"`   // where messages may be put and changed although they are not the person's own, or are sent from
	HideFolders    []string   `json:"hide_folders,omitempty"`    // invisible with those below them; never INBOX
	ProcessBacklog bool       `json:"process_backlog,omitempty"`
	CAPEM          []byte     `json:"ca_pem,omitempty"` // certificates to trust instead of the system's
	Timeouts       Timeouts   `json:"timeouts,omitzero"`

	FromEnvironment bool `json:"-"` // variables describe it, see EnvironmentAccounts: no command can change it
}

const maxDisplayName = 200 // characters

var accountName = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// ValidAccountName reports whether name can name an account (001, account_id).
func ValidAccountName(name string) bool { return accountName.MatchString(name) }

// Incoming returns the server the account is read from.
func (a *Account) Incoming() Endpoint {
	if a.Protocol == POP3 {
		return a.POP3
	}
	return a.IMAP
}

// Mailbox names the mailbox that the account leads to: edited to another server or user it
// leads to another one.
func (a *Account) Mailbox() string {
	return string(a.Protocol) + " " + a.Incoming().Address() + " " + a.Username
}

// Validate reports the first thing that makes the account unusable or unsafe.
// The message names what to change and never holds a secret.
func (a *Account) Validate() error {
	if !ValidAccountName(a.Name) {
		return errors.New("account name must be 1 to 64 letters, digits, - or _")
	}
	if a.Protocol != IMAP && a.Protocol != POP3 {
		return errors.New("protocol must be imap or pop3")
	}
	if a.Incoming().IsZero() {
		return fmt.Errorf("%s host is missing", a.Protocol)
	}
	for _, e := range []struct {
		what string
		Endpoint
	}{{"imap", a.IMAP}, {"pop3", a.POP3}, {"smtp", a.SMTP}} {
		if err := e.validate(e.what); err != nil {
			return err
		}
	}
	if a.Username == "" || strings.ContainsFunc(a.Username, isControl) {
		return errors.New("username is missing or holds a control character")
	}
	if utf8.RuneCountInString(a.DisplayName) > maxDisplayName || !utf8.ValidString(a.DisplayName) || strings.ContainsFunc(a.DisplayName, unicode.IsControl) {
		return fmt.Errorf("display name is longer than %d characters or holds a control character", maxDisplayName)
	}
	switch {
	case a.Submission != "" && a.Submission != SubmitGraph:
		return errors.New("submission must be by a server or graph")
	case a.Submission == SubmitGraph && !a.grantsGraph():
		return errors.New("sending with Microsoft Graph needs auth oauth2 and a provider of Microsoft's")
	case a.Submission == SubmitGraph && (a.SMTP.IsZero() || a.SMTP.Security == StartTLS):
		return errors.New("sending with Microsoft Graph takes security tls alone")
	}
	for _, own := range a.OwnAddresses {
		if _, ok := NormalAddress(own); !ok {
			return errors.New("an own address is not a mail address")
		}
	}
	switch a.SentCopy {
	case "", SentAuto, SentAlways, SentNever:
	default:
		return errors.New("sent copy must be auto, always or never")
	}
	if err := a.validateAuth(); err != nil {
		return err
	}
	if !slices.Contains(ladder, a.Mode) {
		return errors.New("mode must be RO, draft, approve, reply or RW")
	}
	switch a.Destroy {
	case DestroyUnset, DestroyOn, DestroyOff:
	default:
		return errors.New("destroy must be on or off")
	}
	switch a.Codes {
	case "", CodesMask, CodesGive, CodesShow:
	default:
		return errors.New("codes must be mask, give or show")
	}
	if a.AskChanges != nil && (*a.AskChanges < AsksAsUsual || *a.AskChanges > MaxAskChanges) {
		return fmt.Errorf("ask changes must be %d to %d", AsksAsUsual, MaxAskChanges)
	}
	if err := a.validateFolders(); err != nil {
		return err
	}
	if err := a.validateAuthServIDs(); err != nil {
		return err
	}
	if a.SubjectPattern != "" {
		if _, err := regexp.Compile(a.SubjectPattern); err != nil {
			return fmt.Errorf("subject pattern is not an RE2 expression: %w", err)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// CheckCA reports a CA that holds no certificate. An account without a CA passes.
func (a *Account) CheckCA() error {
	_, err := a.Roots()
	return err
}

// Roots are the authorities that the account's servers are verified against; nil means the
// system's.
func (a *Account) Roots() (*x509.CertPool, error) {
	if len(a.CAPEM) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.CAPEM) {
		return nil, errors.New("the CA file holds no certificate")
	}
	return pool, nil
}

// Directory is where the accounts come from: the vault, or the environment.
// Implementations are safe for concurrent use.
type Directory interface {
	// Accounts returns every account, sorted by name.
	Accounts(ctx context.Context) ([]Account, error)
	// Account returns one account, or an error that matches ErrNoAccount.
	Account(ctx context.Context, name string) (Account, error)
	// Secret returns what the account logs in with, fetched at each call so that nothing keeps
	// it longer than a login takes.
	Secret(ctx context.Context, name string) (Secret, error)
}

// ErrNoAccount is returned by a Directory that does not know the account.
var ErrNoAccount = errors.New("no such account")

// NoAccount is an ErrNoAccount that knows what the caller may have meant.
type NoAccount struct {
	Name  string   // that does not exist
	Known []string // the accounts that the caller may know of
}

// Error implements error.
func (e *NoAccount) Error() string { return ErrNoAccount.Error() + ": " + e.Name }

// Unwrap returns ErrNoAccount.
func (e *NoAccount) Unwrap() error { return ErrNoAccount }

// ErrNotInKeyring says that the keyring has no password for the account.
var ErrNotInKeyring = errors.New("the system keyring has no password for the account")

// ErrNoConsent is returned by a TokenStore for an account whose owner has not
// authorized it yet.
var ErrNoConsent = errors.New("the account is not authorized yet")

// ErrConsentChanged is returned by a TokenStore when an account was authorized again, or
// changed so that it must be, while its refresh token was lent.
var ErrConsentChanged = errors.New("the account's authorization changed meanwhile")

// TokenStore keeps what an account's OAuth 2.0 provider hands out and takes back.
type TokenStore interface {
	// RefreshToken lends the account's refresh token to exchange, alone: while
	// exchange runs no other process on the same store, and no other caller in
	// this one, is lent that account's. exchange may use the network. A rotated
	// token that it returns is durable when RefreshToken returns; the zero Secret
	// keeps the present one. With an error of exchange nothing is stored, and that
	// error is returned. The error matches ErrNoConsent for an account that has no
	// refresh token yet.
	RefreshToken(ctx context.Context, account string, exchange func(ctx context.Context, s OAuthSecrets) (rotated Secret, err error)) error
}

// OAuthSecrets are the secrets of an account with AuthOAuth2, and the consent they belong
// to.
type OAuthSecrets struct {
	ClientSecret Secret // zero for a public client
	RefreshToken Secret
	Consent      string // names the owner's consent that the token descends from
	OAuth        OAuth  // the settings that consent was given for: the token goes nowhere else; zero where the store cannot tell
}
