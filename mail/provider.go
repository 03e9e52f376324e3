package mail

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strings"
)

// Provider is what a mail provider's public documentation says about reaching its
// servers. It holds nothing about a person.
type Provider struct {
	ID      string   // short and stable, such as "gmail"
	Name    string   // as people call it
	Domains []string // the domains of its own addresses, in lower case
	MX      []string // what the mail hosts of domains it serves for others end in; empty: it is not recognized by them

	IMAP, POP3, SMTP Endpoint // zero: it has no such server

	// Auth lists how programs may log in, the easiest for a person first. Empty means that no
	// program can: Note says why.
	Auth []Auth
	// AppPassword says that the password for the provider's own pages is not accepted,
	// and a password made for one program is needed. It is of interest with
	// AuthPassword alone.
	AppPassword bool
	// OAuth names the OAuthService that grants access, where Auth has AuthOAuth2. The first
	// provider of a service gives the servers to accounts of which only the service is known.
	OAuth string
	// FilesSent says that the submission server keeps a copy of what it is given in
	// the sender's own folder, so that a copy of ours would be a second one.
	FilesSent bool
	// Border is whose Authentication-Results its mailboxes can believe, and where it writes
	// them. Zero: its format is not known well enough.
	Border Border

	HelpURL string // where the person makes an app password or a registration, or allows access
	Note    string // what a person has to do there or to know, in whole sentences
}

// OAuthService is an authorization server as its public documentation describes it, and the
// value of OAuth.Provider that stands for it. It may serve several providers.
type OAuthService struct {
	Name string // the value of OAuth.Provider

	// The addresses of its endpoints. {tenant} in them stands for the account's tenant.
	AuthURL, TokenURL string
	DeviceURL         string // empty: it grants access to mail by no device code
	Tenant            string // that of accounts without one; empty: it has no tenants

	Scopes       []string          // for reading and sending mail, and for a refresh token
	AuthParams   map[string]string // for the consent page, besides those of the standard
	RedirectHost string            // of the redirection URI; empty: 127.0.0.1
	LoginHint    bool              // its consent page takes the address that needs consent
	SecretInBody bool              // it takes a client secret in the body of a request
	HasSecret    bool              // it gives desktop clients a secret
	Graph        bool              // its tokens are good for Microsoft Graph, where they are asked for
}

// ProviderCustom is the value of OAuth.Provider for an authorization server that the account
// describes itself.
const ProviderCustom = "custom"

// Service returns the account's authorization server, with its tenant in the addresses. The
// slices and maps are not to be changed. The error says what is wrong in o, in lower case.
func (o *OAuth) Service() (OAuthService, error) {
	if o.Provider == ProviderCustom {
		return OAuthService{Name: ProviderCustom, AuthURL: o.AuthURL, TokenURL: o.TokenURL, DeviceURL: o.DeviceURL, Graph: true}, nil
	}
	s := OAuthServiceNamed(o.Provider)
	if s == nil {
		return OAuthService{}, errors.New("its OAuth provider is none of " + strings.Join(OAuthProviders(), ", "))
	}
	tenant := cmp.Or(o.Tenant, s.Tenant)
	if tenant != "" && !validTenant(tenant) {
		return OAuthService{}, errors.New("its OAuth tenant is not valid")
	}
	for _, address := range []*string{&s.AuthURL, &s.TokenURL, &s.DeviceURL} {
		*address = strings.Replace(*address, "{tenant}", tenant, 1)
	}
	return *s, nil
}

// OAuthServiceNamed returns a copy of the service that a value of OAuth.Provider stands for, or
// nil, as for ProviderCustom.
func OAuthServiceNamed(name string) *OAuthService {
	for _, s := range oauthServices {
		if s.Name == name {
			return &s
		}
	}
	return nil
}

// OAuthProviders returns the values of OAuth.Provider, ProviderCustom last.
func OAuthProviders() (names []string) {
	for _, s := range oauthServices {
		names = append(names, s.Name)
	}
	return append(names, ProviderCustom)
}

// ProviderWithOAuth returns the provider whose servers an account has of which only the OAuth
// service is known, or nil.
func ProviderWithOAuth(service string) *Provider {
	return find(func(p *Provider) bool { return service != "" && p.OAuth == service })
}

