package setup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/autoconfig"
)

// askServers shows the servers that were found, and asks for the others.
func (w *wizard) askServers(ctx context.Context) error {
	d, found := &w.draft, w.draft.found
	d.caFile = "" // of other servers, where the person came back
	if p := found.Provider; p != nil {
		if len(p.Auth) == 0 {
			return &discovery.Fault{Code: discovery.ConfigError, Message: p.Note, Hint: "Use an account of another provider."}
		}
		w.ask.Say(p.Name + ". " + p.Note)
	}
	if found.Incoming.IsZero() && found.SMTP.IsZero() {
		w.ask.Say("No servers were found for this address. Your provider's help pages name them.")
		return w.typeServers(ctx)
	}
	text := "Found by " + plain.Line(strings.Join(found.Sources, " and ")) + ":\n  " + serversOf(found)
	if found.Username != d.email {
		text += "\n  login name " + plain.Line(found.Username)
	}
	if len(found.Foreign) > 0 {
		text += "\n\nServers outside your address's own domain: " + strings.Join(found.Foreign, ", ") + ".\nUse them only if you know that your mail is there: your password goes to them."
	}
	w.ask.Say(text)
	if found.Provider == nil || len(found.Foreign) > 0 {
		yes, err := w.ask.Confirm(ctx, "Use these servers?", len(found.Foreign) == 0)
		if err != nil {
			return err
		}
		if !yes {
			d.found = &autoconfig.Settings{Username: d.email}
			return w.typeServers(ctx)
		}
	}
	d.incoming, d.smtp, d.username = found.Incoming, found.SMTP, found.Username
	if found.Protocol != "" {
		d.protocol = found.Protocol
	}
	if !found.Complete() {
		w.ask.Say("That is not all: please fill in the rest.")
		return w.typeServers(ctx)
	}
	return nil
}

// typeServers asks for the missing servers.
func (w *wizard) typeServers(ctx context.Context) (err error) {
	d := &w.draft
	typed := w.typed // the failure is mostly a slip in the earlier input
	if d.incoming.IsZero() {
		kind, err := w.ask.Choose(ctx, "How is the mail read?", "", []choice{{string(mail.IMAP), "IMAP, with folders and search"}, {string(mail.POP3), "POP3, the inbox only"}})
		if err != nil {
			return err
		}
		d.protocol = mail.Protocol(kind)
		if d.incoming, err = w.typeServer(ctx, kind, "", typed.incoming, false); err != nil {
			return err
		}
	}
	if d.smtp.IsZero() {
		if d.smtp, err = w.typeServer(ctx, "smtp", "It sends mail; 'none' if nothing is ever to be sent.", typed.smtp, true); err != nil {
			return err
		}
	}
	return w.askUsername(ctx)
}

func (w *wizard) askUsername(ctx context.Context) (err error) {
	w.draft.username, err = w.ask.Text(ctx, textQuestion{Title: "Login name", Proposed: w.draft.username, Check: func(s string) error {
		if len(s) > 320 || strings.ContainsFunc(s, unicode.IsControl) {
			return errors.New("a login name has at most 320 characters, all of which can be seen")
		}
		return nil
	}})
	return err
}

// typeServer asks for the server of a service, which is imap, pop3 or smtp. before is the
// earlier answer.
func (w *wizard) typeServer(ctx context.Context, service, help string, before mail.Endpoint, optional bool) (e mail.Endpoint, err error) {
	proposed := before.Host
	if before.Port != mail.DefaultPort(service, before.Security) && before.Host != "" {
		proposed = before.Address()
	}
	_, err = w.ask.Text(ctx, textQuestion{Title: strings.ToUpper(service) + " server", Help: strings.TrimSpace(help + " With a port of its own: " + service + ".example.org:1234"), Proposed: proposed, Empty: map[bool]string{true: "none"}[optional], Check: func(s string) (err error) {
		if e = (mail.Endpoint{}); optional && s == "none" {
			return nil
		}
		e.Host, e.Port, err = hostAndPort(s)
		return err
	}})
	if err != nil || e.Host == "" {
		return mail.Endpoint{}, err
	}
	if e.Security = usualSecurity[e.Port]; e.Security == "" {
		port := func(s mail.Security) string {
			if e.Port != 0 {
				return ""
			}
			return ", port " + strconv.Itoa(int(mail.DefaultPort(service, s)))
		}
		choices := []choice{{string(mail.TLS), "TLS from the beginning" + port(mail.TLS)}, {string(mail.StartTLS), "STARTTLS" + port(mail.StartTLS)}}
		if before.Host == e.Host && before.Security == mail.StartTLS {
			choices[0], choices[1] = choices[1], choices[0]
		}
		security, err := w.ask.Choose(ctx, "How is the connection protected?", "", choices)
		if err != nil {
			return mail.Endpoint{}, err
		}
		e.Security = mail.Security(security)
	}
	if e.Port == 0 {
		e.Port = mail.DefaultPort(service, e.Security)
	}
	return e, nil
}

// usualSecurity is how a connection to a port that is registered for mail is protected.
var usualSecurity = map[uint16]mail.Security{993: mail.TLS, 995: mail.TLS, 465: mail.TLS, 143: mail.StartTLS, 110: mail.StartTLS, 587: mail.StartTLS}

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[\pL\pN_]([\pL\pN_-]*[\pL\pN_])?(\.[\pL\pN_]([\pL\pN_-]*[\pL\pN_])?)*\.?\z`)
})

// hostAndPort reads a server as people write it: a host, or a host and a port. The port is 0
// without one.
func hostAndPort(s string) (host string, port uint16, err error) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, 0, nil
	}
	host = s
	if h, p, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, errors.New("a port is a number from 1 to 65535")
		}
		host, port = h, uint16(n)
	}
	_, address := netip.ParseAddr(host)
	if address != nil && (len(host) > 253 || !hostName().MatchString(host) || !strings.ContainsFunc(host, unicode.IsLetter)) {
		return "", 0, errors.New("that is no server, such as imap.example.org or imap.example.org:993")
	}
	return host, port, nil
}
