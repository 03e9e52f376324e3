package child

import "time"

// Limits are what a process and each process that it starts can take of the machine.
// No field may be zero unless it says so. Core files are always forbidden, since a
// core holds what the program worked on.
type Limits struct {
	// Memory is bytes of writable memory. The address space is not bounded: some
	// runtimes reserve far more than they use.
	Memory int64
	// CPU is processor time, in whole seconds.
	CPU time.Duration
	// FileBytes is the largest file that can be written; 0 forbids files.
	FileBytes int64
	// Files is how many files can be open at once.
	Files int64
	// Processes is how many there can be at once, on Windows alone.
	Processes int
}

// CannotStart is the status with which Become, like a shell, says that there was no
// program to run.
const CannotStart = 126

// Apply lowers the limits of this process for good: neither it nor what it starts can
// raise them again. Where the system has none, it does nothing. On Windows the process
// and what it starts become one job, which ends with it.
func (l Limits) Apply() error { return l.apply() }

// Become applies the limits and makes this process the program at an absolute path,
// with its standard files, directory and environment, and without arguments. What the
// program creates cannot be changed by other users. On Windows it starts the program
// and waits. It returns the status to exit with where there is nothing to become.
func (l Limits) Become(path string) int {
	if l.Apply() != nil {
		return CannotStart
	}
	return become(path)
}