// Incoming returns the server that accounts of the provider are read from: IMAP,
// else POP3.
func (p *Provider) Incoming() (Protocol, Endpoint) {
	if p.IMAP.IsZero() && !p.POP3.IsZero() {
		return POP3, p.POP3
	}
	return IMAP, p.IMAP
}

// Providers returns the known providers. The caller may keep and change what it
// gets.
func Providers() []Provider {
	all := slices.Clone(providers)
	for i := range all {
		p := &all[i]
		p.Domains, p.MX, p.Auth = slices.Clone(p.Domains), slices.Clone(p.MX), slices.Clone(p.Auth)
		p.Border.IDs, p.Border.Edge, p.Border.Inside = slices.Clone(p.Border.IDs), slices.Clone(p.Border.Edge), slices.Clone(p.Border.Inside)
	}
	return all
}

// find returns the first provider that matches, or nil.
func find(meant func(p *Provider) bool) *Provider {
	all := Providers()
	for i := range all {
		if meant(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// ProviderOf returns the provider whose own addresses are at the domain, or nil.
// The domain is compared as a whole and without regard to case.
func ProviderOf(domain string) *Provider {
	domain = strings.ToLower(strings.TrimSuffix(domain, "."))
	return find(func(p *Provider) bool { return slices.Contains(p.Domains, domain) })
}

// ProviderServing returns the provider that a mail host belongs to, as it stands in
// an MX record of a domain of somebody else, or nil. A DNS answer is not
// authenticated: show a person whose servers these are before a password goes there.
func ProviderServing(mailHost string) *Provider {
	host := strings.ToLower(strings.TrimSuffix(mailHost, "."))
	return find(func(p *Provider) bool {
		return slices.ContainsFunc(p.MX, func(suffix string) bool { return host == suffix || strings.HasSuffix(host, "."+suffix) })
	})
}

func tlsAt(host string, port uint16) Endpoint      { return Endpoint{host, port, TLS} }
func startTLSAt(host string, port uint16) Endpoint { return Endpoint{host, port, StartTLS} }

var byPassword = []Auth{AuthPassword}

var (
	// The shapes are those of headers that these providers write and people publish: Gmail's
	// since 2017 (with ARC), Microsoft's without an authserv-id, as
	// https://learn.microsoft.com/defender-office-365/message-headers-eop-mdo has it. iCloud and
	// Proton write below their Received alone, where nothing proves that they wrote it.
	gmailBorder     = Border{IDs: []string{"mx.google.com"}, Edge: []string{"mx.google.com"}, ARC: true}
	microsoftBorder = Border{IDs: []string{""}, Edge: []string{"*.mail.protection.outlook.com"},
		Inside: []string{"*.prod.outlook.com", "*.prod.exchangelabs.com", "*.outlook.office365.com"}, Net: netip.MustParsePrefix("2603:1080::/25")}
	yahooBorder    = Border{IDs: []string{"*.yahoo.com"}, Edge: []string{"10.*"}, Inside: []string{"*.yahoo.com"}, Net: netip.MustParsePrefix("127.0.0.0/8")}
	fastmailBorder = Border{IDs: []string{"*.messagingengine.com"}, Edge: []string{"*.messagingengine.com"}}
	gmxBorder      = Border{IDs: []string{"gmx.net"}, Edge: []string{"*.gmx.net"}}
	zohoBorder     = Border{IDs: []string{"mx.zohomail.com"}, Edge: []string{"mx.zohomail.com"}}
	zohoEUBorder   = Border{IDs: []string{"mx.zohomail.eu"}, Edge: []string{"mx.zoho.eu", "mx.zohomail.eu"}}
)

// oauthServices is in the order in which help names them.
var oauthServices = []OAuthService{
	{
		Name: "google", AuthURL: "https://accounts.google.com/o/oauth2/v2/auth", TokenURL: "https://oauth2.googleapis.com/token",
		Scopes: []string{"https://mail.google.com/"},
		// Without the first Google sends no refresh token; without the second it sends one
		// only the first time a person agrees.
		AuthParams: map[string]string{"access_type": "offline", "prompt": "consent"},
		LoginHint:  true, SecretInBody: true, HasSecret: true,
	},
	{
		Name: "microsoft", AuthURL: microsoftOAuth + "authorize", TokenURL: microsoftOAuth + "token", DeviceURL: microsoftOAuth + "devicecode", Tenant: "common",
		Scopes: []string{"https://outlook.office.com/IMAP.AccessAsUser.All", "https://outlook.office.com/SMTP.Send",
			"https://outlook.office.com/POP.AccessAsUser.All", "offline_access"},
		// Any port is allowed with this name; with the address only where somebody
		// edited the registration by hand.
		RedirectHost: "localhost", LoginHint: true, SecretInBody: true, Graph: true,
	},
}

const microsoftOAuth = "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/"

// providers is in the order in which an MX record is compared.
var providers = []Provider{
	{
		ID: "gmail", Name: "Gmail", Domains: []string{"gmail.com", "googlemail.com"}, MX: []string{"google.com", "googlemail.com"},
		IMAP: tlsAt("imap.gmail.com", 993), POP3: tlsAt("pop.gmail.com", 995), SMTP: tlsAt("smtp.gmail.com", 465),
		Auth: []Auth{AuthPassword, AuthOAuth2}, AppPassword: true, OAuth: "google", FilesSent: true, Border: gmailBorder,
		HelpURL: "https://myaccount.google.com/apppasswords",
		Note:    "An app password needs 2-Step Verification to be on. Where an administrator has turned app passwords off, use OAuth 2.0 with a client of your own.",
	},
	{
		ID: "microsoft365", Name: "Microsoft 365", MX: []string{"mail.protection.outlook.com", "mx.microsoft"},
		IMAP: tlsAt("outlook.office365.com", 993), POP3: tlsAt("outlook.office365.com", 995), SMTP: startTLSAt("smtp.office365.com", 587),
		Auth: []Auth{AuthOAuth2}, OAuth: "microsoft", FilesSent: true, Border: microsoftBorder,
		HelpURL: "https://portal.azure.com/#view/Microsoft_AAD_RegisteredApps",
		Note:    "Passwords are not accepted from programs: an administrator of the organization registers a client and allows IMAP and authenticated SMTP for the mailbox.",
	},
	{
		ID: "outlook", Name: "Outlook.com",
		Domains: []string{"outlook.com", "hotmail.com", "live.com", "msn.com", "outlook.de", "outlook.fr", "outlook.es", "outlook.it", "hotmail.de", "hotmail.fr",
			"hotmail.es", "hotmail.it", "hotmail.co.uk", "live.de", "live.fr", "live.nl", "live.co.uk"},
		IMAP: tlsAt("outlook.office365.com", 993), POP3: tlsAt("outlook.office365.com", 995), SMTP: startTLSAt("smtp-mail.outlook.com", 587),
		Auth: []Auth{AuthOAuth2}, OAuth: "microsoft", FilesSent: true, Border: microsoftBorder,
		HelpURL: "https://portal.azure.com/#view/Microsoft_AAD_RegisteredApps",
		Note:    "Passwords are not accepted from programs: register a desktop client and give its id. IMAP may have to be turned on in the settings of Outlook.com first.",
	},
	{
		ID: "fastmail", Name: "Fastmail", Domains: []string{"fastmail.com", "fastmail.fm", "fastmail.net", "fastmail.org", "fastmail.de", "fastmail.co.uk", "sent.com", "messagingengine.com"},
		MX:   []string{"messagingengine.com"},
		IMAP: tlsAt("imap.fastmail.com", 993), POP3: tlsAt("pop.fastmail.com", 995), SMTP: tlsAt("smtp.fastmail.com", 465),
		Border: fastmailBorder, Auth: byPassword, AppPassword: true, HelpURL: "https://app.fastmail.com/settings/security/apps",
		Note: "Make an app password with access to mail (IMAP/POP/SMTP).",
	},
	{
		ID: "icloud", Name: "iCloud Mail", Domains: []string{"icloud.com", "me.com", "mac.com"}, MX: []string{"mail.icloud.com"},
		IMAP: tlsAt("imap.mail.me.com", 993), SMTP: startTLSAt("smtp.mail.me.com", 587),
		Auth: byPassword, AppPassword: true, HelpURL: "https://account.apple.com",
		Note: "Make an app-specific password under Sign-In and Security.",
	},
	{
		ID: "yahoo", Name: "Yahoo Mail",
		Domains: []string{"yahoo.com", "ymail.com", "rocketmail.com", "yahoo.co.uk", "yahoo.de", "yahoo.fr", "yahoo.it", "yahoo.es", "yahoo.ca", "yahoo.com.br", "yahoo.com.au", "yahoo.co.in"},
		IMAP:    tlsAt("imap.mail.yahoo.com", 993), POP3: tlsAt("pop.mail.yahoo.com", 995), SMTP: tlsAt("smtp.mail.yahoo.com", 465),
		Border: yahooBorder, Auth: byPassword, AppPassword: true, HelpURL: "https://login.yahoo.com/account/security",
		Note: "Make an app password under Account security.",
	},
	{
		ID: "aol", Name: "AOL Mail", Domains: []string{"aol.com", "aim.com", "aol.de", "aol.co.uk"},
		IMAP: tlsAt("imap.aol.com", 993), POP3: tlsAt("pop.aol.com", 995), SMTP: tlsAt("smtp.aol.com", 465),
		Border: yahooBorder, Auth: byPassword, AppPassword: true, HelpURL: "https://login.aol.com/account/security",
		Note: "Make an app password under Account security.",
	},
	{
		ID: "gmx", Name: "GMX", Domains: []string{"gmx.net", "gmx.de", "gmx.at", "gmx.ch", "gmx.org", "gmx.info", "gmx.eu"}, MX: []string{"gmx.net"},
		IMAP: tlsAt("imap.gmx.net", 993), POP3: tlsAt("pop.gmx.net", 995), SMTP: startTLSAt("mail.gmx.net", 587),
		Border: gmxBorder, Auth: byPassword, HelpURL: "https://hilfe.gmx.net",
		Note: "Allow access by POP3 and IMAP in the settings of GMX first. With two-factor authentication, make an app-specific password.",
	},
	{
		ID: "gmx.com", Name: "GMX (international)", Domains: []string{"gmx.com", "gmx.us", "gmx.co.uk", "gmx.fr", "gmx.es"},
		IMAP: tlsAt("imap.gmx.com", 993), POP3: tlsAt("pop.gmx.com", 995), SMTP: startTLSAt("mail.gmx.com", 587),
		Auth: byPassword, HelpURL: "https://support.gmx.com",
		Note: "Allow access by POP3 and IMAP in the settings of GMX first. With two-factor authentication, make an app-specific password.",
	},
	{
		ID: "web.de", Name: "WEB.DE", Domains: []string{"web.de", "email.de"},
		IMAP: tlsAt("imap.web.de", 993), POP3: tlsAt("pop3.web.de", 995), SMTP: startTLSAt("smtp.web.de", 587),
		Auth: byPassword, HelpURL: "https://hilfe.web.de",
		Note: "Allow access by POP3 and IMAP in the settings of WEB.DE first. With two-factor authentication, make an app-specific password.",
	},
	{
		ID: "t-online", Name: "Telekom Mail", Domains: []string{"t-online.de", "magenta.de"},
		IMAP: tlsAt("secureimap.t-online.de", 993), POP3: tlsAt("securepop.t-online.de", 995), SMTP: tlsAt("securesmtp.t-online.de", 465),
		Auth: byPassword, AppPassword: true, HelpURL: "https://account.idm.telekom.com",
		Note: "Programs log in with a password for mail programs, which is set in the customer account.",
	},
	{
		ID: "posteo", Name: "Posteo", Domains: []string{"posteo.de", "posteo.net", "posteo.org", "posteo.eu", "posteo.at", "posteo.ch"},
		IMAP: tlsAt("posteo.de", 993), POP3: tlsAt("posteo.de", 995), SMTP: tlsAt("posteo.de", 465),
		Auth: byPassword, HelpURL: "https://posteo.de/en/help",
		Note: "Where the additional e-mail account protection is on, programs cannot log in.",
	},
	{
		ID: "mailbox.org", Name: "mailbox.org", Domains: []string{"mailbox.org", "secure.mailbox.org"}, MX: []string{"mailbox.org"},
		IMAP: tlsAt("imap.mailbox.org", 993), POP3: tlsAt("pop3.mailbox.org", 995), SMTP: tlsAt("smtp.mailbox.org", 465),
		Auth: byPassword, HelpURL: "https://kb.mailbox.org",
		Note: "With two-factor authentication, make an application password.",
	},
	{
		ID: "zoho", Name: "Zoho Mail", Domains: []string{"zoho.com", "zohomail.com"},
		IMAP: tlsAt("imap.zoho.com", 993), POP3: tlsAt("pop.zoho.com", 995), SMTP: tlsAt("smtp.zoho.com", 465),
		Border: zohoBorder, Auth: byPassword, HelpURL: "https://accounts.zoho.com/home#security/app_password",
		Note: "Turn IMAP access on in the settings of Zoho Mail first. With two-factor authentication, make an application-specific password.",
	},
	{
		ID: "zoho-org", Name: "Zoho Mail for organizations", MX: []string{"zoho.com"},
		IMAP: tlsAt("imappro.zoho.com", 993), POP3: tlsAt("poppro.zoho.com", 995), SMTP: tlsAt("smtppro.zoho.com", 465),
		Border: zohoBorder, Auth: byPassword, HelpURL: "https://accounts.zoho.com/home#security/app_password",
		Note: "Turn IMAP access on in the settings of Zoho Mail first. With two-factor authentication, make an application-specific password.",
	},
	{
		ID: "zoho.eu", Name: "Zoho Mail (EU)", Domains: []string{"zoho.eu", "zohomail.eu"},
		IMAP: tlsAt("imap.zoho.eu", 993), POP3: tlsAt("pop.zoho.eu", 995), SMTP: tlsAt("smtp.zoho.eu", 465),
		Border: zohoEUBorder, Auth: byPassword, HelpURL: "https://accounts.zoho.eu/home#security/app_password",
		Note: "Turn IMAP access on in the settings of Zoho Mail first. With two-factor authentication, make an application-specific password.",
	},
	{
		ID: "zoho-org.eu", Name: "Zoho Mail for organizations (EU)", MX: []string{"zoho.eu"},
		IMAP: tlsAt("imappro.zoho.eu", 993), POP3: tlsAt("poppro.zoho.eu", 995), SMTP: tlsAt("smtppro.zoho.eu", 465),
		Border: zohoEUBorder, Auth: byPassword, HelpURL: "https://accounts.zoho.eu/home#security/app_password",
		Note: "Turn IMAP access on in the settings of Zoho Mail first. With two-factor authentication, make an application-specific password.",
	},
	{
		ID: "migadu", Name: "Migadu", Domains: []string{"migadu.com"}, MX: []string{"migadu.com"},
		IMAP: tlsAt("imap.migadu.com", 993), POP3: tlsAt("pop.migadu.com", 995), SMTP: tlsAt("smtp.migadu.com", 465),
		Auth: byPassword, HelpURL: "https://www.migadu.com/guides/config.html",
	},
	{
		ID: "ionos.de", Name: "IONOS", MX: []string{"kundenserver.de"},
		IMAP: tlsAt("imap.ionos.de", 993), POP3: tlsAt("pop.ionos.de", 995), SMTP: tlsAt("smtp.ionos.de", 465),
		Auth: byPassword, HelpURL: "https://www.ionos.de/hilfe/e-mail/",
	},
	{
		ID: "proton", Name: "Proton Mail", Domains: []string{"proton.me", "protonmail.com", "protonmail.ch", "pm.me"}, MX: []string{"protonmail.ch"},
		IMAP: startTLSAt("127.0.0.1", 1143), SMTP: startTLSAt("127.0.0.1", 1025),
		Auth: byPassword, AppPassword: true, FilesSent: true, HelpURL: "https://proton.me/mail/bridge",
		Note: "Proton Mail is read through Proton Mail Bridge on this machine. Take the password from Bridge. Its certificate is its own: it is shown, and kept for this account when you agree.",
	},
	{
		ID: "tuta", Name: "Tuta", Domains: []string{"tuta.com", "tuta.io", "tutanota.com", "tutanota.de", "tutamail.com", "keemail.me"}, MX: []string{"tutanota.de"},
		HelpURL: "https://tuta.com/support",
		Note:    "Tuta offers neither IMAP nor POP3, so other programs cannot read it.",
	},
}
