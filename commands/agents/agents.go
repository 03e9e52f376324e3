package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
	"github.com/postern-mail/postern/internal/plain"
	"github.com/postern-mail/postern/vault"
	"github.com/postern-mail/postern/vault/agentmail"
)

// Deps is what the commands work on. Only Mailbox and ReadFile are required.
type Deps struct {
	Mailbox *agentmail.Mailbox

	// Identity is the one that this process may act as; empty means any.
	Identity string

	// Owned reports whether a grant has an identity, so that only its clients act as that one;
	// nil means that none does.
	Owned func(ctx context.Context, identity string) (bool, error)

	// ReadFile reads a file of the attachment directory that has at most limit bytes. The
	// error matches argument.ErrTooLarge for a longer one.
	ReadFile func(ctx context.Context, name string, limit int64) ([]byte, error)

	// HostFile reads a regular file of at most limit bytes that the caller named as the
	// machine knows it; nil means that only files below the attachment directory exist.
	// The error is as that of ReadFile.
	HostFile func(path string, limit int64) ([]byte, error)
}

// Commands lists the commands of the agent mailbox.
func Commands(d *Deps) []*discovery.Command {
	list := []*discovery.Command{send(d), read(d), ack(d), status(d), cleanup(d)}
	return append([]*discovery.Command{describe(list)}, list...)
}

// IsCommand reports whether a command works on the agent mailbox.
func IsCommand(c *discovery.Command) bool { return strings.HasPrefix(c.Path, "agent ") }

// Kinds of messages, as the answers name them.
const (
	direct    = "direct"
	broadcast = "broadcast"
)

// Message is a message between agents (003, command contract of read).
type Message struct {
	ID        string `json:"id" jsonschema:"format=uuid"`
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	Subject   string `json:"subject" acli:"untrusted"`
	Body      string `json:"body" acli:"untrusted"`
	Refs      orNull `json:"refs" acli:"untrusted"`
	ReplyTo   orNull `json:"reply_to"`
	Type      string `json:"type" jsonschema:"enum=direct,enum=broadcast"`
	TTLHours  int    `json:"ttl_hours"`
	Created   string `json:"created" jsonschema:"format=date-time"`
	ReadAt    orNull `json:"read_at"`
	AckedAt   orNull `json:"acked_at"`
}

// orNull is a string that is null in JSON where it is empty.
type orNull string

// MarshalJSON implements json.Marshaler.
func (s orNull) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return plain.JSON(string(s))
}

// JSONSchema implements the reflector's interface.
func (orNull) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": []string{"string", "null"}}}
}

func messageOf(m *agentmail.Message) Message {
	return Message{ID: m.ID, Sender: m.Sender, Recipient: m.Recipient, Subject: m.Subject, Body: m.Body, Refs: orNull(m.Refs),
		ReplyTo: orNull(m.ReplyTo), Type: typeOf(m), TTLHours: ttlHours, Created: timestamp(m.Created),
		ReadAt: orNull(timestamp(m.ReadAt)), AckedAt: orNull(timestamp(m.AckedAt))}
}

const ttlHours = int(agentmail.TTL / time.Hour)

func typeOf(m *agentmail.Message) string {
	if m.Broadcast() {
		return broadcast
	}
	return direct
}

// timestamp writes a moment in the local zone with its offset (003 TC11), or nothing
// for none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02T15:04:05.000000-07:00")
}

// Bounds of a message, which has to fit into an answer whole.
const (
	maxBody   = 128 << 10 // bytes
	maxAnswer = 240 << 10 // of all messages of an answer, encoded
)

// roomFor bounds an answer that shows these fields of its messages, all of them where
// none is named.
func roomFor(fields []string) agentmail.Room {
	return agentmail.Room{Room: maxAnswer, Size: func(m *agentmail.Message) int {
		shown := messageOf(m)
		for name, text := range map[string]*string{"subject": &shown.Subject, "body": &shown.Body} {
			if len(fields) > 0 && !slices.Contains(fields, name) {
				*text = ""
			}
		}
		if len(fields) > 0 && !slices.Contains(fields, "refs") {
			shown.Refs = ""
		}
		return encodedSize(shown) + 1
	}}
}

// encodedSize is how many bytes v takes at most in an answer, which escapes what is
// plain.Unclear with up to 12.
func encodedSize(v any) int {
	b, _ := plain.JSON(v) // what has no JSON form fails as an answer
	n := len(b)
	for _, r := range string(b) {
		if plain.Unclear(r) {
			n += 12
		}
	}
	return n
}

