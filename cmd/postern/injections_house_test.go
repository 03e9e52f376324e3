package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/demo"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
)

// knownPeople are the entries of the inbound list, which hides nobody.
var knownPeople = []string{"@office.example", "tax@books.example", "club@chess.example"}

// known reports whether all of these addresses are entries of knownPeople.
func known(addrs []string) bool {
	return !slices.ContainsFunc(addrs, func(a string) bool {
		return !slices.Contains(knownPeople, a) && !slices.Contains(knownPeople, a[strings.LastIndexByte(a, '@'):])
	})
}

// rehearsal is a house in which one scenario is run.
type rehearsal struct {
	*testHouse
	steps  []scenarioStep            // those that are to be run
	names  map[string]string         // ids, by $1 and so on; $id is the one that was answered last
	said   string                    // the last answer
	boxes  map[string]*letterbox     // by account
	shared *servertest.DovecotServer // where eve's folder is that the account team sees; nil without it
}

// letterbox is an account's mailbox, as its server has it.
type letterbox struct {
	servers *demo.Servers
	c       *imapclient.Client
}

// mailboxes is what there is on the servers.
type mailboxes struct {
	folders map[string]map[string]string // message by folder, and its flags
	sent    [][]string                   // recipients of each message that the submission servers took
	others  int                          // messages in folders that others read
}

// newRehearsal makes a house in a mode, with what stands in the scenario's mailboxes.
func newRehearsal(t *testing.T, mode mail.Mode, s *scenario, shared *servertest.DovecotServer) *rehearsal {
	t.Helper()
	v, remove, err := vault.Temporary(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remove() })
	r := &rehearsal{names: map[string]string{}, boxes: map[string]*letterbox{}}
	accounts := map[string]bool{"demo": true}
	var effects []string
	for _, step := range s.steps {
		kind, rest, _ := strings.Cut(step.text, " ")
		switch {
		case step.kind == "+" && kind == "account":
			accounts[rest] = true
		case step.kind == "+" && kind == "shared":
			if r.shared = shared; shared == nil {
				t.Skip("no server with folders that others read")
			}
		case step.kind == "+" && kind == "extension":
			effects = append(effects, rest)
		}
	}
	for name := range accounts {
		servers := sampleServers(t)
		a := servers.Account()
		a.Name, a.Mode, a.AllowOut = name, mode, mail.AllowList{}
		a.AllowIn, a.AuthServIDs = mail.AllowList{Entries: knownPeople}, []string{"mx.example.org"}
		if err := v.AddAccount(t.Context(), a, servers.Password); err != nil {
			t.Fatal(err)
		}
		r.boxes[name] = newLetterbox(t, servers)
	}
	if r.shared != nil {
		accounts["team"] = true
		user := "ann-" + strings.ToLower(string(mode))
		shared.Share(t, "eve", "Team", "lrwstipekx")
		shared.Deliver(t, user, "INBOX", []byte("From: ann@office.example\r\nSubject: Contract\r\n\r\nSigned today.\r\n"))
		a := dovecotAccount(shared, user)
		a.Name, a.Mode, a.AllowOut = "team", mode, mail.AllowList{}
		if err := v.AddAccount(t.Context(), a, mail.NewSecret([]byte(servertest.Password))); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"POSTERN_ATTACHMENTS=" + t.TempDir()}
	if effects != nil {
		env = append(env, house.ExtensionsVar+"="+r.extensions(t, effects))
	}
	r.testHouse = wired(t)(newProcess(t, env...).house(house.Plan{Profile: gateway.FullProfile(), Extensions: house.WhereNamed,
		Principal: gateway.Principal{Name: "agent"}, Open: func(context.Context) (*vault.Vault, error) { return v, nil }}))
	for account := range accounts {
		r.run(t, "mail list --limit 1 --account "+account) // its ids mean something from now on
	}
	now, messages := time.Now(), 0
	for _, step := range s.steps {
		switch step.kind {
		case "<":
			messages++
			r.put(t, now.Add(time.Duration(messages-100)*time.Second), "$"+strconv.Itoa(messages), step.text)
		case "&":
			if a := r.as(t, gateway.Principal{Name: "admin", Admin: true}, step.text); !a.Success {
				t.Fatalf("%s: %s", step.text, a.raw)
			}
		case "+":
		default:
			r.steps = append(r.steps, step)
		}
	}
	return r
}

// extensions installs an extension for each effect, x-EFFECT, and returns where.
func (r *rehearsal) extensions(t *testing.T, effects []string) (dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program of this scenario is a script")
	}
	above := filepath.Join(t.TempDir(), "of the person")
	for _, d := range []string{filepath.Dir(filepath.Dir(above)), filepath.Dir(above), above} {
		ownDirectory(t, d)
	}
	for _, effect := range effects {
		at := filepath.Join(above, "x-"+effect)
		ownDirectory(t, at)
		ownFile(t, filepath.Join(at, "manifest.json"), fmt.Sprintf(`{"name":"x-%s","summary":"Keep a text","program":"run","effect":%q,"arguments":[{"name":"text","type":"string","positional":true,"required":true,"description":"The text"}],"examples":["x-%[1]s hello"]}`, effect, effect), 0o644)
		ownFile(t, filepath.Join(at, "run"), "#!/bin/sh\ncat >/dev/null\necho '{}'\n", 0o755)
	}
	return above
}

