package house

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/commands/admin"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/child"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/vault/kv"
)

// What begins to wait for a person by an agent's command is told to them by a program that the
// administrator has set as notify_command. It is started with ids of the outbox, names of
// accounts and a number: nothing that an agent or a sender wrote. It has no part in the send,
// which neither waits for it nor learns what became of it.
//
// All processes of a vault start one such program every notifyEvery at most, which none
// outlives. What begins to wait meanwhile is told of together, by the next; a process that ends
// before leaves it to the next that any process starts.
const (
	notifyEvery = 10 * time.Second
	notifyTime  = notifyEvery - time.Second
	notifyNamed = 5       // ids that are written out
	notifyPrint = 1 << 20 // bytes that the program may print, which nobody reads
)

// notified is the record that all processes share.
type notified struct {
	Started time.Time `json:"started"`           // of the last program
	Begun   []string  `json:"begun,omitempty"`   // ids of what has begun to wait since
	Failure string    `json:"failure,omitempty"` // of the last program
	Command []string  `json:"command,omitempty"` // it was
}

const notifyBucket = "notify"

var notifyKey = []byte("last")

func readNotified(tx kv.Tx) (last notified, err error) {
	record, err := tx.Get(notifyBucket, notifyKey)
	if record != nil {
		_ = json.Unmarshal(record, &last) // a damaged one is as good as none
	}
	return last, err
}

// updateNotified lends the record to change.
func (s *store) updateNotified(ctx context.Context, change func(*notified)) error {
	return s.Update(ctx, func(tx kv.Tx) error {
		last, err := readNotified(tx)
		if err != nil {
			return err
		}
		change(&last)
		record, err := json.Marshal(last)
		if err != nil {
			return err
		}
		return tx.Put(notifyBucket, notifyKey, record)
	})
}

// notifier starts the program.
type notifier struct {
	store   *store
	environ []string
	ending  chan struct{} // closed when the process ends
	limit   time.Duration // for how long the program may run

	mu      sync.Mutex
	begun   []string // ids of what has begun to wait and is not in the record
	running bool
	ended   bool
	work    sync.WaitGroup
}

