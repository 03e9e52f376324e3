package mail

import "context"

type progressKey struct{}

// WithProgress returns a context whose operations report how far they are: done of
// total steps of what is named, total 0 where nobody knows. f must be safe for
// concurrent use and should return at once. Steps are whatever the operation counts:
// messages, bytes, accounts. Without it nothing is counted.
func WithProgress(ctx context.Context, f func(done, total float64, what string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// listener returns what WithProgress was given; it does nothing where nobody
// listens.
func listener(ctx context.Context) func(done, total float64, what string) {
	if f, ok := ctx.Value(progressKey{}).(func(float64, float64, string)); ok {
		return f
	}
	return func(float64, float64, string) {}
}

// looking reports how many messages of how many of a folder have been looked at. With
// rules that hide messages it says no numbers: there would be others without those.
func (x *access) looking(done, total uint64, folder string) {
	if !x.policy.ShowsAll() {
		done, total = 0, 0
	}
	x.tell(float64(done), float64(total), "reading "+folder)
}