// asAgent refuses a caller that is bound to another identity than the one it gives, and one
// that is bound to none the identities of grants.
func (d *Deps) asAgent(ctx context.Context, call *discovery.Call, agent string) error {
	call.Target = "as " + agent
	bound := d.identity(call)
	if bound == agent || bound == "" && (d.Owned == nil || call.Admin) {
		return nil
	}
	if bound == "" {
		owned, err := d.Owned(ctx, agent)
		if err != nil || !owned {
			return err
		}
		return &discovery.Fault{Code: discovery.PermissionDenied, Reason: "identity", Message: fmt.Sprintf("The identity %s belongs to another client.", agent),
			Hint: "Use an identity of your own, such as that of your project and what you do there."}
	}
	if !vault.ValidAgentIdentity(bound) {
		return BadIdentity()
	}
	return &discovery.Fault{Code: discovery.PermissionDenied, Reason: "identity",
		Message: fmt.Sprintf("You are bound to the identity %s and cannot act as another.", bound),
		Hint:    fmt.Sprintf("Use %s.", bound)}
}

// BadIdentity is the failure of a process whose environment binds it to a malformed
// identity.
func BadIdentity() *discovery.Fault {
	return &discovery.Fault{Code: discovery.ConfigError, Message: "The identity that this process is bound to is malformed.",
		Hint: "POSTERN_AGENT_IDENTITY must be project:name, in lower-case letters, digits and hyphens."}
}

// identity is the one that the caller is bound to, by its grant or else by this process.
// Empty means that it may act as any.
func (d *Deps) identity(call *discovery.Call) string { return cmp.Or(call.Identity, d.Identity) }

// bound reports whether the caller sees only what concerns its own identity.
func (d *Deps) bound(call *discovery.Call) bool { return d.identity(call) != "" }

// faultOf says which message is missing.
func faultOf(err error) error {
	switch {
	case errors.Is(err, agentmail.ErrNoMessage):
		return &discovery.Fault{Code: discovery.NotFound, Message: "There is no message with this id: it was never sent, or has expired.",
			Hint: "Run 'agent read AGENT --all' to list the messages; each lives 24 hours.", Err: err}
	}
	return err
}

// checkText checks text of a message by 003 TC3: of the control characters below
// U+0020 only line ends and tabs may be in it.
func checkText(what, text string) error {
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' }); i >= 0 {
		return fmt.Errorf("%s must not hold control characters other than line ends and tabs, and holds %U", what, text[i])
	}
	return nil
}

// canonicalRefs returns the canonical form of a JSON array of strings.
func canonicalRefs(text string) (string, error) {
	malformed := errors.New("--refs must be a JSON array of strings, such as '[\"notes/plan.md\"]'")
	d := json.NewDecoder(strings.NewReader(text))
	var refs []*string
	if err := d.Decode(&refs); err != nil || refs == nil || slices.Contains(refs, nil) {
		return "", malformed
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", malformed
	}
	canonical, err := plain.JSON(refs)
	return string(canonical), err
}

// body is the text of a body file, byte for byte.
func (d *Deps) body(ctx context.Context, name string) (string, error) {
	read := func() ([]byte, error) { return d.ReadFile(ctx, name, maxBody) }
	if d.HostFile != nil {
		read = func() ([]byte, error) { return d.HostFile(name, maxBody) }
	}
	content, err := read()
	switch {
	case errors.Is(err, argument.ErrTooLarge):
		return "", &discovery.Fault{Code: discovery.ValidationError, Message: fmt.Sprintf("The body file has more than %d KiB.", maxBody>>10),
			Hint: "Keep it as a file, and name its path with --refs.", Err: err}
	case err != nil:
		return "", err
	case !utf8.Valid(content):
		return "", &discovery.Fault{Code: discovery.ValidationError, Message: "The body file is not in UTF-8.", Hint: "Save it as UTF-8, or name its path with --refs."}
	}
	if err := checkText("The body file", string(content)); err != nil {
		return "", &discovery.Fault{Code: discovery.ValidationError, Message: sentence(err), Hint: "Name the path of a binary file with --refs."}
	}
	return string(content), nil
}

func sentence(err error) string { return err.Error() + "." }
