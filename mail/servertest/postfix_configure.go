package servertest

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// The limit Postfix has when nothing is configured.
const postfixSizeLimit = 10_240_000

//go:embed postfix_main.cf.tmpl
var postfixMain string

//go:embed postfix_master.cf.tmpl
var postfixMaster string

var (
	postfixMainTemplate   = template.Must(template.New("main.cf").Option("missingkey=error").Parse(postfixMain))
	postfixMasterTemplate = template.Must(template.New("master.cf").Option("missingkey=error").Parse(postfixMaster))
)

// postfixSettings are the blanks of the configuration templates.
type postfixSettings struct {
	Dir, Token, Owner, Group string
	SASL, Deliver            string
	SMTPUTF8                 bool
	MessageSizeLimit         int64

	Submission, Submissions uint16
}

// configure writes all files the server reads and makes the directories that its
// installation would make.
func (s *PostfixServer) configure(config PostfixConfig) error {
	ports, err := freePorts("127.0.0.1", 2)
	if err != nil {
		return err
	}
	s.SubmissionPort, s.SubmissionsPort = ports[0], ports[1]
	dovecot := config.Dovecot
	set := postfixSettings{
		Dir: s.dir, Token: s.token, Owner: s.programs.owner, Group: s.programs.group,
		SASL: filepath.Join(dovecot.dir, "run", "sasl"), Deliver: filepath.Join(dovecot.dir, "run", "deliver"),
		SMTPUTF8: config.SMTPUTF8, MessageSizeLimit: cmp.Or(config.MessageSizeLimit, postfixSizeLimit),
		Submission: ports[0], Submissions: ports[1],
	}
	if config.SMTPUTF8 {
		set.Deliver = filepath.Join(s.dir, "deliver")
		if s.lmtp, err = serveLMTP(dovecot, set.Deliver); err != nil {
			return err
		}
	}
	var main, master bytes.Buffer
	if err := errors.Join(postfixMainTemplate.Execute(&main, set), postfixMasterTemplate.Execute(&master, set)); err != nil {
		return err
	}
	recipients, err := refusals(config.Refuse)
	if err != nil {
		return err
	}
	chain, key, err := encode(*config.Certificate)
	if err != nil {
		return err
	}
	if err := s.directories(); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"conf/main.cf": main.Bytes(), "conf/master.cf": master.Bytes(),
		"recipients": recipients,
		"server.pem": append(key, chain...),
	} {
		mode := os.FileMode(0o644)
		if name == "server.pem" {
			mode = 0o600
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), content, mode); err != nil {
			return err
		}
		// Each program rereads a file until it is a second old, in case it is still being
		// written.
		before := time.Now().Add(-time.Minute)
		if err := errors.Join(
			os.Chmod(filepath.Join(s.dir, name), mode), // whatever the umask
			os.Chtimes(filepath.Join(s.dir, name), before, before),
		); err != nil {
			return err
		}
	}
	return nil
}

// refusals writes the table of refused recipients.
func refusals(refuse map[string]string) ([]byte, error) {
	var table bytes.Buffer
	for _, recipient := range slices.Sorted(maps.Keys(refuse)) {
		answer := refuse[recipient]
		if recipient == "" || strings.ContainsAny(recipient, " \t\r\n#") || len(answer) < 3 || answer[0] != '4' && answer[0] != '5' ||
			strings.ContainsAny(answer, "\r\n") {
			return nil, fmt.Errorf("%q cannot be refused with %q", recipient, answer)
		}
		fmt.Fprintf(&table, "%s %s\n", recipient, answer)
	}
	return table.Bytes(), nil
}

// directories makes the queue, with the owners and modes that postfix-files(5)
// of the installation lists.
func (s *PostfixServer) directories() error {
	owner, err := user.Lookup(s.programs.owner)
	if err != nil {
		return err
	}
	group, err := user.LookupGroup(s.programs.group)
	if err != nil {
		return err
	}
	uid, errUID := strconv.Atoi(owner.Uid)
	gid, errGID := strconv.Atoi(group.Gid)
	if err := errors.Join(errUID, errGID); err != nil {
		return err
	}
	place := func(name string, uid, gid int, mode os.FileMode) error {
		path := filepath.Join(s.dir, name)
		if err := os.Mkdir(path, 0o700); err != nil && name != "" {
			return err
		}
		return errors.Join(os.Chown(path, uid, gid), os.Chmod(path, mode))
	}
	errs := []error{
		os.Chmod(s.dir, 0o755), place("conf", 0, 0, 0o755), place("queue", 0, 0, 0o755), place("queue/pid", 0, 0, 0o755),
		place("data", uid, 0, 0o700), place("queue/public", uid, gid, 0o710|os.ModeSetgid), place("queue/maildrop", uid, gid, 0o730|os.ModeSticky),
	}
	for _, name := range []string{"active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming", "private", "saved", "trace"} {
		errs = append(errs, place("queue/"+name, uid, 0, 0o700))
	}
	return errors.Join(errs...)
}
