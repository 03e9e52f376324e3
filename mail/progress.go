package mail

import "context"

type progressKey struct{}

// WithProgress returns a context whose operations report how far they are: done of total
// steps of the named work, total 0 where that is unknown. f must be safe for concurrent use
// and should return at once. Steps are whatever the operation counts: messages, bytes,
// accounts. Without it nothing is counted.
//
// It is the only value that operations find in a context: it changes nothing of what they do,
// and they are many, each of which would have to take it and hand it on.
func WithProgress(ctx context.Context, f func(done, total float64, what string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress returns what WithProgress was given, or a function that does nothing.
func Progress(ctx context.Context) func(done, total float64, what string) {
	if f, ok := ctx.Value(progressKey{}).(func(float64, float64, string)); ok {
		return f
	}
	return func(float64, float64, string) {}
}
