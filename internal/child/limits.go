package child

import "time"

// Limits are the machine's resources that a process and each of its children can
// use. No field may be zero unless it says so. Core files are always forbidden,
// since a core holds the program's data.
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
	// Processes is how many processes there can be at once, on Windows alone.
	Processes int
}

// CannotStart is the exit status with which Become, like a shell, reports that the
// program could not be run.
const CannotStart = 126

// Apply lowers the limits of this process for good: neither it nor its children can
// raise them again. It does nothing where the system has no limits. On Windows the
// process and its children become one job, which ends with it.
func (l Limits) Apply() error { return l.apply() }

// Become applies the limits and makes this process the program at an absolute path, with
// its standard files, directory and environment, and without arguments. Other users cannot
// change files that the program creates. On Windows it starts the program and waits. It
// returns the exit status to use when it cannot run the program.
func (l Limits) Become(path string) int {
	if l.Apply() != nil {
		return CannotStart
	}
	return become(path)
}
