// Package vault keeps the data that must outlive a process: accounts and their secrets,
// settings, the audit log, rate limits and the state of other packages. It knows nothing
// of servers, messages or commands. It seals records and keeps them in an engine
// (package kv): one file (package bolt) or a PostgreSQL database (package postgres), chosen
// in engine.go by the form of the place. "The file" below means either, unless it speaks of
// who may read it.
//
// Init makes a vault, Open opens one, and every method of Vault is one short
// transaction: it locks the file only that long, so that many processes share
// it. A Vault holds no file and no lock between calls, needs no closing, and is
// safe for concurrent use.
//
// # What is promised
//
// Every value is sealed with AES-256-GCM under a data key that the file holds
// twice: sealed under the admin key and sealed under the agent key. The place of
// a value (format, vault, bucket, key) is authenticated with it, so a value that
// was moved does not open. Names, such as those of accounts, are not secret.
//
// Accounts and settings are policy. A signature covers all of them together
// with a generation number, and only the admin key unseals the private key that
// makes it. A process that holds the agent key can therefore read the policy
// but neither change a record, nor drop one, nor mix records of two generations,
// without every later read failing with ErrUntrustedPolicy. With
// Options.PolicyPin a vault signed by another key is refused too.
//
// The audit log is a hash chain under a key derived from the data key.
//
// A file that others can read, that was cut, or that has no valid head is refused in
// every transaction. Check reads all of it, pages and records alike; other damage is
// an error when a transaction reads it.
//
// Rekey replaces either key or both, and the data key with them, by writing a new file in
// which nothing is left that a former key opens.
//
// # What is not promised
//
// A person who can write the file can replace it with an older copy: that is signed,
// sealed and chained correctly, only old. A running process notices a policy that went
// backwards, a new one cannot. A process with the agent key has the data key: it can
// write a false audit log and false state, read every account's secret, and destroy the
// file. An older copy of the file opens with the keys that it had then, and the key that
// signs policy stays the same when the vault is rekeyed: a person who has a former admin
// key, a copy from its time and the present agent key can sign. A reader of the file
// without keys still sees the number of records, their lengths
// and their names.
package vault
