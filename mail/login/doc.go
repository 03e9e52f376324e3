// Package login gets the credentials of accounts: a password from the directory, the
// system's keyring or a helper program, or an OAuth 2.0 access token. It sees no message.
// Target combines an account's server and credentials for the wires to connect to.
package login
