package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownSession gives a server its own session, by which all its processes can be found. The
// kernel forgets to end it with this process if it changes its user for a moment, as
// Postfix does; a leash does not.
func ownSession(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// leash is a process that ends a server when this process dies without cleaning
// up.
type leash struct {
	cmd  *exec.Cmd
	held io.Closer // the end of a pipe that no other process has
}

// newLeash ties the server whose first process has this id to this process.
func newLeash(leader int) (*leash, error) {
	l := &leash{cmd: exec.Command("/bin/sh", "-c", `read line; kill -s KILL -- "-$1"`, "sh", strconv.Itoa(leader))}
	// A signal that ends the test from a terminal must not end this.
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if l.held, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, errors.Join(err, l.held.Close())
	}
	return l, nil
}

// release unties the server. It must come before another process can get the server's id. l
// may be nil.
func (l *leash) release() {
	if l == nil {
		return
	}
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait() // also closes the pipe; the error of a killed process does not matter
}

// endSession ends every process of the server, and returns when none is left. done is
// closed when the server has been waited for.
func endSession(leader *os.Process, done <-chan struct{}) error {
	for deadline := time.Now().Add(startTimeout); ; {
		_ = syscall.Kill(-leader.Pid, syscall.SIGKILL)
		running, err := session(leader.Pid)
		switch {
		case err != nil:
			return err
		case len(running) == 0:
			<-done
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("still running: %s", strings.Join(running, ", "))
		}
		time.Sleep(pollInterval)
	}
}

// session lists the names of the running processes in the session or the group of this
// process. It leaves out zombies.
func session(leader int) (running []string, err error) {
	id := strconv.Itoa(leader)
	err = eachProcess(func(_ int, name, parent, group, session string) {
		if group == id || session == id {
			running = append(running, name)
		}
	})
	return running, err
}

// eachProcess calls fn with the processes that are running, and no zombies.
func eachProcess(fn func(pid int, name, parent, group, session string)) error {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name is in brackets and may hold anything. After it come state,
		// parent, group and session.
		end := bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[end+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) < 4 || err != nil {
			return fmt.Errorf("%s: unexpected %q", path, stat)
		}
		if state := fields[0]; state != "Z" && state != "X" {
			fn(pid, string(stat[:end+1]), fields[1], fields[2], fields[3])
		}
	}
	return nil
}

// runAs makes a command run as another user, which only root can.
func runAs(cmd *exec.Cmd, o owner) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}}
	}
}

// signal sends a signal to all processes of the server, which have sessions of their own, and
// returns them. The first one, which starts the others, is stopped meanwhile.
func (s *PostgresServer) signal(signal syscall.Signal) (all []int, err error) {
	first := s.cmd.Process.Pid
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	err = eachProcess(func(pid int, _, parent, _, _ string) {
		if parent == strconv.Itoa(first) {
			all = append(all, pid)
		}
	})
	all = append(all, first)
	for _, pid := range all {
		if failed := syscall.Kill(pid, signal); failed != nil && failed != syscall.ESRCH { // it ended meanwhile
			err = errors.Join(err, failed)
		}
	}
	return all, err
}

// Freeze stops all processes of the server, and lets them go on with false.
func (s *PostgresServer) Freeze(frozen bool) (err error) {
	if frozen {
		_, err = s.signal(syscall.SIGSTOP)
	} else {
		_, err = s.signal(syscall.SIGCONT)
	}
	return err
}

// end kills all processes of the server at once and waits until they are gone. Further calls
// do nothing.
func (s *PostgresServer) end() error {
	select {
	case <-s.done:
		return nil
	default:
	}
	all, err := s.signal(syscall.SIGKILL)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(pollInterval) {
		left := 0
		if err := eachProcess(func(pid int, _, _, _, _ string) {
			if slices.Contains(all, pid) {
				left++
			}
		}); err != nil {
			return err
		}
		if left == 0 {
			<-s.done
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes of the server do not end", left)
		}
	}
}
