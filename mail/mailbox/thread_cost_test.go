package mailbox_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/mailbox"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/mail/servertest/mailtest"
)

// A conversation over INBOX, Sent and Archive costs three round trips where References or
// the subject tie it together: the message, a search in all folders, and what that found.
// Its bytes do not grow with the folders.
func TestThreadRoundTrips(t *testing.T) {
	t.Parallel()
	for _, e := range mailtest.SharedServers(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			proxy := servertest.NewProxy(t, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), servertest.ProxyOptions{})
			b := open(t, e, "threadcost", func(a *mail.Account) { a.IMAP.Host, a.IMAP.Port = proxy.Host, proxy.Port })
			b.folders("Sent", "Archive")
			for i := range 200 {
				b.Add([]string{"INBOX", "Sent", "Archive"}[i%3], talk(i%24, fmt.Sprint("other ", i), fmt.Sprintf("o%d@x", i)))
			}
			root := b.Ref("Archive", b.Add("Archive", talk(1, "Plan", "a@x"))[0])
			middle := b.Ref("Sent", b.Add("Sent", talk(2, "Re: Plan", "b@x", "a@x"))[0])
			agreed := talk(3, "Re: Plan", "c@x", "a@x", "b@x")
			agreed.Body = "Agreed."
			leaf := b.Ref("INBOX", b.Add("INBOX", agreed)[0])
			asked := b.Ref("INBOX", b.Add("INBOX", talk(4, "Lunch", "l1@x"))[0])
			answered := b.Ref("Sent", b.Add("Sent", talk(5, "AW: Lunch", "l2@x"))[0])
			alone := b.Ref("INBOX", b.Add("INBOX", talk(6, "Alone", "n@x"))[0])
			b.list(mailbox.ListQuery{Limit: 1})
			if _, err := b.Thread(t.Context(), alone, mailbox.ThreadQuery{}); err != nil { // the folders are known from here on
				t.Fatal(err)
			}
			for _, tc := range []struct {
				name            string
				from            mail.Ref
				messages, trips int
			}{{"root", root, 3, 3}, {"middle", middle, 3, 3}, {"leaf", leaf, 3, 3}, {"asked", asked, 2, 3}, {"answered", answered, 2, 3}, {"alone", alone, 1, 2}} {
				proxy.Reset()
				th, err := b.Thread(t.Context(), tc.from, mailbox.ThreadQuery{Chars: 1000})
				if err != nil || len(th.Messages) != tc.messages {
					t.Errorf("from %s: %+v %v", tc.name, th, err)
				}
				st := proxy.Stats()
				t.Logf("from %-8s %d round trips, %d bytes out, %d bytes in", tc.name, st.Flights, st.ToServer, st.ToClient)
				if st.Flights > tc.trips || st.Connections > 0 || st.ToClient > 8000 {
					t.Errorf("from %s: %d round trips, %d connections, %d bytes", tc.name, st.Flights, st.Connections, st.ToClient)
				}
			}
			// With an inbound list, headers come first: the texts of what is shown come with the
			// search that finds no more.
			b.Dir.Edit(allowing("@example.org"))
			proxy.Reset()
			th := b.threadFrom(root, mailbox.ThreadQuery{Chars: 1000})
			if st := proxy.Stats(); st.Flights > 4 || st.Connections > 0 || len(th.Messages) != 3 || th.Messages[2].Text != "Agreed." {
				t.Errorf("with an inbound list: %d round trips, %d connections, %+v", st.Flights, st.Connections, th)
			}
		})
	}
}
