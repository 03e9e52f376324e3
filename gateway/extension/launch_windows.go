package extension

import (
	"errors"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

const maxProcesses = 64

// launch puts this process into a job that bounds the memory, the time and the number
// of its processes, starts the program in it and waits. The job ends with this
// process, and everything in it with the job, so whoever kills this process kills
// all of them.
func launch(l limits, path string) int {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return cannotStart
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY |
				windows.JOB_OBJECT_LIMIT_PROCESS_TIME | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
			PerProcessUserTimeLimit: l.cpu * 1e7, // in 100 ns
			ActiveProcessLimit:      maxProcesses,
		},
		ProcessMemoryLimit: uintptr(l.memory),
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return cannotStart
	}
	// The handle stays open, and no child inherits it.
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		return cannotStart
	}
	cmd := exec.Command(path)
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return cannotStart
}
