package hardening

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func forbid() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// overwrite clears the values of secret variables in the memory that the kernel filled
// when it started the process, which /proc/PID/environ shows to root. os.Unsetenv does
// not reach it: Go's environment is a copy. Where anything is not as expected, nothing is
// overwritten.
func overwrite() {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil || len(os.Args) == 0 {
		return
	}
	// proc(5): the program's name in parentheses is field 2 and may hold anything; the
	// last four of the fields used here are arg_start, arg_end, env_start and env_end.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 49 {
		return
	}
	var at [4]uintptr
	for i, field := range fields[45:49] {
		n, err := strconv.ParseUint(field, 10, strconv.IntSize)
		if err != nil {
			return
		}
		at[i] = uintptr(n)
	}
	argStart, argEnd, envStart, envEnd := at[0], at[1], at[2], at[3]
	// unsafe: no other way leads to this memory. Go's os.Args are strings in it, not
	// copies, and the kernel puts the environment behind the arguments; both are checked
	// against the bounds that the kernel tells.
	first := unsafe.StringData(os.Args[0])
	if p := uintptr(unsafe.Pointer(first)); p < argStart || p >= argEnd || argEnd > envStart || envStart > envEnd {
		return
	}
	block := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(first), envStart-uintptr(unsafe.Pointer(first)))), envEnd-envStart)
	for len(block) > 0 {
		var entry []byte
		entry, block, _ = bytes.Cut(block, []byte{0})
		if name, value, _ := bytes.Cut(entry, []byte{'='}); secret(string(name)) {
			clear(value)
		}
	}
}
