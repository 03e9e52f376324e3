// Package mailbox reads and changes the mailboxes of accounts under their policy. A Client
// is the only way in: every message passes the account's inbound policy on every path, and
// every change to a mailbox is made on a connection lent for that one change.
//
// A method of Client opens the account and asks its box, which is imapBox or popBox by the
// account's protocol. What not every protocol has are the searcher, the notifier and the
// changer of box.go. A new option of a list is a field of ListQuery; for IMAP it is
// looked at in listing.run (by search or by numbers) and listing.criteria, and in
// listing.take where the server's answer is checked. What take looks at must be fetched:
// imapBox.listing sets it in fetch.Wanted. A list with the option is not of the newest
// messages: see fromTheNewest. For POP3 it is looked at in popBox.list, before the heads. Its
// tests are in list_test.go, list_newest_test.go and pop3_test.go.
//
// The parts that protocols share are written once, in rooms below that dial nothing: what is
// asked and what came (internal/fetch), what is shown of it under the policy (internal/reading),
// what a search asks for (internal/search), which messages make a conversation
// (internal/thread), and what folders are for (internal/folders). access holds what an operation
// needs of its account. For IMAP, Viewer.Walk goes through a folder, and fetch.Visits search
// several folders and fetch from them in one write.
package mailbox
