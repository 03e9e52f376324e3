// Package rfc5322 reads the header of a message that may be hostile: its fields,
// addresses, dates and ids, and the encoded words in them (RFC 5322, RFC 2047).
//
// Every function is pure, takes any bytes without panicking and costs time linear in
// its input, up to the bounds each file names. A malformed field is read as a
// person's mail program would show it; a caller that must decide whether to trust one
// asks for the strict reading (Header.StrictAddresses, Header.Certain) and refuses
// where the two differ. Functions are safe for concurrent use, and values are safe
// for concurrent reading.
package rfc5322
