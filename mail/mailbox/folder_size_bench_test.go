package mailbox_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// sizes are folders whose reads have to cost the same.
var sizes = []int{200, 20_000, 200_000}

// BenchmarkFolderSize reads from folders of very different sizes on Dovecot.
func BenchmarkFolderSize(b *testing.B) {
	s := servertest.Dovecot(b, servertest.Config{Storage: servertest.MDBox})
	for _, n := range sizes {
		user := fmt.Sprintf("size%d", n)
		servertest.Fill(b, s, user, "INBOX", n)
		d := &mailtest.Directory{Known: map[string]mail.Account{account: mailtest.Settings(s.Host, s.IMAPPort, user)}, Password: servertest.Password}
		m := mailbox.New(mailbox.Options{Directory: d})
		list := func(b *testing.B) {
			if p, err := m.List(b.Context(), account, mailbox.ListQuery{}); err != nil || len(p.Messages) != 50 || p.Messages[0].Ref.UID != uint32(n) {
				b.Fatalf("%+v %v", p, err)
			}
		}
		list(b) // Dovecot indexes a folder when it is first opened
		b.Run(fmt.Sprintf("list/%d", n), func(b *testing.B) {
			for b.Loop() {
				list(b)
			}
		})
		b.Run(fmt.Sprintf("get/%d", n), func(b *testing.B) {
			uid := uint32(n / 2)
			for b.Loop() {
				if _, err := m.Get(b.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: uid}, mailbox.GetQuery{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkFiftyGets reads fifty different messages at once, from Dovecot.
func BenchmarkFiftyGets(b *testing.B) {
	const n = 50
	s := servertest.Dovecot(b, servertest.Config{})
	servertest.Fill(b, s, "fifty", "INBOX", n)
	d := &mailtest.Directory{Known: map[string]mail.Account{account: mailtest.Settings(s.Host, s.IMAPPort, "fifty")}, Password: servertest.Password}
	m := mailbox.New(mailbox.Options{Directory: d})
	defer m.Close()
	get := func(uid int) error {
		return second(m.Get(b.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: uint32(uid)}, mailbox.GetQuery{}))
	}
	if err := get(1); err != nil { // connects
		b.Fatal(err)
	}
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if err := get(i + 1); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
