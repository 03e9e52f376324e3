package servertest

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// CyrusTree is the environment variable that names the directory Cyrus IMAP was unpacked below.
// When it is empty, / and /opt/cyrus are looked at.
const CyrusTree = "POSTERN_CYRUS"

// CyrusServer is a running Cyrus IMAP with mailboxes of its own: a server with MOVE and CONDSTORE
// that keeps mail in a way of its own and makes no folder but INBOX by itself. Any user name logs
// in with Password, which this package checks in the place of saslauthd. Its fields do not change;
// its methods are safe for concurrent use.
type CyrusServer struct {
	Host     string // 127.0.0.1
	IMAPPort uint16 // plaintext, without STARTTLS

	*daemon
	logins net.Listener
	busy   sync.WaitGroup
}

// StartCyrus starts a server that lives until Stop. The error matches ErrNotInstalled when there
// is no Cyrus IMAP.
func StartCyrus() (*CyrusServer, error) {
	if err := short(); err != nil {
		return nil, err
	}
	for _, tree := range []string{os.Getenv(CyrusTree), "/", "/opt/cyrus"} {
		bin := filepath.Join(tree, "usr/lib/cyrus/bin")
		if _, err := exec.LookPath(filepath.Join(bin, "master")); tree != "" && err == nil {
			return untilTaken(func() (*CyrusServer, error) { return startCyrus(tree, bin) })
		}
	}
	return nil, fmt.Errorf("cyrus: %w", ErrNotInstalled)
}

func startCyrus(tree, bin string) (*CyrusServer, error) {
	d, err := newDaemon("cyrus", "log")
	if err != nil {
		return nil, err
	}
	s := &CyrusServer{Host: "127.0.0.1", daemon: d}
	token := "cyrus-" + strings.ToLower(rand.Text())
	if err := s.configure(bin, token); err != nil {
		return nil, errors.Join(fmt.Errorf("start cyrus: %w", err), s.Stop())
	}
	cmd := exec.Command(filepath.Join(bin, "master"), "-C", filepath.Join(d.dir, "imapd.conf"), "-M", filepath.Join(d.dir, "cyrus.conf"), "-D", "-p", filepath.Join(d.dir, "pid"))
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	if tree != "/" {
		libraries, _ := filepath.Glob(filepath.Join(tree, "*/*-linux-gnu"))
		more, _ := filepath.Glob(filepath.Join(tree, "usr/lib/*-linux-gnu"))
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+strings.Join(append(libraries, more...), ":"))
	}
	if err := d.start(cmd, greeting(net.JoinHostPort(s.Host, strconv.Itoa(int(s.IMAPPort))), token)); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *CyrusServer) configure(bin, token string) error {
	as, err := mailOwner()
	if err != nil {
		return err
	}
	name, err := user.LookupId(strconv.Itoa(as.uid))
	if err != nil {
		return err
	}
	ports, err := freePorts(s.Host, 1)
	if err != nil {
		return err
	}
	s.IMAPPort = ports[0]
	dir := s.daemon.dir
	if err := errors.Join(os.Chmod(dir, 0o755), as.give(dir)); err != nil {
		return err
	}
	for _, sub := range []string{"conf", "conf/db", "conf/proc", "conf/socket", "conf/log", "spool"} {
		path := filepath.Join(dir, sub)
		if err := errors.Join(os.Mkdir(path, 0o755), as.give(path)); err != nil {
			return err
		}
	}
	conf := filepath.Join(dir, "imapd.conf")
	for path, text := range map[string]string{
		conf: strings.ReplaceAll(`configdirectory: DIR/conf
proc_path: DIR/conf/proc
mboxname_lockpath: DIR/conf/lock
defaultpartition: default
partition-default: DIR/spool
idlesocket: DIR/conf/socket/idle
notifysocket: DIR/conf/socket/notify
lmtpsocket: DIR/conf/socket/lmtp
altnamespace: yes
unixhierarchysep: yes
allowplaintext: yes
autocreate_quota: 0
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: DIR/logins
sasl_mech_list: PLAIN LOGIN
`, "DIR", dir) + "servername: " + token + "\ncyrus_user: " + name.Username + "\n",
		filepath.Join(dir, "cyrus.conf"): fmt.Sprintf(`START {
  recover cmd="%[1]s/ctl_cyrusdb -C %[2]s -r"
}
SERVICES {
  imap cmd="%[1]s/imapd -C %[2]s -U 100" listen="%[3]s:%[4]d" prefork=1 maxchild=100
}
EVENTS {
}
`, bin, conf, s.Host, s.IMAPPort),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	socket := filepath.Join(dir, "logins")
	if s.logins, err = net.Listen("unix", socket); err != nil {
		return err
	}
	s.busy.Go(s.answerLogins)
	return os.Chmod(socket, 0o777)
}

// answerLogins says of each login whether its password is right, as saslauthd does: a name, a
// password, a service and a realm, each behind its length in two bytes.
func (s *CyrusServer) answerLogins() {
	for {
		conn, err := s.logins.Accept()
		if err != nil {
			return
		}
		var fields [4]string
		for i := range fields {
			var n uint16
			if err = cmp.Or(err, binary.Read(conn, binary.BigEndian, &n)); err == nil {
				b := make([]byte, n)
				_, err = io.ReadFull(conn, b)
				fields[i] = string(b)
			}
		}
		answer := "NO"
		if err == nil && fields[1] == Password {
			answer = "OK"
		}
		_, _ = conn.Write(append([]byte{0, byte(len(answer))}, answer...))
		_ = conn.Close()
	}
}

// Stop ends the server with every connection to it, waits until it is gone, and removes what it
// kept. Further calls do nothing.
func (s *CyrusServer) Stop() error {
	if s.logins != nil {
		_ = s.logins.Close()
		s.busy.Wait()
	}
	return s.stop()
}
