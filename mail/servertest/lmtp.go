package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/emersion/go-smtp"
)

// lmtpServer receives mail for the users of a Dovecot by LMTP (RFC 2033) with SMTPUTF8 (RFC
// 6531).
type lmtpServer struct {
	server   *smtp.Server
	listener net.Listener
	served   chan error
}

// serveLMTP listens on a socket, which any process on the machine may use.
func serveLMTP(to *DovecotServer, socket string) (*lmtpServer, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("deliver by LMTP: %w", err)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &lmtpServer{listener: l, served: make(chan error, 1)}
	s.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &lmtpSession{to: to}, nil }))
	s.server.LMTP, s.server.EnableSMTPUTF8, s.server.Domain = true, true, "localhost"
	s.server.ErrorLog = log.New(io.Discard, "", 0) // Postfix logs its answers
	go func() { s.served <- s.server.Serve(l) }()
	return s, nil
}

// stop ends the server after the sessions in progress, which end when the clients are gone.
// s may be nil.
func (s *lmtpServer) stop() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := s.server.Shutdown(ctx)
	_ = s.listener.Close() // the server knows the listener only when Serve has begun
	return errors.Join(err, <-s.served)
}

// lmtpSession is one connection.
type lmtpSession struct {
	to   *DovecotServer
	from string
	rcpt []string
}

func (s *lmtpSession) Reset() { s.from, s.rcpt = "", nil }

func (s *lmtpSession) Logout() error { return nil }

func (s *lmtpSession) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

func (s *lmtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if _, err := s.to.maildirs().user(to); err != nil {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "There is no such user"}
	}
	s.rcpt = append(s.rcpt, to)
	return nil
}

// Data is not called, since LMTPData exists.
func (s *lmtpSession) Data(io.Reader) error { return errors.ErrUnsupported }

func (s *lmtpSession) LMTPData(r io.Reader, status smtp.StatusCollector) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for _, to := range s.rcpt {
		message := bytes.Join([][]byte{
			fmt.Appendf(nil, "Return-Path: <%s>\r\nDelivered-To: %s\r\n", s.from, strings.ToLower(to)), raw,
		}, nil)
		if err := s.to.deliver(to, "", [][]byte{message}); err != nil {
			status.SetStatus(to, &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: err.Error()})
			continue
		}
		status.SetStatus(to, nil)
	}
	return nil
}
