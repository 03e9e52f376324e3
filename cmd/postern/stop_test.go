//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-mail/postern/cmd/postern/internal/house"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway/gatewaytest"
	"github.com/postern-mail/postern/internal/testmain"
	"github.com/postern-mail/postern/mail"
	"github.com/postern-mail/postern/mail/servertest"
	"github.com/postern-mail/postern/vault"
)

// begun is what begins something on a wire: a connection, a tagged command of IMAP, a
// command of SMTP. A goodbye, the end of an IDLE and the rest of a message that is
// leaving are none.
type begun struct {
	at   time.Time
	what string
}

// stopWire stands in the clear before a TLS server, and sees what begins.
type stopWire struct {
	port uint16
	smtp bool

	mu    sync.Mutex
	begun []begun
	idle  map[net.Conn]bool

	held    chan struct{} // closed when the message HELD is in DATA
	release chan struct{} // closed by free
	free    func()        // lets its end pass
}

func newStopWire(t *testing.T, e mail.Endpoint, roots *x509.CertPool, smtp bool) *stopWire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &stopWire{port: uint16(l.Addr().(*net.TCPAddr).Port), smtp: smtp, idle: map[net.Conn]bool{}, held: make(chan struct{}), release: make(chan struct{})}
	var passing sync.WaitGroup
	w.free = sync.OnceFunc(func() { close(w.release) })
	ended := t.Context()
	t.Cleanup(func() { _ = l.Close(); w.free(); passing.Wait() })
	target := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	passing.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			w.note("a connection")
			passing.Go(func() {
				defer client.Close()
				defer context.AfterFunc(ended, func() { _ = client.Close() })()
				server, err := tls.Dial("tcp", target, &tls.Config{RootCAs: roots, ServerName: e.Host})
				if err != nil {
					return
				}
				defer server.Close()
				passing.Go(func() {
					_, _ = io.Copy(client, server)
					_ = client.Close()
				})
				w.read(client, bufio.NewReader(client), server)
				w.mu.Lock()
				delete(w.idle, client)
				w.mu.Unlock()
			})
		}
	})
	return w
}

func (w *stopWire) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, begun{time.Now(), what})
}

// read passes lines on, with literals and messages as they are.
func (w *stopWire) read(client net.Conn, in *bufio.Reader, server io.Writer) {
	within, data, hold := false, false, false
	for {
		line, err := in.ReadString('\n')
		text := strings.TrimRight(line, "\r\n")
		verb := strings.ToUpper(text)
		if _, rest, tagged := strings.Cut(verb, " "); tagged && !w.smtp {
			verb = rest
		}
		switch {
		case err != nil:
			return
		case data:
			hold = hold || strings.HasPrefix(text, "Subject: HELD")
			if data = text != "."; !data && hold {
				close(w.held)
				<-w.release
			}
		case within, verb == "QUIT", verb == "LOGOUT":
		case verb == "DONE":
			w.mu.Lock()
			delete(w.idle, client)
			w.mu.Unlock()
		case w.smtp || strings.Contains(text, " "): // not the answer to a challenge
			w.note(verb)
			data = w.smtp && verb == "DATA"
			if !w.smtp && verb == "IDLE" {
				w.mu.Lock()
				w.idle[client] = true
				w.mu.Unlock()
			}
		}
		if _, err := io.WriteString(server, line); err != nil {
			return
		}
		m := announced.FindStringSubmatch(text)
		if within = !w.smtp && m != nil; within {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			if _, err := io.CopyN(server, in, n); err != nil {
				return
			}
		}
	}
}

// since returns what began after t, and how many sessions rest in IDLE.
func (w *stopWire) since(t time.Time) (after []string, idle int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.begun {
		if b.at.After(t) {
			after = append(after, fmt.Sprintf("%s after %s", b.what, b.at.Sub(t)))
		}
	}
	return after, len(w.idle)
}

// stopServers are servers that an account reaches in the clear through wires.
type stopServers struct {
	account    mail.Account
	password   string
	imap, smtp *stopWire
	sent       func() []string // the subjects of all messages that reached bob@example.com
}

