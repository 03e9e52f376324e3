package login

import (
	"testing"

	"github.com/postern-mail/postern/mail"
)

// A refused login is told with what changes it where this account keeps its password.
func TestTheAdviceOfARefusedLogin(t *testing.T) {
	for _, tc := range []struct {
		account mail.Account
		advice  mail.Advice
	}{
		{mail.Account{Auth: mail.AuthPassword}, mail.AdviceCheckLoginPassword},
		{mail.Account{Auth: mail.AuthPassword, FromEnvironment: true}, mail.AdviceCheckLogin},
		{mail.Account{Auth: mail.AuthOAuth2}, mail.AdviceCheckLoginOAuth},
		{mail.Account{Auth: mail.AuthHelper}, mail.AdviceCheckLoginHelper},
		{mail.Account{Auth: mail.AuthKeyring}, mail.AdviceCheckLoginKeyring},
	} {
		refused := &mail.Error{Kind: mail.KindAuth, Advice: mail.AdviceCheckLogin}
		if _ = Explain(refused, &tc.account); refused.Advice != tc.advice {
			t.Errorf("%s: %s", tc.account.Auth, refused.Advice)
		}
	}
}
