// Package login gets what an account logs in with: a password from the directory or
// the system's keyring, what a helper program prints, or an OAuth 2.0 access token.
// It sees no message. Target makes of an account's server and these credentials what
// the wires connect to.
package login
