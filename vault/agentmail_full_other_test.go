//go:build !linux

package vault

import (
	"context"
	"errors"
)

func fill(context.Context, *Vault) error { return errors.ErrUnsupported }
