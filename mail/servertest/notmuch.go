package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// NotmuchIndex is what the mail reader notmuch makes of a Maildir. It is safe
// for concurrent use.
type NotmuchIndex struct{ config string }

// NotmuchMessage is a message as notmuch shows it: all that is encoded is
// decoded, and all text is UTF-8.
type NotmuchMessage struct {
	Headers     map[string]string // Subject, From, To, Cc, Reply-To, Date and the like, where they are there
	Text        string            // of the parts that are text/plain, one after another; with them those of messages within
	HTML        string            // of the parts that are text/html
	Attachments []string          // file names
}

// Notmuch has notmuch read a Maildir, such as WriteMaildir and
// [DovecotServer.Export] make. The Maildir stays as it is.
func Notmuch(t testing.TB, maildir string) *NotmuchIndex {
	t.Helper()
	Check(t, installed("notmuch"))
	dir := t.TempDir()
	n := &NotmuchIndex{config: filepath.Join(dir, "config")}
	config := "[database]\npath=" + dir + "\nmail_root=" + maildir + "\n[user]\nprimary_email=nobody@example.org\n" +
		"[new]\ntags=\n[maildir]\nsynchronize_flags=false\n[search]\nexclude_tags=\n"
	if err := os.WriteFile(n.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.run("new", "--no-hooks", "--quiet"); err != nil {
		t.Fatal(err)
	}
	return n
}

// installed returns an error that matches ErrNotInstalled where one of the
// programs is missing.
func installed(programs ...string) error {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s: %w", name, ErrNotInstalled)
		}
	}
	return nil
}

func (n *NotmuchIndex) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "notmuch", args...)
	cmd.Env = []string{"NOTMUCH_CONFIG=" + n.config, "HOME=" + filepath.Dir(n.config), "LANG=C.UTF-8", "TZ=UTC", "PATH=/usr/bin:/bin"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("notmuch %s: %w: %s", args[0], err, errs.Bytes())
	}
	return out, nil
}

// Threads returns the Message-IDs of all messages, without angle brackets, in
// groups that are one conversation each: the group with the oldest message
// first, and in each an answer anywhere after what it answers. A message without
// a Message-ID has one that notmuch gave it.
func (n *NotmuchIndex) Threads(t testing.TB) [][]string {
	t.Helper()
	out, err := n.run("show", "--format=json", "--body=false", "--sort=oldest-first", "*")
	if err != nil {
		t.Fatal(err)
	}
	var threads []json.RawMessage
	if err := json.Unmarshal(out, &threads); err != nil {
		t.Fatalf("notmuch show: %v", err)
	}
	groups := make([][]string, len(threads))
	for i, thread := range threads {
		if groups[i], err = walk(nil, thread); err != nil {
			t.Fatalf("notmuch show: %v", err)
		}
	}
	return groups
}

// walk appends the Message-IDs of a list of pairs: a message, and the list of
// its answers.
func walk(ids []string, list json.RawMessage) ([]string, error) {
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal(list, &pairs); err != nil {
		return nil, err
	}
	for _, pair := range pairs {
		var message *struct{ ID string }
		if err := json.Unmarshal(pair[0], &message); err != nil {
			return nil, err
		}
		if message != nil {
			ids = append(ids, message.ID)
		}
		var err error
		if ids, err = walk(ids, pair[1]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Show returns the message with this Message-ID, with or without its angle
// brackets.
func (n *NotmuchIndex) Show(t testing.TB, messageID string) NotmuchMessage {
	t.Helper()
	// Quotes are doubled within quotes.
	query := `id:"` + strings.ReplaceAll(bareID(messageID), `"`, `""`) + `"`
	out, err := n.run("show", "--format=json", "--entire-thread=false", "--include-html", query)
	if err != nil {
		t.Fatal(err)
	}
	var all []notmuchShown
	if err := findShown(&all, out); err != nil || len(all) != 1 {
		t.Fatalf("notmuch shows %d messages with %s (%v)", len(all), messageID, err)
	}
	m := NotmuchMessage{Headers: all[0].Headers}
	if err := m.add(all[0].Body); err != nil {
		t.Fatalf("notmuch show: %v", err)
	}
	return m
}

type notmuchShown struct {
	Headers map[string]string
	Body    []notmuchPart
}

type notmuchPart struct {
	Type     string `json:"content-type"`
	Filename string
	Content  json.RawMessage // text, parts, or messages
}

// findShown collects the messages in the nested lists they come in.
func findShown(all *[]notmuchShown, raw json.RawMessage) error {
	if bytes.HasPrefix(raw, []byte("{")) {
		var shown notmuchShown
		err := json.Unmarshal(raw, &shown)
		*all = append(*all, shown)
		return err
	}
	var list []json.RawMessage // null for a message that is not shown
	err := json.Unmarshal(raw, &list)
	for _, one := range list {
		err = errors.Join(err, findShown(all, one))
	}
	return err
}

func (m *NotmuchMessage) add(parts []notmuchPart) error {
	for _, p := range parts {
		if p.Filename != "" {
			m.Attachments = append(m.Attachments, p.Filename)
			continue
		}
		switch kind := strings.ToLower(p.Type); {
		case strings.HasPrefix(kind, "multipart/"):
			var inner []notmuchPart
			if err := json.Unmarshal(p.Content, &inner); err != nil {
				return err
			}
			if err := m.add(inner); err != nil {
				return err
			}
		case kind == "message/rfc822":
			var inner []notmuchShown
			if err := json.Unmarshal(p.Content, &inner); err != nil {
				return err
			}
			for _, one := range inner {
				if err := m.add(one.Body); err != nil {
					return err
				}
			}
		case kind == "text/plain", kind == "text/html":
			var text string
			if err := json.Unmarshal(p.Content, &text); err != nil {
				return err
			}
			to := &m.Text
			if kind == "text/html" {
				to = &m.HTML
			}
			if *to != "" && !strings.HasSuffix(*to, "\n") {
				*to += "\n"
			}
			*to += text
		}
	}
	return nil
}
