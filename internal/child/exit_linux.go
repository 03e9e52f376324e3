package child

import "golang.org/x/sys/unix"

// awaitExit waits until a child has ended, without collecting it. It returns false
// when it could not.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
