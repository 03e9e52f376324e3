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
		d.typing = true
		return nil
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
			d.found, d.typing = &autoconfig.Settings{Username: d.email}, true
			return nil
		}
	}
	d.incoming, d.smtp, d.username = found.Incoming, found.SMTP, found.Username
	if found.Protocol != "" {
		d.protocol = found.Protocol
	}
	if d.typing = !found.Complete(); d.typing {
		w.ask.Say("That is not all: please fill in the rest.")
	}
	return nil
}

// serverSteps ask for the servers that are not known, a question each.
func (w *wizard) serverSteps() []step {
	d, incoming := &w.draft, false
	return []step{
		{do: func(ctx context.Context) error {
			if incoming = d.typing && d.incoming.IsZero(); !incoming {
				return nil
			}
			kind, err := w.ask.Choose(ctx, "How is the mail read?", "", []choice{{string(mail.IMAP), "IMAP, with folders and search"}, {string(mail.POP3), "POP3, the inbox only"}})
			if err == nil {
				d.protocol = mail.Protocol(kind)
			}
			return err
		}},
		{do: func(ctx context.Context) (err error) {
			if incoming {
				d.incoming, err = w.typeServer(ctx, string(d.protocol), "", &w.typed.incoming, false)
			}
			return err
		}},
		{do: func(ctx context.Context) error {
			return w.protect(ctx, string(d.protocol), &d.incoming, &w.typed.incoming)
		}},
		{do: func(ctx context.Context) (err error) {
			if d.typing && d.smtp.IsZero() {
				d.smtp, err = w.typeServer(ctx, "smtp", "It sends mail; 'none' if nothing is ever to be sent.", &w.typed.smtp, true)
			}
			return err
		}},
		{do: func(ctx context.Context) error { return w.protect(ctx, "smtp", &d.smtp, &w.typed.smtp) }},
	}
}

func (w *wizard) askUsername(ctx context.Context) (err error) {
	if !w.draft.typing {
		return nil
	}
	w.draft.username, err = w.ask.Text(ctx, textQuestion{Title: "Login name", Proposed: w.draft.username, Check: func(s string) error {
		if len(s) > 320 || strings.ContainsFunc(s, unicode.IsControl) {
			return errors.New("a login name has at most 320 characters, all of which can be seen")
		}
		return nil
	}})
	return err
}

// typeServer asks for the server of a service, which is imap, pop3 or smtp. typed is the
// earlier answer, and becomes the new one.
func (w *wizard) typeServer(ctx context.Context, service, help string, typed *mail.Endpoint, optional bool) (e mail.Endpoint, err error) {
	proposed := typed.Host
	if typed.Port != 0 && typed.Port != mail.DefaultPort(service, typed.Security) {
		proposed = typed.Address()
	}
	_, err = w.ask.Text(ctx, textQuestion{Title: strings.ToUpper(service) + " server", Help: strings.TrimSpace(help + " With a port of its own: " + service + ".example.org:1234"), Proposed: proposed, Empty: map[bool]string{true: "none"}[optional], Check: func(s string) (err error) {
		if e = (mail.Endpoint{}); optional && s == "none" {
			return nil
		}
		e.Host, e.Port, err = hostAndPort(s)
		return err
	}})
	if err != nil {
		return mail.Endpoint{}, err
	}
	if e.Security = mail.UsualSecurity(e.Port); typed.Host != e.Host {
		typed.Security = e.Security
	}
	typed.Host, typed.Port = e.Host, e.Port
	return e, nil
}

// protect asks how the connection to a server is protected, where its port does not say so.
func (w *wizard) protect(ctx context.Context, service string, e, typed *mail.Endpoint) error {
	if e.Host == "" || e.Security != "" {
		return nil
	}
	port := func(s mail.Security) string {
		if e.Port != 0 {
			return ""
		}
		return ", port " + strconv.Itoa(int(mail.DefaultPort(service, s)))
	}
	choices := []choice{{string(mail.TLS), "TLS from the beginning" + port(mail.TLS)}, {string(mail.StartTLS), "STARTTLS" + port(mail.StartTLS)}}
	if typed.Security == mail.StartTLS {
		choices[0], choices[1] = choices[1], choices[0]
	}
	security, err := w.ask.Choose(ctx, "How is the "+strings.ToUpper(service)+" connection protected?", "", choices)
	if err != nil {
		return err
	}
	if e.Security = mail.Security(security); e.Port == 0 {
		e.Port = mail.DefaultPort(service, e.Security)
	}
	*typed = *e
	return nil
}

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
