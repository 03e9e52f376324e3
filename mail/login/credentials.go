package login

import (
	"context"

	"github.com/postern-mail/postern/mail"
)

// Credentials gives what accounts log in with. Implementations are safe for
// concurrent use.
type Credentials interface {
	// Credential returns what one login of the account uses, as a copy that the
	// caller wipes. It may ask another program or a token endpoint, within ctx.
	Credential(ctx context.Context, a *mail.Account) (Credential, error)
	// Refused reports that a server did not accept c, and reports whether Credential
	// would now return something newer, so that one more try is worth it. It does no
	// network traffic itself.
	Refused(ctx context.Context, a *mail.Account, c Credential) (again bool)
}

// Credential is a secret and its kind.
type Credential struct {
	Secret mail.Secret
	Bearer bool // an OAuth 2.0 access token; else a password
}
