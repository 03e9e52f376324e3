package admin_test

import (
	"testing"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/mail"
)

func TestASettingThatDoesNotExistIsNotFound(t *testing.T) {
	b := newFixture(t, work("work", mail.ReadWrite))
	for _, line := range []string{"config get nope", "config set nope 3", "config set nope ''"} {
		b.Fails(t, line, discovery.NotFound, "audit_retention_days")
	}
	b.Fails(t, "config set audit_retention_days soon", discovery.ValidationError, "integer")
}
