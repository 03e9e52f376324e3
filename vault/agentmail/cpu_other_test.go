//go:build !unix

package agentmail

import "time"

func cpuTime() time.Duration { return 0 }
