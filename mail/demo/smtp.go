package demo

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Message is one message that was sent to addresses outside the demo.
type Message struct {
	From string    // envelope sender
	To   []string  // envelope recipients, without the mailbox's own address
	Raw  []byte    // as it came, with CRLF line ends
	Time time.Time // when it was accepted
}

// submission is one SMTP connection: it submits mail of the demo's user only
// (RFC 6409).
type submission struct {
	store    *store
	password string
	loggedIn bool

	from string
	to   []string
}

var _ smtp.AuthSession = (*submission)(nil)

// AuthMechanisms implements smtp.AuthSession.
func (*submission) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *submission) Auth(mechanism string) (sasl.Server, error) {
	if mechanism != sasl.Plain {
		return nil, smtp.ErrAuthUnknownMechanism
	}
	return sasl.NewPlainServer(func(identity, username, password string) error {
		// Both are always compared, and in constant time.
		user := subtle.ConstantTimeCompare([]byte(username), []byte(Username))
		pass := subtle.ConstantTimeCompare([]byte(password), []byte(s.password))
		if user&pass != 1 || identity != "" && identity != username {
			return smtp.ErrAuthFailed
		}
		s.loggedIn = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *submission) Mail(from string, _ *smtp.MailOptions) error {
	if !s.loggedIn {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	if !strings.EqualFold(from, Username) {
		return &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "Sender address belongs to somebody else"}
	}
	s.from = from
	return nil
}

// Rcpt implements smtp.Session.
func (s *submission) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to) // the server has parsed it
	return nil
}

// Data implements smtp.Session.
func (s *submission) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err // also of a message above the limit, which the server counts
	}
	if !describable(raw) {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "Message has a multipart without a part"}
	}
	return s.store.accept(s.from, s.to, raw)
}

// Reset implements smtp.Session.
func (s *submission) Reset() { s.from, s.to = "", nil }

// Logout implements smtp.Session.
func (*submission) Logout() error { return nil }

// accept takes responsibility for a message: a copy goes to the mailbox when it
// is among the recipients; the message to the others is kept.
func (s *store) accept(from string, to []string, raw []byte) error {
	now := s.now()
	var world []string
	local := false
	for _, address := range to {
		if strings.EqualFold(address, Username) {
			local = true
		} else {
			world = append(world, address)
		}
	}
	if local {
		// The fields that a server adds on delivery (RFC 5321 section 4.4).
		trace := fmt.Sprintf("Return-Path: <%s>\r\nReceived: from localhost by demo.example.org with ESMTPSA;\r\n\t%s\r\n",
			from, now.Format(time.RFC1123Z))
		if err := s.add("INBOX", append([]byte(trace), raw...), now); err != nil {
			return err
		}
	}
	if len(world) > 0 {
		s.mu.Lock()
		s.outgoing = append(s.outgoing, Message{From: from, To: world, Raw: raw, Time: now})
		s.mu.Unlock()
	}
	return nil
}

func (s *store) sent() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := make([]Message, len(s.outgoing))
	for i, m := range s.outgoing {
		m.To = append([]string(nil), m.To...)
		m.Raw = bytes.Clone(m.Raw)
		messages[i] = m
	}
	return messages
}
