package demo

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
)

// The folders of the sample mailbox. "Projects" is not a folder, only the
// level above one, as on servers that store folders as files.
var sampleFolders = []struct {
	name       string
	specialUse imap.MailboxAttr
}{
	{"INBOX", ""},
	{"Archive", imap.MailboxAttrArchive},
	{"Drafts", imap.MailboxAttrDrafts},
	{"Junk", imap.MailboxAttrJunk},
	{"Projects/Été", ""},
	{"Sent", imap.MailboxAttrSent},
	{"Trash", imap.MailboxAttrTrash},
}

// sample is one message of the mailbox: its file below mailbox without the
// extension, and its time: "3d 09:14" is three days before now at that time of
// day, "40m" that long ago.
type sample struct {
	folder, file, when string
	flags              []imap.Flag
}

var (
	seen     = []imap.Flag{imap.FlagSeen}
	answered = []imap.Flag{imap.FlagSeen, imap.FlagAnswered}
	flagged  = []imap.Flag{imap.FlagSeen, imap.FlagFlagged}
	draft    = []imap.Flag{imap.FlagSeen, imap.FlagDraft}
	unread   []imap.Flag
)

// sampleMessage is a message ready to be put into its folder.
type sampleMessage struct {
	folder, file string
	raw          []byte // RFC 5322, with CRLF line ends
	time         time.Time
	flags        []imap.Flag
}

//go:embed mailbox/*.eml mailbox/files/*
var sampleFiles embed.FS

// sampleMessages returns the messages in the order of the table, dated back
// from now.
func sampleMessages(now time.Time) ([]sampleMessage, error) {
	times := map[string]time.Time{}
	for _, m := range samples {
		at, err := before(now, m.when)
		if err != nil {
			return nil, fmt.Errorf("sample message %s: %w", m.file, err)
		}
		times[m.file] = at
	}
	messages := make([]sampleMessage, 0, len(samples))
	for _, m := range samples {
		text, err := fs.ReadFile(sampleFiles, "mailbox/"+m.file+".eml")
		if err != nil {
			return nil, fmt.Errorf("sample message: %w", err)
		}
		if text, err = fill(text, now, m.file, times); err != nil {
			return nil, fmt.Errorf("sample message: %w", err)
		}
		messages = append(messages, sampleMessage{
			folder: m.folder, file: m.file, raw: crlf(text), time: times[m.file], flags: m.flags,
		})
	}
	return messages, nil
}

// before parses the when of a sample.
func before(now time.Time, when string) (time.Time, error) {
	days, clock, ok := strings.Cut(when, "d ")
	if !ok {
		ago, err := time.ParseDuration(when)
		if err != nil {
			return time.Time{}, err
		}
		return now.Add(-ago).Truncate(time.Second), nil
	}
	n, err := strconv.Atoi(days)
	if err != nil {
		return time.Time{}, err
	}
	return onDay(now, -n, clock)
}

// onDay returns a time of day some days from now.
func onDay(now time.Time, days int, clock string) (time.Time, error) {
	c, err := time.Parse("15:04", clock)
	if err != nil {
		return time.Time{}, err
	}
	return time.Date(now.Year(), now.Month(), now.Day()+days, c.Hour(), c.Minute(), 0, 0, now.Location()), nil
}

// crlf ends every line with CRLF (RFC 5322 section 2.3), also in files that
// were checked out with other line ends.
func crlf(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}
