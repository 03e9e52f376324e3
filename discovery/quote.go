package discovery

import "strings"

const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:=,+%#*<>()[]{};!?&|~^$"

// Quote returns a form of the token that a command string can hold: the token
// itself where it is plain, else in quotes.
func Quote(token string) string {
	switch {
	case token == "":
		return "''"
	case strings.Trim(token, bare) == "":
		return token
	case !strings.Contains(token, "'"):
		return "'" + token + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(token) + `"`
}

// JoinCommand makes a command string of tokens, the inverse of tokenizing.
func JoinCommand(tokens []string) string {
	quoted := make([]string, len(tokens))
	for i, t := range tokens {
		quoted[i] = Quote(t)
	}
	return strings.Join(quoted, " ")
}
