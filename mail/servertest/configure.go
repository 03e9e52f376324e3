package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// settings are the blanks of the configuration template.
type settings struct {
	Dir, Token, Listen, Password   string
	Internal, InternalGroup, Login string
	MailUID, MailGID               int
	Submission, ACL, Others        bool
	Capability, Location           string
	Mechanisms                     string
	Special                        []string
	UserChars                      string
	IMAP, IMAPS, POP3, POP3S       uint16
}

// configure writes everything the server reads.
func (s *DovecotServer) configure(config Config, token string) error {
	set := settings{
		Dir: s.dir, Token: token, Listen: "127.0.0.1", Password: Password,
		Submission: config.Submission,
		ACL:        config.ACL,
		Others:     config.Others,
		Mechanisms: "plain login xoauth2 oauthbearer",
		Capability: capability(config),
		UserChars:  userChars(),
		Special:    []string{"Archive", "Drafts", "Junk", "Sent", "Trash"},
	}
	if config.All {
		set.Special = append(set.Special, "All")
	}
	if len(config.Mechanisms) > 0 {
		set.Mechanisms = strings.ToLower(strings.Join(config.Mechanisms, " "))
	}
	switch config.Storage {
	case Maildir:
		// UTF-8 names on disk, so that a folder's path has the test's name for it.
		set.Location = "maildir:~/Maildir:UTF-8"
	case MDBox:
		set.Location = "mdbox:~/mdbox"
	default:
		return fmt.Errorf("no storage %q", config.Storage)
	}
	if err := s.chooseUsers(&set); err != nil {
		return err
	}
	// The server's own users must be able to enter, with any umask.
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"run", "state", "home"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(s.Home, 0o755), s.give(s.Home)); err != nil {
		return err
	}
	if config.Others {
		if err := s.publish("", "board", "Sent"); err != nil {
			return err
		}
	}
	if err := writeOAuth(s.dir, config.Introspection); err != nil {
		return err
	}
	ports, err := config.ports(set.Listen, 4)
	if err != nil {
		return err
	}
	s.IMAPPort, s.IMAPSPort, s.POP3Port, s.POP3SPort = ports[0], ports[1], ports[2], ports[3]
	set.IMAP, set.IMAPS, set.POP3, set.POP3S = ports[0], ports[1], ports[2], ports[3]
	var conf bytes.Buffer
	if err := dovecotTemplate.Execute(&conf, set); err != nil {
		return err
	}
	chain, key, err := encode(*config.Certificate)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"server.crt": chain, "server.key": key, "dovecot.conf": conf.Bytes()} {
		if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// publish makes folders that every user may change, in the public namespace.
func (s *DovecotServer) publish(folders ...string) error {
	public := filepath.Join(s.dir, "public")
	var all error
	for _, folder := range folders {
		dir := public
		if folder != "" {
			dir = filepath.Join(public, "."+folder)
		}
		acl := filepath.Join(dir, "dovecot-acl")
		all = errors.Join(all, os.MkdirAll(dir, 0o700), os.WriteFile(acl, []byte("anyone lrwstipekx\n"), 0o600), s.give(acl), s.give(dir))
	}
	return all
}

// userChars returns the bytes a user name may have: Dovecot's own choice, and
// those of UTF-8 beyond ASCII.
func userChars() string {
	chars := []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567890.-_@")
	for b := 0x80; b <= 0xff; b++ {
		chars = append(chars, byte(b))
	}
	return string(chars)
}

// chooseUsers chooses the users the processes run as: this user, or for root the users that
// come with the program, and nobody for the mail.
func (s *DovecotServer) chooseUsers(set *settings) (err error) {
	if s.mail, err = mailOwner(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		set.Internal, set.InternalGroup, set.Login = "dovecot", "dovecot", "dovenull"
	} else {
		me, err := user.Current()
		if err != nil {
			return err
		}
		group, err := user.LookupGroupId(me.Gid)
		if err != nil {
			return err
		}
		set.Internal, set.InternalGroup, set.Login = me.Username, group.Name, me.Username
	}
	set.MailUID, set.MailGID = s.mail.uid, s.mail.gid
	return nil
}

// give makes the mail's user the owner of a file.
func (s *DovecotServer) give(path string) error { return s.mail.give(path) }

// freePorts returns ports without a listener. They are held all at once, so they differ;
// between here and the server's own bind another process may take one, which the server
// then reports.
func freePorts(host string, n int) ([]uint16, error) {
	var ports []uint16
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, uint16(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
