package servertest

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func crlf(s string) []byte { return []byte(strings.ReplaceAll(s, "\n", "\r\n")) }

func TestNotmuchThreadsAcrossFolders(t *testing.T) {
	t.Parallel()
	s, user := server(t), someone()
	s.Deliver(t, user, "INBOX",
		crlf("Message-ID: <1@x>\nDate: Sat, 21 Nov 2026 10:00:00 +0000\nSubject: a\n\n"),
		crlf("Message-ID: <2@x>\nDate: Sat, 21 Nov 2026 10:01:00 +0000\nSubject: alone\n\n"),
		crlf("Message-ID: <4@x>\nDate: Sat, 21 Nov 2026 10:03:00 +0000\nSubject: Re: a\nIn-Reply-To: <3@x>\nReferences: <1@x>\n <3@x>\n\n"),
		crlf("Date: Sat, 21 Nov 2026 10:04:00 +0000\nSubject: no id\n\n"))
	s.Deliver(t, user, "Sent", crlf("Message-ID: <3@x>\nDate: Sat, 21 Nov 2026 10:02:00 +0000\nSubject: Re: a\nIn-Reply-To: <1@x>\n\n"))
	// A session moves them and gives them flags.
	if _, err := login(t, s, user).Select("INBOX", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	maildir := s.Export(t, user)
	before, err := filepath.Glob(filepath.Join(maildir, "*", "*"))
	if err != nil || len(before) != 5 {
		t.Fatalf("exported are %v, %v", before, err)
	}
	got := Notmuch(t, maildir).Threads(t)
	if len(got) != 3 || len(got[2]) != 1 || !strings.HasPrefix(got[2][0], "notmuch-sha1-") {
		t.Fatalf("got %v", got)
	}
	if want := [][]string{{"1@x", "3@x", "4@x"}, {"2@x"}}; !reflect.DeepEqual(got[:2], want) {
		t.Errorf("got %v, want %v", got[:2], want)
	}
	if after, err := filepath.Glob(filepath.Join(maildir, "*", "*")); err != nil || !slices.Equal(before, after) {
		t.Errorf("the Maildir has become %v, %v", after, err)
	}
}

func TestNotmuchShowsWhatAPersonReads(t *testing.T) {
	t.Parallel()
	raw := crlf(`Message-ID: <odd"id@x>
From: =?utf-8?q?Zo=C3=AB?= <zoe@example.org>
To: ann@example.org
Subject: =?iso-8859-1?q?Gr=F6=DFe?=
Date: Sat, 21 Nov 2026 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

caf=C3=A9
--c
Content-Type: text/html; charset=utf-8

<p>x</p>
--c--
--b
Content-Type: message/rfc822

Subject: inner

within
--b
Content-Type: text/plain; name*=utf-8''%C3%BC.txt
Content-Disposition: attachment; filename*=utf-8''%C3%BC.txt

attached
--b--
`)
	n := Notmuch(t, WriteMaildir(t, raw, crlf("Message-ID: <2@x>\nIn-Reply-To: <odd\"id@x>\nSubject: y\n\nother\n")))
	got := n.Show(t, `<odd"id@x>`)
	if got.Headers["From"] != "Zoë <zoe@example.org>" || got.Headers["Subject"] != "Größe" || got.Headers["To"] != "ann@example.org" {
		t.Errorf("the headers are %q", got.Headers)
	}
	if strings.TrimSpace(got.HTML) != "<p>x</p>" || !slices.Equal(strings.Fields(got.Text), []string{"café", "within"}) || !slices.Equal(got.Attachments, []string{"ü.txt"}) {
		t.Errorf("got %+v", got)
	}
	if got := n.Show(t, "2@x"); got.Text != "other\n" {
		t.Errorf("got %+v", got)
	}
}

func TestMuttShowsFlowedTextAsItIsMeant(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 60)
	got := Mutt(t, crlf("From: =?utf-8?q?Zo=C3=AB?= <zoe@example.org>\nSubject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\nMessage-ID: <1@x>\nMIME-Version: 1.0\n"+
		"Content-Type: text/plain; charset=utf-8; format=flowed\nContent-Transfer-Encoding: quoted-printable\n\n"+
		strings.ReplaceAll(long, " word word word", " =\n\n word word word")+"=\n\nend.\n\n>quoted =\n\n>text\n>>twice\n\n From here\n-- =\n\nsignature\n"))
	head, body, ok := strings.Cut(got, "\n\n")
	if !ok || !strings.Contains(head, "From: Zoë <zoe@example.org>\n") || !strings.Contains(head, "Subject: Größe\n") {
		t.Errorf("the headers are %q", head)
	}
	if want := long + "end.\n\n> quoted text\n> > twice\n\nFrom here\n-- \nsignature\n"; body != want {
		t.Errorf("got %q, want %q", body, want)
	}
}

func TestMuttShowsPlainTextAsItIs(t *testing.T) {
	t.Parallel()
	got := Mutt(t, crlf("Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\none \ntwo caf\xe9\n"))
	if _, body, _ := strings.Cut(got, "\n\n"); body != "one \ntwo café\n" {
		t.Errorf("got %q", got)
	}
}

func TestInstalledMissesNoProgram(t *testing.T) {
	t.Parallel()
	if err := installed("sh", "cat"); err != nil {
		t.Error(err)
	}
	if err := installed("sh", "a-program-that-nobody-has"); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}
