package conformance

import (
	"flag"
	"os"
	"testing"
	"time"
)

// TestMain lets more tests run side by side than there are processors, since most wait
// for servers that never answer, and gives these servers little time to end.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "16")
	closeTime = 100 * time.Millisecond
	os.Exit(m.Run())
}
