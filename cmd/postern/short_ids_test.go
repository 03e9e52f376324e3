package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// TestShortIDsOnRealServers uses them in the process that showed them, in another one and
// after a kill, and then makes the folder anew.
func TestShortIDsOnRealServers(t *testing.T) {
	t.Parallel()
	dovecot, courier, user := servertest.SharedDovecot(t), servertest.SharedCourier(t), servertest.User("ann")
	work := dovecotAccount(dovecot, user)
	other := work
	other.IMAP.Host, other.IMAP.Port, other.CAPEM = courier.Host, courier.IMAPSPort, courier.CAPEM
	for _, server := range []struct {
		name, address, folder string
		account               mail.Account
	}{{"Dovecot", dovecot.IMAPAddr(), "Projects/Été 50", work}, {"Courier", courier.IMAPAddr(), "INBOX.50", other}} {
		t.Run(server.name, func(t *testing.T) {
			admin := mailtest.DialIMAP(t, server.address, user)
			box := &mailtest.Box{T: t, Admin: admin}
			validity := func() uint32 { // a session of Dovecot that knew the folder before may stumble over it
				data, err := mailtest.DialIMAP(t, server.address, user).Status(server.folder, &imap.StatusOptions{UIDValidity: true}).Wait()
				if err != nil {
					t.Fatal(err)
				}
				return data.UIDValidity
			}
			fill := func(subject string) {
				t.Helper()
				if err := admin.Create(server.folder, nil).Wait(); err != nil {
					t.Fatal(err)
				}
				box.Add(server.folder, mailtest.Letter{Subject: subject + " 1"}, mailtest.Letter{Subject: subject + " 2"})
			}
			fill("old")
			v := newVault(t)
			server.account.Mode, server.account.AllowOut = mail.ReadWrite, mail.AllowList{}
			v.add(t, server.account, servertest.Password)
			short := mail.Ref{Protocol: mail.IMAP, Folder: server.folder, UID: 2}.Short(false)
			list := discovery.JoinCommand([]string{"mail", "list", "--folder", server.folder})

			exec := func(line string) string {
				_, out, _ := inThisProcess(t, v.environment(false), []string{"exec", line})
				return string(out)
			}
			if got := exec("mail get " + short); !strings.Contains(got, "CONFLICT") || !strings.Contains(got, "mail list") {
				t.Errorf("before it was shown: %s", got)
			}
			command := program(t, v.environment(false), "serve")
			if got := gatewaytest.Start(t, command).Call(list).Text(); !strings.Contains(got, "old 2") {
				t.Fatalf("the list: %s", got)
			}
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := exec("mail get " + short); !strings.Contains(got, "old 2") {
					t.Errorf("from another process: %s", got)
				}
			}

			// Every command refuses it once the folder is another one, whether the process
			// showed it or the vault remembers it.
			agent := gateway.Principal{Name: "agent"}
			h := newHouse(t, v)
			h.as(t, agent, list)
			before := validity()
			for aside := 0; validity() == before; aside++ { // Courier takes it from the clock, in seconds
				if err := admin.Rename(server.folder, fmt.Sprint(server.folder, " aside ", aside), nil).Wait(); err != nil {
					t.Fatal(err)
				}
				fill("new")
			}
			lines := []string{"mail get %", "mail thread %", "mail raw %", "mail attachment %", "mail ack %", "mail mark-read %", `mail flags % --add '\Flagged'`,
				"mail copy % --to INBOX", "mail move % --to INBOX", "mail trash %", "mail delete % --confirm", "mail draft --to ann@example.org --body x --reply-to %",
				list + " --before %", list + " --after %"}
			refused := func(h *testHouse) {
				t.Helper()
				for _, line := range lines {
					line = strings.Replace(line, "%", short, 1)
					if a := h.as(t, agent, line); a.Success || a.Error.Code != discovery.Conflict {
						t.Errorf("%s: %s", line, a.raw)
					}
				}
				if a := h.do(t, "mail get --folder INBOX --uid 1", nil); a.Success {
					t.Errorf("something is in the inbox: %s", a.raw)
				}
			}
			refused(h)
			refused(newHouse(t, v))

			// It is said, in every process, and long ids take the place of short ones.
			if got := exec(list); !strings.Contains(got, "ids shown earlier are void") || !strings.Contains(got, "new 1") {
				t.Errorf("the first list after: %s", got)
			}
			refused(newHouse(t, v))
			refused(h)
			long := mail.Ref{Protocol: mail.IMAP, Account: "work", Folder: server.folder, UIDValidity: validity(), UID: 2}
			if got := exec(discovery.JoinCommand([]string{"mail", "get", long.String()})); !strings.Contains(got, "new 2") {
				t.Errorf("by its long id: %s", got)
			}
		})
	}
}
