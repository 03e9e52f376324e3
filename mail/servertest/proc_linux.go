package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownSession gives a server its own session, by which all its processes can be found. The
// kernel forgets to end it with this process if it changes its user for a moment, as
// Postfix does; a leash does not.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

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
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	id := strconv.Itoa(leader)
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name is in brackets and may hold anything. After it come state,
		// parent, group and session.
		end := bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[end+1:]))
		if len(fields) < 4 {
			return nil, fmt.Errorf("%s: unexpected %q", path, stat)
		}
		if state := fields[0]; state != "Z" && state != "X" && (fields[2] == id || fields[3] == id) {
			running = append(running, string(stat[:end+1]))
		}
	}
	return running, nil
}

// runAs makes a command run as another user, which only root can.
func runAs(cmd *exec.Cmd, o owner) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}}
	}
}
