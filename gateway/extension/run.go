package extension

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/gateway"
	"github.com/postern-mail/postern/internal/child"
	"github.com/postern-mail/postern/internal/plain"
)

const (
	// maxConcurrent is how many programs of a directory run at once. Other calls wait.
	maxConcurrent = 4
	// maxAnswer leaves room for the envelope.
	maxAnswer = gateway.MaxAnswerBytes - 4096
	// notFound is the status with which env says that there is no interpreter.
	notFound = 127
)

// runner runs the programs of a directory. It is safe for concurrent use.
type runner struct {
	dir      string // as it was named
	launcher []string
	environ  []string
	slots    chan struct{}
}

func newRunner(dir string, o Options) *runner {
	return &runner{dir: dir, launcher: slices.Clone(o.Launcher), environ: environment(o.Environ), slots: make(chan struct{}, maxConcurrent)}
}

// job is one command of an extension.
type job struct {
	path      string
	program   *program
	output    *discovery.Shape
	effect    discovery.Effect
	sensitive []string // names of arguments whose values no error may repeat
}

// input is what a program reads from standard input.
type input struct {
	Command   string          `json:"command"`
	Arguments json.RawMessage `json:"arguments"`
	Principal string          `json:"principal"`
	Admin     bool            `json:"admin"`
	Deadline  string          `json:"deadline,omitempty"` // RFC 3339; the program is killed then
}

// run has the program do one command. When it returns, the program and its process
// group are gone.
func (r *runner) run(ctx context.Context, call *discovery.Call, j *job, args json.RawMessage) (json.RawMessage, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil { // also where both were ready
		return nil, fmt.Errorf("extension: %w", err) // nothing was started
	}
	if err := j.program.check(r.dir); err != nil {
		return nil, &discovery.Fault{Code: discovery.ConfigError, Message: fmt.Sprintf("The extension cannot be run: %s.", err),
			Hint: "'doctor' says more on the machine where it is installed; a changed extension is read when Postern is started again.", Err: err}
	}
	in := input{Command: j.path, Arguments: args, Principal: call.Principal, Admin: call.Admin}
	if deadline, ok := ctx.Deadline(); ok {
		in.Deadline = deadline.UTC().Format(time.RFC3339)
	}
	given, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	argv := []string{j.program.path}
	if len(r.launcher) > 0 {
		argv = append(slices.Clone(r.launcher), strconv.FormatInt(seconds(ctx), 10), j.program.path)
	}
	out, err := child.Run(ctx, child.Program{Args: argv, Env: r.environ, Dir: j.program.dir, Stdin: append(given, '\n'), MaxOutput: maxAnswer})
	switch {
	case errors.Is(err, child.ErrOutput):
		return nil, j.fault(nil, "The extension printed more than %d KiB.", maxAnswer>>10)
	case ctx.Err() != nil:
		return nil, j.stopped(ctx, ctx.Err())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, j.failure(out, exit.ExitCode(), args)
	}
	if err != nil {
		return nil, j.fault(err, "The extension's program cannot be started.")
	}
	return j.answer(out)
}

// stopped is the error of a program that was killed with its command.
func (j *job) stopped(ctx context.Context, err error) error {
	if j.effect == discovery.Read || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("extension: %w", context.Cause(ctx)) // the gateway has the words
	}
	return &discovery.Fault{Code: discovery.Timeout, Message: "The extension was stopped when its time was over; it is not known what it did before.",
		Hint: "Find out what it did before you run it again, with more time: --timeout SECONDS (at most 300).", Err: err}
}

// fault is a failure that the program did not describe itself.
func (j *job) fault(err error, format string, v ...any) *discovery.Fault {
	hint := "To see why, run its program by hand where it is installed."
	if j.effect != discovery.Read {
		hint = "It is not known what it did before: find out before you run it again. " + hint
	}
	return &discovery.Fault{Code: discovery.ExecutionError, Message: fmt.Sprintf(format, v...), Hint: hint, Err: err}
}

// answer checks the output of a program that ended with status 0.
func (j *job) answer(out []byte) (json.RawMessage, error) {
	data, err := scrub(out, false)
	if err != nil {
		return nil, j.fault(err, "The extension's output cannot be used: %s.", err)
	}
	if j.output == nil {
		return data, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if !j.output.Fits(v) {
		return nil, j.fault(nil, "The extension's output does not match its manifest.")
	}
	return data, nil
}

// codes are the codes that a program may answer with. The others are about the gateway,
// which it does not know.
var codes = []discovery.Code{discovery.ValidationError, discovery.ExecutionError, discovery.PermissionDenied, discovery.RateLimited,
	discovery.Timeout, discovery.NotFound, discovery.Conflict, discovery.AuthFailed, discovery.ConnectionFailed, discovery.ConfigError,
	discovery.ApprovalRequired}

// failure is the error of a program that ended with a status other than 0. Its own
// words are used where it printed an error as it should, and was given no value that
// they could repeat.
func (j *job) failure(out []byte, status int, args json.RawMessage) error {
	var said struct {
		Error struct {
			Code    discovery.Code `json:"code"`
			Message string         `json:"message"`
			Hint    string         `json:"hint"`
		} `json:"error"`
	}
	clean, err := scrub(out, false)
	if err == nil {
		err = decode(clean, &said)
	}
	message, hint := shorten(said.Error.Message), shorten(said.Error.Hint)
	switch {
	case status < 0:
		return j.fault(nil, "The extension was ended by the system, perhaps for the memory or processor time it used.")
	case len(out) == 0 && (status == child.CannotStart || status == notFound):
		return j.fault(nil, "The extension's program or its interpreter cannot be started.")
	case err != nil || message == "":
		return j.fault(nil, "The extension failed (status %d) and did not say why.", status)
	case j.knowsSecret(args):
		return j.fault(nil, "The extension failed (status %d). Its error text is not shown, since it was given a sensitive value.", status)
	}
	f := &discovery.Fault{Code: discovery.ExecutionError, Message: message, Hint: cmp.Or(hint, fmt.Sprintf("Run 'help %s' for its arguments.", j.path)), Foreign: true}
	if slices.Contains(codes, said.Error.Code) {
		f.Code = said.Error.Code
	}
	return f
}

// shorten makes one line of a message, at most as long as any text of a manifest.
func shorten(s string) string { return plain.Clip(plain.Line(s), maxLongText) }

// knowsSecret reports whether a program was given the value of a sensitive argument.
func (j *job) knowsSecret(args json.RawMessage) bool {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return true
	}
	return slices.ContainsFunc(j.sensitive, func(name string) bool { return given[name] != nil })
}

// The deadline ends a program; the limit on processor time ends its processes that have left
// the process group, or that live longer than this process.
const (
	defaultSeconds = 300
	processors     = 4
)

// seconds is how much processor time a program gets until ctx ends.
func seconds(ctx context.Context) int64 {
	n := int64(defaultSeconds)
	if deadline, ok := ctx.Deadline(); ok {
		n = int64(time.Until(deadline)/time.Second) + 1
	}
	return max(n, 1) * processors
}
