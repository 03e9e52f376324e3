// Package quickstart keeps the garbage collector away while a process starts. Half of what
// a command of the shell costs would be collecting what the packages have just made, all
// of which stays. It imports nothing but the standard library, so that it is initialized
// before the packages that make most.
package quickstart

import (
	"runtime/debug"
	"time"
)

// percent lets a process have 16 MB before it collects: four times as much as without.
const percent = 400

var usual = debug.SetGCPercent(percent)

// Over lets a process that is still there after a tenth of a second collect as the environment
// says: in that time a server has not begun to work, and a command of the shell is over or waits.
func Over() { time.AfterFunc(100*time.Millisecond, func() { debug.SetGCPercent(usual) }) }
