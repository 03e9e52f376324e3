// Package mail has the plain values of the domain: accounts and providers, references to
// messages, policy, secrets, errors, and the records of the outbox and of acknowledged
// messages. It opens no connection; mail/login, mail/mailbox and mail/outbox do.
package mail
