// Package mailbox reads and changes the mailboxes of accounts under their policy. A
// Client is the only way in: every message passes the account's inbound policy on
// every path, and what changes a mailbox does so on a connection that is lent for
// just that change.
//
// A method of Client opens the account and asks its box, which is imapBox or popBox
// by the account's protocol. So a new option of a list is a field of ListQuery and a
// line in imapBox.list and popBox.list; what only IMAP has is asked of openIMAP. What
// both share (policy, summaries, text, conversations, what is new) is written once,
// on access and on the values that a wire fills in: fetched, reading, threading.
package mailbox