func newLetterbox(t *testing.T, servers *demo.Servers) *letterbox {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(servers.CAPEM)
	c, err := imapclient.DialTLS(servers.IMAPAddr, &imapclient.Options{TLSConfig: &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Login(servers.Username, servers.Password.Reveal()).Wait(); err != nil {
		t.Fatal(err)
	}
	return &letterbox{servers, c}
}

// put delivers a message. The first line of its text says how the account's border judged
// it, and where it stands: [ACCOUNT:]FOLDER; its own messages no border saw.
func (r *rehearsal) put(t *testing.T, at time.Time, name, text string) {
	t.Helper()
	how, text, _ := strings.Cut(text, "\n")
	words := strings.Fields(how)
	account, folder := "demo", "INBOX"
	for _, word := range words[1:] {
		if days, ok := strings.CutSuffix(word, "d"); ok && strings.Trim(days, "0123456789") == "" {
			n, _ := strconv.Atoi(days)
			at = at.AddDate(0, 0, -n)
			continue
		}
		var named bool
		if account, folder, named = strings.Cut(word, ":"); !named {
			account, folder = "demo", word
		}
	}
	header, body, _ := strings.Cut(strings.TrimRight(text, "\n"), "\n\n")
	header = r.fill(header)
	lines := []string{}
	from := ""
	for line := range strings.SplitSeq(header, "\n") {
		if rest, ok := strings.CutPrefix(line, "From:"); ok {
			from = strings.TrimRight(rest[strings.LastIndexByte(rest, '@')+1:], " >;")
		}
	}
	date := at.Format(time.RFC1123Z)
	received := fmt.Sprintf("Received: from mx.%s (mx.%s [192.0.2.7])\n by mx.example.org with ESMTPS id %d; %s", from, from, at.Unix(), date)
	switch words[0] {
	case "genuine":
		lines = append(lines, fmt.Sprintf("Authentication-Results: mx.example.org; dkim=pass header.d=%s;\n spf=pass smtp.mailfrom=%s; dmarc=pass header.from=%s", from, from, from), received)
	case "forged":
		lines = append(lines, fmt.Sprintf("Authentication-Results: mx.example.org; dkim=none; spf=fail smtp.mailfrom=%s;\n dmarc=fail header.from=%s", from, from), received)
	case "unjudged":
		lines = append(lines, received)
	case "own":
	default:
		t.Fatalf("%q is no verdict", words[0])
	}
	lines = append(lines, strings.Split(header, "\n")...)
	for field, value := range map[string]string{"To": demo.Username, "Date": date, "Message-ID": "<" + name[1:] + "." + strconv.FormatInt(at.Unix(), 36) + "@" + from + ">"} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, field+":") }) {
			lines = append(lines, field+": "+value)
		}
	}
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Content-Type:") }) {
		lines = append(lines, "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit")
	}
	raw := strings.ReplaceAll(strings.Join(lines, "\n")+"\n\n"+body+"\n", "\n", "\r\n")
	var flags []imap.Flag
	if folder == "Drafts" {
		flags = append(flags, imap.FlagDraft)
	}
	id := ""
	if folder != "INBOX" {
		_ = r.boxes[account].c.Create(folder, nil).Wait() // it may exist
		r.run(t, "mail list --limit 1 --account "+account+" --folder "+folder)
		id = folder + "/"
	}
	id += strconv.Itoa(int(r.boxes[account].append(t, folder, raw, at, flags)))
	if len(r.boxes) > 1 {
		id = account + ":" + id
	}
	r.names[name] = id
}

func (b *letterbox) append(t *testing.T, folder, raw string, at time.Time, flags []imap.Flag) imap.UID {
	t.Helper()
	a := b.c.Append(folder, int64(len(raw)), &imap.AppendOptions{Time: at, Flags: flags})
	if _, err := a.Write([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := a.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return data.UID
}

// state is what there is on the servers now.
func (r *rehearsal) state(t *testing.T) *mailboxes {
	t.Helper()
	now := &mailboxes{folders: map[string]map[string]string{}}
	if r.shared != nil {
		now.others = len(r.shared.Files(t, "eve"))
	}
	for account, b := range r.boxes {
		for _, m := range b.servers.Outgoing() {
			now.sent = append(now.sent, m.To)
		}
		list, err := b.c.List("", "*", nil).Collect()
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range list {
			if slices.Contains(folder.Attrs, imap.MailboxAttrNoSelect) {
				continue
			}
			messages := map[string]string{}
			selected, err := b.c.Select(folder.Mailbox, &imap.SelectOptions{ReadOnly: true}).Wait()
			if err != nil {
				t.Fatal(err)
			}
			if selected.NumMessages > 0 {
				fetched, err := b.c.Fetch(imap.SeqSet{imap.SeqRange{Start: 1}}, &imap.FetchOptions{InternalDate: true, Flags: true, RFC822Size: true}).Collect()
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range fetched {
					slices.Sort(m.Flags)
					messages[fmt.Sprint(m.InternalDate, m.RFC822Size)] = fmt.Sprint(m.Flags)
				}
			}
			now.folders[account+":"+folder.Mailbox] = messages
		}
	}
	return now
}

// lost reports whether a message that is not a draft was somewhere and is nowhere.
func (before *mailboxes) lost(after *mailboxes) bool {
	there := map[string]bool{}
	for _, messages := range after.folders {
		for m := range maps.Keys(messages) {
			there[m] = true
		}
	}
	for _, messages := range before.folders {
		for m, flags := range messages {
			if !there[m] && !strings.Contains(flags, `\Draft`) {
				return true
			}
		}
	}
	return false
}
