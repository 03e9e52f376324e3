package mail

import "github.com/postern-mail/postern/mail/internal/rfc5322"

// Address is a person in a header field: the name, decoded and cleaned, and the
// address. Addr is empty, or holds an @; as it was received it need not be valid.
// String writes it as people do: Ann Lee <ann@example.org>. That is also how it
// stands in JSON, and nothing but UnmarshalText takes it apart again.
type Address = rfc5322.Address
