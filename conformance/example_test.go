package conformance_test

import (
	"context"
	"fmt"
	"io"

	"github.com/postern-mail/postern/conformance"
	"github.com/postern-mail/postern/conformance/internal/faulty"
)

// A server that is a program is &conformance.Command{Args: …}, one at an address
// &conformance.HTTP{URL: …}. This one is in the same process.
func ExampleRun() {
	server := faulty.New(faulty.Fault{})
	target := &conformance.Pipe{Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return server.Serve(ctx, in, out)
	}}
	report, err := conformance.Run(context.Background(), target, &conformance.Options{Level: conformance.Minimal, Category: conformance.Response})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("reached", report.Reached)
	for _, c := range report.Failed(false) {
		fmt.Println(c.Title, c.Findings)
	}
	// Output: reached Minimal
}
