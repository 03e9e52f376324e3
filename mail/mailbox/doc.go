// Package mailbox reads and changes the mailboxes of accounts under their policy. A
// Client is the only way in: every message passes the account's inbound policy on
// every path, and what changes a mailbox does so on a connection that is lent for
// just that change.
//
// A method of Client opens the account and asks its box, which is imapBox or popBox
// by the account's protocol. So a new option of a list is a field of ListQuery; for
// IMAP it is looked at in listing.run (by search or by numbers) and listing.criteria,
// and in listing.take where the server is not taken at its word; for POP3 in
// popBox.list, before the heads. Its tests stand in list_test.go and pop3_test.go. What
// only IMAP has is asked of openIMAP. What
// both share (policy, summaries, text, conversations, what is new) is written once,
// on access and on the values that a wire fills in: fetched (one message, with its
// id), reading (its text, also of a snippet) and threading (a conversation, whose
// messages may be of any folder). A folder is gone through with imapBox.walk.
package mailbox
