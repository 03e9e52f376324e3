package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/scripted"
	"github.com/postern-mail/postern/vault"
)

// canaries are words that are found wherever they get to.
type canaries map[string]string

func (c canaries) plant(what string) string {
	c[what] = fmt.Sprintf("canary%sQx7", strings.ReplaceAll(what, " ", ""))
	return c[what]
}

// search reports where a canary is in what was written, in any form it is likely to
// have there.
func (c canaries) search(t *testing.T, where string, written []byte) {
	t.Helper()
	for what, word := range c {
		for range finds(where, written, word) {
			t.Errorf("%s: holds the canary of the %s", where, what)
		}
	}
}

// disguises are the forms in which a text could be on a disk or in a log.
func disguises(text string) []string {
	out := []string{text, fmt.Sprintf("%x", text), url.QueryEscape(text), strings.Trim(fmt.Sprintf("%v", []byte(text)), "[]")}
	for shift := range 3 { // wherever it lies in what was encoded
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := e.EncodeToString([]byte(strings.Repeat("x", shift) + text))
			out = append(out, encoded[(shift*8+5)/6:len(encoded)-1])
		}
	}
	return out
}

// finds says whether a text is in some bytes, in any of its forms.
func finds(where string, b []byte, text string) (wrong []string) {
	b = bytes.ToLower(b)
	for _, d := range disguises(text) {
		if bytes.Contains(b, bytes.ToLower([]byte(d))) {
			return []string{fmt.Sprintf("%s holds %q", where, text)}
		}
	}
	return nil
}

