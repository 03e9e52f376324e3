package conformance

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run side by side than there are processors: most wait for
// servers that never answer.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "16")
	os.Exit(m.Run())
}
