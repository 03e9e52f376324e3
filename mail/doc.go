// Package mail has the plain values of the domain: accounts and providers, references
// to messages, policy, secrets, what is kept of an outbox and of what was seen, and
// errors. It opens no connection; mail/login, mail/mailbox and mail/outbox do.
package mail