// Whatever is done and whatever fails, no secret and no text of a message gets into
// a log, an audit entry, an error, a crash or a file.
func TestNoSecretAndNoBodyIsWrittenDown(t *testing.T) {
	t.Parallel()
	c := canaries{}
	home := t.TempDir()
	dovecot := servertest.Dovecot(t, servertest.Config{Submission: true})
	postfix := servertest.Postfix(t, servertest.PostfixConfig{Dovecot: dovecot, Refuse: map[string]string{"gone@example.org": "550 5.1.1 no such user"}})
	v := newVault(t)
	files := filepath.Join(home, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(files, "body.txt"), c.plant("body file"))
	writeFile(t, filepath.Join(files, "attached.txt"), c.plant("body attached"))
	helper := filepath.Join(home, "helper")
	if err := os.WriteFile(helper, []byte("#!/bin/sh\necho "+c.plant("helper password")+"\necho "+c.plant("helper chatter")+" >&2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	arrived := c.plant("body received")
	dovecot.Deliver(t, "ann@example.org", "INBOX", []byte("From: bob@example.org\r\nSubject: hello\r\nMessage-ID: <r@example.org>\r\n\r\n"+arrived+"\r\n"))

	base := func(name string) mail.Account {
		a := dovecotAccount(dovecot, "ann")
		a.Username = a.Email
		a.Name, a.Mode, a.AllowOut = name, mail.ReadWrite, mail.AllowList{Enabled: true, Entries: []string{"@example.org"}}
		a.SMTP = mail.Endpoint{Host: postfix.Host, Port: postfix.SubmissionPort, Security: mail.StartTLS}
		return a
	}
	v.add(t, base("good"), servertest.Password)
	v.add(t, base("wrong"), c.plant("password"))
	asks := base("asks")
	asks.Mode = mail.Approve
	v.add(t, asks, servertest.Password)
	helped := base("helped")
	helped.Auth, helped.Helper = mail.AuthHelper, []string{helper}
	v.add(t, helped, "")
	token := base("token")
	token.Auth = mail.AuthOAuth2
	// Its provider gives out what nobody may see, and the mail servers refuse it.
	device := fmt.Sprintf(`{"device_code":%q,"user_code":"ABCD-EFGH","verification_uri":"https://127.0.0.1/device","expires_in":60,"interval":1}`, c.plant("device code"))
	granted := fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600,"refresh_token":%q}`, c.plant("access token"), c.plant("rotated token"))
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/device" {
			_, _ = io.WriteString(w, device)
			return
		}
		_, _ = io.WriteString(w, granted)
	}))
	defer provider.Close()
	token.OAuth = mail.OAuth{Provider: "custom", ClientID: "x", AuthURL: provider.URL + "/a", TokenURL: provider.URL + "/t", DeviceURL: provider.URL + "/device"}
	v.add(t, token, c.plant("client secret"))
	opened := v.opened(t, 0)
	if err := opened.SetConsent(t.Context(), "token", mail.NewSecret([]byte(c.plant("refresh token")))); err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"admin key", "agent key"} {
		c[what] = v.text[i][:20]
	}

	environment := append(v.environment(true), "POSTERN_ATTACHMENTS="+files, "HOME="+home, "XDG_CONFIG_HOME="+home, "TMPDIR="+home,
		"FROM_ENVIRONMENT="+c.plant("password from the environment"),
		"MAIL_IMAP_ENVIRON_HOST="+dovecot.Host, fmt.Sprintf("MAIL_IMAP_ENVIRON_PORT=%d", dovecot.IMAPPort), "MAIL_IMAP_ENVIRON_SECURE=false",
		"MAIL_IMAP_ENVIRON_USER=ann", "MAIL_IMAP_ENVIRON_PASS="+c.plant("password of an environment account"))
	body := c.plant("body inline")
	var commands []string
	for _, account := range []string{"good", "wrong", "asks", "helped", "token", "environ", "nosuch"} {
		on := " --account " + account
		commands = append(commands,
			"mail verify"+on, "mail list"+on, "mail send --to bob@example.org --subject s --body '"+body+"'"+on,
			"mail send --to bob@example.org,gone@example.org --subject s --body-file body.txt --attach attached.txt"+on,
			"mail send --to eve@evil.example --subject s --body '"+body+"'"+on,
			"mail send --to 'bob@example.org' --subject s --body '"+body+"' --bodyy '"+body+"'"+on,
			"mail send --to bob@example.org --subject s --body '"+body+"' --dry-run"+on,
			"mail send --to bob@example.org --subject s --body '"+body+"\x07'"+on,
			"mail send --to bob@example.org --subject s --body '"+body,
			"mail draft --to bob@example.org --subject s --body '"+body+"'"+on, "outbox list"+on)
	}
	commands = append(commands, "account authorize token --device", "mail list --account token", "doctor", "account list", "account show token", "account show helped", "audit list --limit 500", "audit verify", "config list",
		"account edit wrong --password-from env:FROM_ENVIRONMENT", "account edit wrong --password-from env:NOT_THERE",
		"account add new --email x@example.org --password-from '"+c["password"]+"'", "account add new --email x@example.org --password-from='"+c["password"]+"'",
		"account add new --email x@example.org --auth oauth2 --oauth-client-secret-from "+c["client secret"],
		"account add new --email x@example.org --auth helper --helper 'nosuchprogram "+c["helper password"]+"'", "policy explain 'mail send --to bob@example.org --subject s --body "+body+"'")
	// run has one process answer commands, and looks at what it writes.
	run := func(lines ...string) [][]byte {
		cmd := program(t, environment, "repl")
		var out, log bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Join(lines, "\n")), &out, &log
		_ = cmd.Run() // many of them fail, on purpose
		answers := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
		if len(answers) != len(lines) {
			t.Fatalf("%d answers to %d commands: %s", len(answers), len(lines), log.Bytes())
		}
		c.search(t, "log", log.Bytes())
		for i, line := range lines {
			c.search(t, "answer to: "+line, answers[i])
		}
		return answers
	}
	run(commands...)
	var list struct {
		Data struct {
			Messages []struct {
				ID string `json:"outbox_id"`
			} `json:"messages"`
		} `json:"data"`
	}
	if err := json.Unmarshal(run("outbox list --limit 500 --full")[0], &list); err != nil || len(list.Data.Messages) < 5 {
		t.Fatalf("%d entries, %v", len(list.Data.Messages), err)
	}
	var ends []string
	for _, m := range list.Data.Messages {
		ends = append(ends, "outbox approve "+m.ID+" --code 00000000", "outbox cancel "+m.ID, "outbox reject "+m.ID)
	}
	run(ends...)

	// A process that is made to die in the middle of a send says where it was, and
	// nothing of what it was doing.
	stalled, port := stalling(t)
	stuck := base("stuck")
	stuck.SMTP = mail.Endpoint{Host: "127.0.0.1", Port: port, Security: mail.Plaintext}
	v.add(t, stuck, servertest.Password)
	crashed(t, c, environment, "mail send --account stuck --to bob@example.org --subject s --body "+body, stalled)
	run("outbox list --state unknown")

	// What lies on the disk afterwards: the vault is sealed, and nothing else holds
	// anything but what the test itself put there.
	own := map[string]bool{helper: true, filepath.Join(files, "body.txt"): true, filepath.Join(files, "attached.txt"): true}
	for _, root := range []string{home, filepath.Dir(v.path)} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || own[path] || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			c.search(t, path, b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := opened.Audit(t.Context(), vault.AuditQuery{Limit: 500})
	if err != nil || len(entries) < len(commands) {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		c.search(t, "audit entry", []byte(fmt.Sprintf("%+v", e)))
	}
}

// stalling is a submission server that takes a whole message and never answers; it
// says when it has one.
func stalling(t *testing.T) (stalled chan struct{}, port uint16) {
	t.Helper()
	stalled = make(chan struct{}, 1)
	inData := false
	return stalled, scripted.Serve(t, scripted.AnswerLines("220 ready\r\n", func(line string) (back string, hangUp bool) {
		switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); {
		case inData && line == ".":
			stalled <- struct{}{}
			return "", false
		case inData:
			return "", false
		case verb == "EHLO":
			return "250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN\r\n", false
		case verb == "AUTH":
			return "235 in\r\n", false
		case verb == "DATA":
			inData = true
			return "354 go on\r\n", false
		}
		return "250 ok\r\n", false
	})).Port
}

// crashed runs a command in a server, and makes the process dump its stacks when
// it is in the middle of it.
func crashed(t *testing.T, c canaries, environment []string, line string, inTheMiddle <-chan struct{}) {
	t.Helper()
	cmd := program(t, append(environment, "GOTRACEBACK=all"), "serve")
	var log bytes.Buffer
	cmd.Stderr = &log
	gatewaytest.Start(t, cmd).Begin(line)
	select {
	case <-inTheMiddle:
	case <-time.After(30 * time.Second):
		t.Fatalf("the command got nowhere: %s", log.Bytes())
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !bytes.Contains(log.Bytes(), []byte("goroutine ")) {
		t.Errorf("no crash to look at: %s", log.Bytes())
	}
	c.search(t, "crash", log.Bytes())
}
