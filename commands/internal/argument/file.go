package argument

import "errors"

// ErrTooLarge tells that a file that an argument names is larger than the limit.
var ErrTooLarge = errors.New("the file is too large")
