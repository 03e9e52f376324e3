package pdftext

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/postern-mail/postern/internal/child"
)

// statuses are the reasons for which a child gives no text. The exit status is
// firstStatus plus the index of the reason.
var (
	errUsage  = errors.New("read PDF: the child was not called as it must be")
	errLimits = errors.New("read PDF: the child could not limit itself")
	errOutput = errors.New("read PDF: the child could not write the text")
	statuses  = []error{errUsage, errLimits, errOutput, ErrTooLarge, ErrEncrypted, ErrDamaged, ErrTimeout, ErrMemory, ErrNoText}
)

const firstStatus = 70

// outOfMemory are the statuses with which the Go runtime ends a process: since a child
// recovers from every panic, it was out of stack or heap.
var outOfMemory = []int{2}

// status returns a child's exit status for a reason.
func status(reason error) int {
	at := slices.IndexFunc(statuses, func(err error) bool { return errors.Is(reason, err) })
	if at < 0 {
		return status(ErrDamaged)
	}
	return firstStatus + at
}

const (
	threads          = 2 // one to read, one for the collector and the watchdog
	maxStack         = 64 << 20
	watchdogInterval = 5 * time.Millisecond
	// Open files of a child: its three standard files, those of the Go runtime's
	// poller, and a few.
	maxFiles = 16
)

// Child reads a PDF from stdin, writes its text to stdout and returns the exit
// status for the process. args are those that a [Runner] adds to its command. It
// limits the whole process for good (stdout cannot be a file then, but a pipe),
// may end it, and must be all that the process does: only the hidden verb calls
// it.
func Child(stdin io.Reader, stdout io.Writer, args []string) int {
	a, ok := parseArguments(args)
	if !ok {
		return status(errUsage)
	}
	if stdout == io.Writer(os.Stdout) {
		os.Stdout = os.Stderr // keeps library output out of the document's text
	}
	runtime.GOMAXPROCS(threads)
	debug.SetMaxStack(maxStack)
	base := inUse()
	// Near its limit the collector works more; only a hostile file gets there.
	debug.SetMemoryLimit(int64(base) + a.memory*3/4)
	if err := a.limits().Apply(); err != nil && runtime.GOOS != "windows" { // where some jobs cannot be nested
		return status(errLimits)
	}
	go watch(base+uint64(a.memory), time.Now().Add(a.cpu))
	pdf, err := io.ReadAll(io.LimitReader(stdin, MaxBytes+1))
	if err != nil {
		return status(ErrDamaged)
	}
	if len(pdf) > MaxBytes {
		return status(ErrTooLarge)
	}
	text, err := extract(pdf, bounds{decoded: a.memory / 4, runes: a.runes + 1})
	if err != nil {
		return status(err)
	}
	if _, err := io.WriteString(stdout, text); err != nil {
		return status(errOutput)
	}
	return 0
}

// slack is what the Go runtime may map or commit besides the memory that the watchdog
// counts. With it the watchdog, which can give the reason, mostly acts first.
var slack int64 = 256 << 20

// limits are the resources a child needs to read a PDF.
func (a childArguments) limits() child.Limits {
	return child.Limits{
		Memory: slack + a.memory,
		// The watchdog's clock, no slower than all threads together, acts before the
		// system, which kills without giving a reason.
		CPU:       threads*a.cpu + time.Second,
		Files:     maxFiles,
		Processes: 1,
	}
}

// watch ends the process when it uses more memory or time than allowed. It
// bounds memory where the system does not.
func watch(limit uint64, end time.Time) {
	for range time.Tick(watchdogInterval) {
		if inUse() > limit {
			os.Exit(status(ErrMemory))
		}
		if time.Now().After(end) {
			os.Exit(status(ErrTimeout))
		}
	}
}

// inUse returns how many bytes of memory the Go runtime holds and has not given
// back.
func inUse() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
