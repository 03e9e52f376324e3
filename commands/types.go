package commands

import "github.com/postern-mail/postern/discovery"

// The types of arguments that several commands take.
type (
	accountName  string // of one of ours
	folderName   string // of a mailbox
	oneLine      string // text without control characters
	identity     string // of an agent: project:name
	agentMailID  string // of a message in the agent mailbox
	outboxID     string // of a message in the outbox
	secretSource string // where a secret is read from
	waitTime     string // how long to wait: 50s, 500ms, 2m
)

// texts are values of one of these types as what they are made of.
func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

const linePattern = `^[^\x00-\x1f\x7f]*$`

const lineForm = "must be one line without control characters"

// Bounds implements discovery.Bounded.
func (accountName) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: `^[A-Za-z0-9_-]{1,64}$`, Form: "must be 1 to 64 letters, digits, dashes and underscores"}
}

// Bounds implements discovery.Bounded.
func (folderName) Bounds() discovery.Bounds {
	return discovery.Bounds{MinLength: 1, MaxLength: 256, Pattern: linePattern, Form: lineForm}
}

// Bounds implements discovery.Bounded.
func (oneLine) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: linePattern, Form: lineForm}
}

// Bounds implements discovery.Bounded.
func (identity) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: `^[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*$`, Form: "must be project:name, both of lower-case letters, digits and dashes"}
}

// Bounds implements discovery.Bounded.
func (agentMailID) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`, Form: "must be the id of a message, as 'agent read' shows it"}
}

// Bounds implements discovery.Bounded.
func (outboxID) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: `^[a-z0-9][a-z0-9-]{0,63}$`, Form: "must be an outbox_id as 'outbox list' shows it"}
}

// Bounds implements discovery.Bounded.
func (secretSource) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: `^(stdin|env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$`, Form: "must be stdin, env:NAME or file:PATH"}
}

// Bounds implements discovery.Bounded.
func (waitTime) Bounds() discovery.Bounds {
	return discovery.Bounds{Pattern: `^[1-9][0-9]{0,8}(ms|s|m)?$`, Form: "must be a number of seconds, or a time such as 50s, 500ms or 2m"}
}
