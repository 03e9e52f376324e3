package agentmail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/vault"
)

// The environment variables of correspondents: their number, which also gives their
// identity, and how many messages each sends.
const (
	agentNumberEnv  = "VAULT_TEST_AGENT"
	agentLettersEnv = "VAULT_TEST_LETTERS"
	agentMortalEnv  = "VAULT_TEST_MORTAL" // set for one that kills itself while it holds messages
	identities      = 10
)

func identity(n int) string { return fmt.Sprintf("storm:agent-%d", n%identities) }

// correspond sends and reads until its input ends and its inbox is empty. It prints each
// message that it sent once that is durable, and those that it read before it confirms them.
func correspond(ctx context.Context, v *testBox) error {
	number, errNumber := strconv.Atoi(os.Getenv(agentNumberEnv))
	letters, errLetters := strconv.Atoi(os.Getenv(agentLettersEnv))
	if err := errors.Join(errNumber, errLetters); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	dice := rand.New(rand.NewPCG(uint64(number), rand.Uint64()))
	self := identity(number)
	// The moment between taking messages and printing them is too short for a kill from
	// outside.
	mortal := os.Getenv(agentMortalEnv) != ""
	die := func() {
		if p, err := os.FindProcess(os.Getpid()); mortal && dice.IntN(6) == 0 && err == nil && p.Kill() == nil {
			select {}
		}
	}
	for i := 0; ; i++ {
		sending := i < letters
		if sending {
			to := identity(dice.IntN(identities))
			if dice.IntN(10) == 0 {
				to = Everyone
			}
			m, err := v.Send(ctx, Message{Sender: self, Recipient: to, Subject: strconv.Itoa(i)})
			if err != nil {
				return err
			}
			fmt.Println("sent", m.ID, self, to)
			if i%10 != 0 {
				continue
			}
		} else if i == letters {
			fmt.Println("done")
		}
		last := !sending && running.Err() != nil
		in, err := v.Read(ctx, Query{Agent: self, Limit: 50})
		if err != nil {
			return err
		}
		if in.Claim != nil {
			die()
		}
		var said bytes.Buffer
		for _, m := range in.Messages {
			fmt.Fprintln(&said, "read", m.ID, self)
		}
		if _, err := os.Stdout.Write(said.Bytes()); err != nil {
			return err
		}
		if in.Claim != nil {
			die()
			if err := v.Confirm(ctx, self, in.Claim); err != nil {
				return err
			}
		}
		if len(in.Messages) > 0 || sending {
			continue
		}
		if last {
			return nil
		}
		if err := v.Await(running, Query{Agent: self}); err != nil && running.Err() == nil {
			return err
		}
	}
}

// letters are the messages that correspondents reported as sent and read.
type letters struct {
	mu   sync.Mutex
	sent map[string][2]string // by id: sender and recipient
	read map[[2]string]int    // by id and reader
}

func newLetters() *letters { return &letters{sent: map[string][2]string{}, read: map[[2]string]int{}} }

// take reads the output of one process, and calls done when it has sent everything. A
// line without its end does not count.
func (l *letters) take(r io.Reader, done func()) {
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		f := strings.Fields(line)
		l.mu.Lock()
		switch {
		case f[0] == "sent":
			l.sent[f[1]] = [2]string{f[2], f[3]}
		case f[0] == "read":
			l.read[[2]string{f[1], f[2]}]++
		case f[0] == "done":
			done()
		}
		l.mu.Unlock()
	}
}

// compare compares the messages read with those sent. again allows messages to be read twice.
func (l *letters) compare(t *testing.T, again bool) {
	t.Helper()
	lost, twice, foreign := 0, 0, 0
	for id, route := range l.sent {
		for n := range identities {
			who := identity(n)
			times := l.read[[2]string{id, who}]
			switch should := who != route[0] && (route[1] == Everyone || route[1] == who); {
			case should && times == 0:
				lost++
			case should && times > 1:
				twice++
			case !should && times > 0:
				foreign++
			}
		}
	}
	for reading := range l.read {
		if _, ok := l.sent[reading[0]]; !ok && !again { // a killed one may have sent it
			foreign++
		}
	}
	t.Logf("%d messages, %d read again", len(l.sent), twice)
	if lost > 0 || foreign > 0 || twice > 0 && !again {
		t.Errorf("%d were lost, %d read twice, %d read by others", lost, twice, foreign)
	}
}

// correspondent starts one, which ends when its input does.
func correspondent(t *testing.T, path string, k vault.Keys, env ...any) (cmd *exec.Cmd, in io.Closer, out io.Reader) {
	cmd = process("correspondent", path, k.Agent)
	for i := 0; i < len(env); i += 2 {
		cmd.Env = append(cmd.Env, fmt.Sprint(env[i], "=", env[i+1]))
	}
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	cmd.Stderr = new(bytes.Buffer)
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		panic(err)
	}
	return cmd, in, out
}

