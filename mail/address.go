package mail

import "github.com/postern-mail/postern/mail/internal/rfc5322"

// Address is a person in a header field: the name, decoded and cleaned, and the
// address. Addr is empty, or holds an @; as it was received it need not be valid.
// String writes it as people do: Ann Lee <ann@example.org>. JSON has the same form, and
// only UnmarshalText parses it again.
type Address = rfc5322.Address
