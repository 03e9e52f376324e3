//go:build !linux

package agentmail

import (
	"context"
	"errors"
)

func fill(context.Context, *testBox) error { return errors.ErrUnsupported }