// TestTwentyCorrespondentsReadEveryMessageOnce has twenty processes, two for each of
// ten identities, send and read a thousand messages at once, or more at night. A thousand that
// have expired are removed meanwhile.
func TestTwentyCorrespondentsReadEveryMessageOnce(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	past := mustOpen(t, path, k, func() time.Time { return time.Now().Add(-TTL - time.Hour) })
	for n := range identities {
		postMany(t, past, "storm:old", identity(n), 100)
	}
	processes, each := 20, size(testmain.Rounds(60, 150), 6)
	book := newLetters()
	var sending, ending sync.WaitGroup
	sending.Add(processes)
	var inputs []io.Closer
	for n := range processes {
		cmd, in, out := correspondent(t, path, k, agentNumberEnv, n, agentLettersEnv, each)
		inputs = append(inputs, in)
		ending.Go(func() {
			once := sync.OnceFunc(sending.Done)
			book.take(out, once)
			once()
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", n, err, cmd.Stderr)
			}
		})
	}
	sending.Wait()
	for _, in := range inputs {
		must(t, in.Close())
	}
	ending.Wait()
	if len(book.sent) != processes*each {
		t.Errorf("%d messages were sent, want %d", len(book.sent), processes*each)
	}
	book.compare(t, false)
	v := mustOpen(t, path, k, nil)
	list, err := v.Status(t.Context(), "", "")
	if err != nil || len(list) != identities || countRecords(t, v, bucketMessages, 0) != len(book.sent) || slices.ContainsFunc(list, func(s Status) bool { return s.Unread != 0 }) {
		t.Errorf("status: %+v, %v", list, err)
	}
	must(t, v.Check(t.Context()))
}

// TestKilledCorrespondentsLoseNothing kills processes at random moments. Messages that
// they had not confirmed are read again, by later processes or at the end of the test.
func TestKilledCorrespondentsLoseNothing(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	processes, rounds := size(10, 6), size(testmain.Rounds(3, 8), 2)
	book := newLetters()
	var ending sync.WaitGroup
	for n := range processes {
		ending.Go(func() {
			for round := range rounds {
				cmd, in, out := correspondent(t, path, k, agentNumberEnv, n, agentLettersEnv, 10_000, agentMortalEnv, strings.Repeat("1", 1-round%2))
				// The kill comes after a random number of lines.
				limited := bufio.NewReader(out)
				var said bytes.Buffer
				for range 1 + rand.IntN(60) {
					line, err := limited.ReadString('\n')
					said.WriteString(line)
					if err != nil {
						break // it died earlier
					}
				}
				_ = cmd.Process.Kill()
				// The output from before the kill counts.
				book.take(io.MultiReader(&said, limited), func() {})
				_ = in.Close()
				if err := cmd.Wait(); cmd.ProcessState.Exited() && runtime.GOOS != "windows" {
					t.Errorf("process %d, round %d was not killed: %v: %s", n, round, err, cmd.Stderr)
				}
			}
		})
	}
	ending.Wait()
	// The leases of the killed processes are over by this clock.
	later := func() time.Time { return time.Now().Add(Lease + time.Second) }
	v := mustOpen(t, path, vault.Keys{Agent: k.Agent}, later)
	for n := range identities {
		for list := fetch(t, v, Query{Agent: identity(n), Limit: 100}); len(list) > 0; list = fetch(t, v, Query{Agent: identity(n), Limit: 100}) {
			for _, m := range list {
				book.read[[2]string{m.ID, identity(n)}]++
			}
		}
	}
	if len(book.sent) < processes*rounds {
		t.Errorf("only %d messages were sent", len(book.sent))
	}
	book.compare(t, true)
	must(t, v.Check(t.Context()))
}

// announce is the process role that sends one message to everyone.
func announce(ctx context.Context, v *testBox) error {
	return second(v.Send(ctx, Message{Sender: identity(0), Recipient: Everyone, Subject: "x"}))
}

// TestWaitingReadersSeeANewMessage waits in one vault for a message sent through the same
// vault, through another one in this process, and by another process.
func TestWaitingReadersSeeANewMessage(t *testing.T) {
	t.Parallel()
	path, k := newPlace(t)
	v, other := mustOpen(t, path, k, nil), mustOpen(t, path, k, nil)
	for name, send := range map[string]func() error{
		"same":    func() error { return announce(t.Context(), v) },
		"another": func() error { return announce(t.Context(), other) },
		"process": func() error { return process("announcer", path, k.Agent).Run() },
	} {
		ended := make(chan error, 1)
		go func() { ended <- v.Await(t.Context(), Query{Agent: "p:b", From: identity(0)}) }()
		must(t, send())
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		reads(t, v, Query{Agent: "p:b"}, "x")
	}
}

func TestAWaitEndsWithItsContextAndTakesNothing(t *testing.T) {
	t.Parallel()
	v := newBox(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Await(ctx, Query{Agent: "p:b"}) }()
	cancel()
	wantErr(t, <-ended, context.Canceled, "without mail")
	post(t, v, "p:a", "p:b", "x")
	for range 2 {
		must(t, v.Await(t.Context(), Query{Agent: "p:b"}))
	}
	reads(t, v, Query{Agent: "p:b"}, "x")
}

func TestAWaitGetsTheMessagesOfADeadReader(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	v := newBox(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	post(t, v, "p:a", "p:b", "x")
	in, err := v.Read(t.Context(), Query{Agent: "p:b"})
	if err != nil || len(in.Messages) != 1 {
		t.Fatalf("%+v, %v", in, err)
	}
	ahead.Store(int64(Lease - 100*time.Millisecond))
	must(t, v.Await(t.Context(), Query{Agent: "p:b"}))
	reads(t, v, Query{Agent: "p:b"}, "x")
}