// stopHouse is a vault with an account of Dovecot and Postfix; where tests are to be short, of
// the demo's servers.
func stopHouse(t *testing.T) (testVault, *stopServers) {
	t.Helper()
	v, s := newVault(t), &stopServers{}
	if testing.Short() {
		servers := sampleServers(t)
		s.account, s.password = servers.Account(), servers.Password.Reveal()
		s.sent = func() (subjects []string) {
			for _, m := range servers.Outgoing() {
				subjects = append(subjects, subjectOf(m.Raw))
			}
			return subjects
		}
	} else {
		dovecot := servertest.Dovecot(t, servertest.Config{Submission: true})
		postfix := servertest.Postfix(t, servertest.PostfixConfig{Dovecot: dovecot})
		s.account, s.password = dovecotAccount(dovecot, "ann"), servertest.Password
		s.account.Username = s.account.Email // where the mail is delivered
		s.account.SMTP = mail.Endpoint{Host: postfix.Host, Port: postfix.SubmissionsPort, Security: mail.TLS}
		dovecot.Deliver(t, s.account.Username, "INBOX", plainMessages(5)...)
		s.sent = func() (subjects []string) {
			postfix.WaitQueueEmpty(t)
			err := filepath.WalkDir(filepath.Join(dovecot.Home, "bob@example.com", "Maildir"), func(path string, d fs.DirEntry, err error) error {
				if err != nil || !strings.Contains("new cur", filepath.Base(filepath.Dir(path))) {
					return err
				}
				raw, err := os.ReadFile(path)
				subjects = append(subjects, subjectOf(raw))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return subjects
		}
	}
	a, roots := s.account, x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CAPEM)
	s.imap, s.smtp = newStopWire(t, a.IMAP, roots, false), newStopWire(t, a.SMTP, roots, true)
	a.IMAP = mail.Endpoint{Host: "127.0.0.1", Port: s.imap.port, Security: mail.Plaintext}
	a.SMTP = mail.Endpoint{Host: "127.0.0.1", Port: s.smtp.port, Security: mail.Plaintext}
	a.Mode, a.CAPEM, a.AllowOut = mail.ReadWrite, nil, mail.AllowList{Enabled: true, Entries: []string{"@example.com", a.Email}}
	v.add(t, a, s.password)
	for name, value := range map[string]string{"sends_per_hour": "10000", "commands_per_minute": "100000"} {
		if err := v.opened(t, 0).SetSetting(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
	}
	return v, s
}

// subjectOf returns the subject of a message, however its lines end.
func subjectOf(raw []byte) string {
	_, subject, _ := strings.Cut(string(raw), "\nSubject: ")
	subject, _, _ = strings.Cut(subject, "\n")
	return strings.TrimRight(subject, "\r")
}

type stopData struct {
	Since   string `json:"stopped_since"`
	By      string `json:"stopped_by"`
	Already bool   `json:"already"`
	Leaving []struct {
		ID string `json:"outbox_id"`
	} `json:"leaving"`
}

// direct runs a command in the direct form.
func (v testVault) direct(t *testing.T, admin bool, data any, words ...string) answer {
	t.Helper()
	r := here(t, v.environment(admin), words...)
	if data != nil {
		if err := json.Unmarshal(works(t, r).Data, data); err != nil {
			t.Fatal(err)
		}
	}
	return r.answer
}

// worker is a process whose agent does one kind of work, again and again.
type worker struct {
	client *gatewaytest.Client
	line   func(n int) string
	waits  bool // for mail, which comes when the test ends
	done   atomic.Int64
	sent   []string // subjects of the messages that were sent
}

// work goes on until quit. A command that a stop refused, ended or cut off is repeated once
// the stop is over; refused counts them.
func (w *worker) work(t *testing.T, quit <-chan struct{}, halt *halt) {
	for n := 0; ; n++ {
		line := w.line(n)
		for {
			select {
			case <-quit:
				return
			default:
			}
			a := answerOf(t, line, []byte(w.client.Call(line).Text()))
			if a.Success {
				w.done.Add(1)
				if _, subject, ok := strings.Cut(line, "--idempotency-key "); ok {
					w.sent = append(w.sent, subject)
				}
				break
			}
			refused := a.Error.Code == discovery.PermissionDenied && strings.Contains(a.Error.Message, "stopped by")
			cut := a.Error.Code == discovery.Timeout && strings.Contains(a.Error.Message, "arrived in the folder is not known") // it came in the middle of an APPEND
			if !refused && !cut {
				t.Errorf("%s: %s", line, a.raw)
				return
			}
			if !halt.wait(w, quit) {
				return
			}
		}
	}
}

// halt counts the workers that a stop has reached, and keeps them until it is over. Each
// comes twice, so that each has also tried to begin something under the stop.
type halt struct {
	mu    sync.Mutex
	times map[*worker]int
	all   chan struct{} // closed when want workers have come twice
	over  chan struct{}
	want  int
}

func (h *halt) wait(w *worker, quit <-chan struct{}) bool {
	h.mu.Lock()
	if h.times[w]++; h.times[w] == 2 {
		if h.want--; h.want == 0 {
			close(h.all)
		}
	}
	again := h.times[w] < 2
	h.mu.Unlock()
	if again {
		return true
	}
	select {
	case <-h.over:
		return true
	case <-quit:
		return false
	}
}

// TestStopStopsEveryProcess has many of them read, send, wait and draft. After the
// answer of stop nothing may begin on a wire, and no IDLE may last.
func TestStopStopsEveryProcess(t *testing.T) {
	t.Parallel()
	processes := testmain.Rounds(8, 20)
	if testing.Short() {
		processes = 4
	}
	v, servers := stopHouse(t)
	imap, smtp := servers.imap, servers.smtp
	quit, h := make(chan struct{}), &halt{times: map[*worker]int{}, all: make(chan struct{}), over: make(chan struct{}), want: processes}
	var workers []*worker
	watchers := 0
	for p := range processes {
		w := &worker{client: serving(t, v)}
		switch p % 4 {
		case 0:
			w.line = func(n int) string {
				return []string{"mail list --limit 3", "mail search invoice", "mail folders --counts", "mail list --new --snippet 60"}[n%4]
			}
		case 1:
			w.line = func(n int) string {
				return fmt.Sprintf("mail send --to bob@example.com --subject p%d-%d --body x --idempotency-key p%d-%d", p, n, p, n)
			}
		case 2:
			w.line = func(int) string { return "mail watch --wait 250" }
			w.waits = true
			watchers++
		default:
			w.line = func(n int) string { return fmt.Sprintf("mail draft --subject d%d --body x", n) }
		}
		workers = append(workers, w)
	}
	var working sync.WaitGroup
	for _, w := range workers {
		working.Go(func() { w.work(t, quit, h) })
	}
	moved := func(what string, from []int64) {
		t.Helper()
		eventually(t, what, func() bool {
			_, idle := imap.since(time.Now())
			for i, w := range workers {
				if !w.waits && w.done.Load() < from[i]+2 {
					return false
				}
			}
			return idle >= watchers
		})
	}
	moved("everybody works", make([]int64, processes))

	// A sender dies in the middle, and a message is in DATA for as long as the test wants.
	doomed := serving(t, v)
	doomed.Begin("mail send --to bob@example.com --subject DOOMED --body x --idempotency-key DOOMED")
	_ = doomed.Process.Process.Kill()
	slow := serving(t, v)
	sending := slow.Begin("mail send --to bob@example.com --subject HELD --body x")
	<-smtp.held

	// A stop holds also when its process is killed before it answers.
	killed := program(t, v.environment(false), "stop")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stop holds", func() bool { s, err := v.opened(t, 0).Stopped(t.Context(), 0); return err == nil && s != nil })
	_ = killed.Process.Kill()
	_ = killed.Wait()

	var stopped stopData
	v.direct(t, false, &stopped, "stop")
	answered := time.Now()
	if _, idle := imap.since(answered); idle > 0 {
		t.Errorf("%d sessions rest in IDLE after the answer", idle)
	}
	if !stopped.Already || stopped.By != "agent" || len(stopped.Leaving) != 1 {
		t.Errorf("stop = %+v", stopped)
	}
	select {
	case <-h.all: // everybody has tried to go on
	case <-time.After(time.Minute):
		h.mu.Lock()
		left := h.want
		h.mu.Unlock()
		t.Fatalf("a minute after the stop %d of %d processes are still at work", left, processes)
	}

	// Nobody but the administrator goes on; what only reads what is here still runs.
	if a := v.direct(t, false, nil, "resume"); a.Error.Code != discovery.PermissionDenied {
		t.Errorf("an agent resumes: %s", a.raw)
	}
	var policy struct{ Stopped string }
	v.direct(t, false, &policy, "policy", "show")
	if !strings.Contains(policy.Stopped, "stopped by agent since") {
		t.Errorf("policy show says %q", policy.Stopped)
	}
	if a := v.direct(t, false, nil, "doctor"); !a.Success || !bytes.Contains(a.raw, []byte("stopped by agent since")) {
		t.Errorf("doctor: %s", a.raw)
	}
	agent := serving(t, v)
	for _, line := range []string{"outbox list", "mail accounts", "help", "agent status"} {
		if a := answerOf(t, line, []byte(agent.Call(line).Text())); !a.Success {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	admin := gatewaytest.Start(t, program(t, v.environment(true), "serve"))
	for _, line := range []string{"mail list", "agent read a:b", "mail verify", "outbox approve x"} {
		if a := answerOf(t, line, []byte(admin.Call(line).Text())); a.Error.Code != discovery.PermissionDenied {
			t.Errorf("%s: %s", line, a.raw)
		}
	}
	smtp.free() // the message that was leaving leaves whole
	if a := answerOf(t, "the message in DATA", []byte(slow.Answer(sending).Text())); !a.Success {
		t.Errorf("the message in DATA: %s", a.raw)
	}
	for _, w := range []*stopWire{imap, smtp} {
		if after, _ := w.since(answered); len(after) > 0 {
			t.Errorf("%d began after the answer: %s", len(after), strings.Join(after, "; "))
		}
	}

	from := make([]int64, processes)
	for i, w := range workers {
		from[i] = w.done.Load()
	}
	if a := v.direct(t, true, nil, "resume"); !a.Success {
		t.Fatalf("resume: %s", a.raw)
	}
	close(h.over)
	moved("everybody works again", from)
	close(quit)
	if a := v.direct(t, true, nil, "mail", "send", "--to", servers.account.Email, "--subject", "END", "--body", "x"); !a.Success {
		t.Fatalf("the message that ends the test: %s", a.raw)
	}
	working.Wait()
	got := map[string]int{}
	for _, subject := range servers.sent() {
		if got[subject]++; got[subject] > 1 {
			t.Errorf("%s was sent %d times", subject, got[subject])
		}
	}
	for _, w := range workers {
		for _, subject := range append(w.sent, "HELD") {
			if got[subject] != 1 {
				t.Errorf("%s was answered as sent and was sent %d times", subject, got[subject])
			}
		}
	}
	audited := map[string]bool{}
	records, err := v.opened(t, 0).Audit(t.Context(), vault.AuditQuery{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		audited[r.Parsed+" "+r.Reason] = true
	}
	if !audited["stop "] || !audited["resume "] || !audited["resume role"] || !audited["mail list stopped"] {
		t.Errorf("the audit log has %v", audited)
	}
}

// TestAStopHoldsAtEveryDoor: over HTTP too a wait ends, and nothing begins there and in the
// transport profile.
func TestAStopHoldsAtEveryDoor(t *testing.T) {
	t.Parallel()
	v, servers := stopHouse(t)
	imap := servers.imap
	overHTTP, err := connectHTTP(t, serveHTTP(t, v, "--no-auth").url, "", "2026-07-28", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport, _ := carrying(t, &house.TransportOptions{Account: servers.account.Name, Helper: "echo " + servers.password}, v.environment(false)...)
	doors := map[string]func(line string) answer{
		"HTTP":      func(line string) answer { a, _ := call(t, overHTTP, command(line)); return a.answer },
		"transport": func(line string) answer { return envelope(t, transport, line) },
	}
	refused := func(door, line string) {
		if a := doors[door](line); a.Error.Code != discovery.PermissionDenied || !strings.Contains(a.Error.Message, "stopped by agent") {
			t.Errorf("%s: %s: %s", door, line, a.raw)
		}
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { refused("HTTP", "mail watch --wait 200") })
	eventually(t, "it waits", func() bool { _, idle := imap.since(time.Now()); return idle > 0 })
	v.direct(t, false, &stopData{}, "stop")
	waiting.Wait()
	for door := range doors {
		refused(door, "mail list")
	}
}

// announced finds the size of a literal at the end of a line (RFC 9051 section 4.3).
var announced = regexp.MustCompile(`\{(\d+)\+?\}$`)
