package mail_test

import (
	"fmt"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
)

// sizes are folders whose reads have to cost the same.
var sizes = []int{200, 20_000, 200_000}

// BenchmarkFolderSize reads from folders of very different sizes on Dovecot.
func BenchmarkFolderSize(b *testing.B) {
	s := servertest.Dovecot(b, servertest.Config{Storage: servertest.MDBox})
	for _, n := range sizes {
		user := fmt.Sprintf("size%d", n)
		servertest.Fill(b, s, user, "INBOX", n)
		d := &directory{accounts: map[string]mail.Account{account: settings(s.Host, s.IMAPPort, user)}, password: servertest.Password}
		m := mail.NewMailboxes(mail.MailboxesOptions{Directory: d})
		list := func(b *testing.B) {
			if p, err := m.List(b.Context(), account, mail.ListQuery{}); err != nil || len(p.Messages) != 50 || p.Messages[0].Ref.UID != uint32(n) {
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
				if _, err := m.Get(b.Context(), mail.Ref{Protocol: mail.IMAP, Account: account, Folder: "INBOX", UID: uid}, mail.GetQuery{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	}
}