// waits notes that an entry begins to wait, unless a person did that, who knows.
func (n *notifier) waits(ctx context.Context, id string) {
	p := principalOf(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.Admin || p.Name == mail.PersonPrincipal || n.ended {
		return
	}
	if n.begun = append(n.begun, id); !n.running {
		n.running = true
		n.work.Go(n.run)
	}
}

// close lets the program that runs end, and starts no other.
func (n *notifier) close() {
	n.mu.Lock()
	if !n.ended {
		n.ended = true
		close(n.ending)
	}
	n.mu.Unlock()
	n.work.Wait()
}

// run tells of everything that has begun to wait.
func (n *notifier) run() {
	for {
		n.mu.Lock()
		begun := n.begun
		n.begun = nil
		n.mu.Unlock()
		command, ids, wait := n.claim(n.store.life, begun)
		if len(ids) > 0 {
			n.tell(n.store.life, command, ids)
		}
		if wait > 0 {
			select {
			case <-time.After(wait):
				continue
			case <-n.ending:
				return
			}
		}
		n.mu.Lock()
		n.running = len(n.begun) > 0
		again := n.running
		n.mu.Unlock()
		if !again {
			return
		}
	}
}

// claim takes the next start, with what has begun to wait here and elsewhere, or says how long to
// wait for it. It gives nothing where there is no program, or nothing to tell.
func (n *notifier) claim(ctx context.Context, begun []string) (command, ids []string, wait time.Duration) {
	c, err := n.store.Config(ctx)
	if err != nil || len(c.NotifyCommand) == 0 {
		return nil, nil, 0
	}
	err = n.store.updateNotified(ctx, func(last *notified) {
		last.Begun = append(last.Begun, begun...)
		last.Begun = last.Begun[max(0, len(last.Begun)-mail.MaxOutboxLimit):]
		if len(last.Begun) == 0 {
			return
		}
		now := time.Now().UTC().Round(0)
		if passed := now.Sub(last.Started); passed >= 0 && passed < notifyEvery { // a clock may have been set back
			wait = notifyEvery - passed
			return
		}
		ids, last.Begun, last.Started = last.Begun, nil, now
	})
	if err != nil {
		return nil, nil, 0
	}
	return c.NotifyCommand, ids, wait
}

// tell starts the program about those entries that still wait. A process that can write into the
// vault could have made one up: its id and account must be what they can be.
func (n *notifier) tell(ctx context.Context, command, ids []string) {
	waiting, _, err := n.store.ListOutgoing(ctx, mail.OutboxQuery{States: []mail.OutboxState{mail.OutboxWaiting}, Limit: mail.MaxOutboxLimit,
		Only: func(o *mail.Outgoing) bool {
			return slices.Contains(ids, o.ID) && mail.ValidAccountName(o.ID) && mail.ValidAccountName(o.Account)
		}})
	if err != nil || len(waiting) == 0 {
		return
	}
	run, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.limit)
	defer cancel()
	_, err = child.Run(run, child.Program{Args: notifyArgs(command, waiting), Env: notifyEnviron(n.environ), Dir: string(filepath.Separator), MaxOutput: notifyPrint})
	failure := ""
	var exit *exec.ExitError
	switch {
	case err == nil:
	case run.Err() != nil:
		failure = fmt.Sprintf("it did not end within %d s", int(n.limit.Seconds()))
	case errors.Is(err, child.ErrStart):
		failure = "it could not be started"
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		failure = fmt.Sprintf("it ended with status %d", exit.ExitCode())
	default:
		failure = "it did not end properly"
	}
	noting, end := context.WithTimeout(context.Background(), n.store.closing) // the process may be ending
	defer end()
	_ = n.store.updateNotified(noting, func(last *notified) { last.Failure, last.Command = failure, command })
}

// notifyArgs fills in the placeholders of a command.
func notifyArgs(command []string, waiting []mail.Outgoing) []string {
	var ids, accounts []string
	recipients := 0
	for _, o := range slices.Backward(waiting) { // the oldest first
		ids, accounts, recipients = append(ids, o.ID), append(accounts, o.Account), recipients+len(o.Recipients)
	}
	slices.Sort(accounts)
	named := strings.Join(ids[:min(notifyNamed, len(ids))], ", ")
	if more := len(ids) - notifyNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	fill := strings.NewReplacer("{id}", named, "{account}", strings.Join(slices.Compact(accounts), ", "), "{recipients}", strconv.Itoa(recipients))
	args := []string{command[0]}
	for _, a := range command[1:] {
		args = append(args, fill.Replace(a))
	}
	return args
}

// notifyPassed are the variables that the program gets where they are set: those by which
// programs find themselves, the person's language and the desktop.
var notifyPassed = strings.Fields("PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS " +
	"SYSTEMROOT SYSTEMDRIVE WINDIR TEMP TMP USERPROFILE USERNAME LOCALAPPDATA APPDATA")

func notifyEnviron(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		return !slices.Contains(notifyPassed, name)
	})
}

// notifyChecks are doctor's line about a program that failed the last time it was started.
func (h *House) notifyChecks(ctx context.Context) []admin.Check {
	c, err := h.store.Config(ctx)
	if err != nil || len(c.NotifyCommand) == 0 || principalOf(ctx).Scope != nil {
		return nil
	}
	var last notified
	if h.store.View(ctx, func(tx kv.Tx) (err error) { last, err = readNotified(tx); return err }) != nil || last.Failure == "" ||
		!slices.Equal(last.Command, c.NotifyCommand) {
		return nil
	}
	return []admin.Check{{Name: "notify_command", Detail: fmt.Sprintf("The program that tells the person what waits failed at %s: %s.", last.Started.Format(time.RFC3339), last.Failure),
		Code: discovery.ConfigError, Hint: "The administrator runs it by hand, and corrects it with 'config set notify_command'."}}
}
