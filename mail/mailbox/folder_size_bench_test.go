package mailbox_test

import (
	"fmt"
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
				must(b, second(m.Get(b.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: uid}, mailbox.GetQuery{})))
			}
		})
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	}
}
