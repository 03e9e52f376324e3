package pdftext

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// limitProcess puts this process into a job that bounds its memory and time and
// lets it start no other. Where it cannot, as inside a job that allows none
// below it, the watchdog and the parent's clock still bound it.
func limitProcess(a childArguments) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil
	}
	const slack = 192 << 20 // what the Go runtime has and commits ahead
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS |
				windows.JOB_OBJECT_LIMIT_PROCESS_TIME | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
			PerProcessUserTimeLimit: a.cpu.Nanoseconds() / 100,
			ActiveProcessLimit:      1,
		},
		ProcessMemoryLimit: uintptr(a.memory + slack),
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return nil
	}
	// The handle stays open: the job lasts as long as the process.
	_ = windows.AssignProcessToJobObject(job, windows.CurrentProcess())
	return nil
}
