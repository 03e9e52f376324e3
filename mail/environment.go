package mail

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-mail/postern/internal/plain"

	"github.com/postern-mail/postern/mail/internal/wire"
)

// EnvironmentPrefix begins every variable of 001, environment variables.
const EnvironmentPrefix = "MAIL_IMAP_"

// The variables of one account are MAIL_IMAP_<ACCOUNT> and one of these.
const (
	suffixHost   = "_HOST"
	suffixPort   = "_PORT"
	suffixSecure = "_SECURE"
	suffixUser   = "_USER"
	suffixPass   = "_PASS"
)

// The variables that hold for all accounts.
const (
	writeVariable    = EnvironmentPrefix + "WRITE_ENABLED"
	connectVariable  = EnvironmentPrefix + "CONNECT_TIMEOUT_MS"
	greetingVariable = EnvironmentPrefix + "GREETING_TIMEOUT_MS"
	socketVariable   = EnvironmentPrefix + "SOCKET_TIMEOUT_MS"
)

// TimeoutVariable is the variable that bounds a stage of a connection.
func TimeoutVariable(stage string) string {
	switch stage {
	case wire.StageConnect, wire.StageTLS:
		return connectVariable
	case wire.StageGreeting:
		return greetingVariable
	}
	return socketVariable
}

// maxTimeout is the longest that a timeout variable can set.
const maxTimeout = time.Hour

// Environment is the accounts that environment variables describe (001, environment
// variables). It does not change and is safe for concurrent use. The zero
// Environment has no account.
type Environment struct {
	accounts map[string]Account
	secrets  map[string]Secret
}

var _ Directory = (*Environment)(nil)

// EnvironmentAccounts reads the accounts out of an environment as os.Environ gives
// it. <ACCOUNT> is upper case in the variables and lower case in the account's
// name: MAIL_IMAP_DEFAULT_HOST belongs to the account default. A variable that is
// empty counts as not set, one that 001 does not have is left alone.
//
//   - _HOST, _USER and _PASS are needed; _PORT is 993, or 143 where _SECURE is false.
//   - _SECURE true, the default, is TLS from the first byte. false is STARTTLS,
//     which must succeed before anything else is said; only to this machine
//     (localhost or a literal loopback address) it means no TLS at all.
//   - MAIL_IMAP_WRITE_ENABLED=true makes every account ReadWrite with the right to
//     delete for good, else they are ReadOnly without it. There is no submission
//     server, so nothing can be sent.
//   - The three timeouts are in milliseconds, 1 to 3,600,000.
//
// The error is an *Error of KindConfig that names the variable to mend and never
// holds the value of one.
func EnvironmentAccounts(environ []string) (*Environment, error) {
	set := make(map[string]string)
	for _, v := range environ {
		if name, value, _ := strings.Cut(v, "="); value != "" && strings.HasPrefix(name, EnvironmentPrefix) {
			set[name] = value
		}
	}
	names, err := environmentNames(set)
	if err != nil || len(names) == 0 {
		return &Environment{}, err
	}
	common, err := environmentCommon(set)
	if err != nil {
		return &Environment{}, err
	}
	e := &Environment{accounts: make(map[string]Account), secrets: make(map[string]Secret)}
	for _, name := range names {
		a, err := environmentAccount(set, EnvironmentPrefix+name, common)
		if err != nil {
			return &Environment{}, err
		}
		a.Name = strings.ToLower(name)
		if err := a.Validate(); err != nil {
			return &Environment{}, environmentError("The account that %s describes cannot be used: %s.", EnvironmentPrefix+name+"_*", err)
		}
		e.accounts[a.Name] = a
		e.secrets[a.Name] = NewSecret([]byte(set[EnvironmentPrefix+name+suffixPass]))
	}
	return e, nil
}

var environmentName = regexp.MustCompile(`\A[A-Z0-9_-]{1,64}\z`)

// environmentNames are the accounts that have at least one variable, as written there,
// sorted.
func environmentNames(set map[string]string) ([]string, error) {
	found := make(map[string]bool)
	for _, variable := range slices.Sorted(maps.Keys(set)) {
		rest := strings.TrimPrefix(variable, EnvironmentPrefix)
		for _, suffix := range []string{suffixHost, suffixPort, suffixSecure, suffixUser, suffixPass} {
			name, ok := strings.CutSuffix("_"+rest, suffix)
			if !ok {
				continue
			}
			switch name = strings.TrimPrefix(name, "_"); {
			case name == "":
				return nil, environmentError("%s names no account: it is MAIL_IMAP_DEFAULT%s for the account default.", variable, suffix)
			case !environmentName.MatchString(name):
				return nil, environmentError("%s names no account: between MAIL_IMAP_ and %s stand 1 to 64 upper-case letters, digits, - or _.", plain.Excerpt(variable, 100), suffix)
			}
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// environmentCommon reads the settings that hold for all accounts.
func environmentCommon(set map[string]string) (Account, error) {
	a := Account{Protocol: IMAP, Auth: AuthPassword, Mode: ReadOnly, Destroy: DestroyOff, AllowOut: AllowList{Enabled: true}, FromEnvironment: true}
	write, err := environmentBool(set, writeVariable, false)
	if err != nil {
		return a, err
	}
	if write {
		a.Mode, a.Destroy = ReadWrite, DestroyOn
	}
	for variable, field := range map[string]*time.Duration{
		connectVariable: &a.Timeouts.Connect, greetingVariable: &a.Timeouts.Greeting, socketVariable: &a.Timeouts.Socket,
	} {
		if set[variable] == "" {
			continue
		}
		ms, err := strconv.ParseUint(set[variable], 10, 32)
		if err != nil || ms == 0 || ms > uint64(maxTimeout.Milliseconds()) {
			return a, environmentError("%s must be a number of milliseconds from 1 to %d.", variable, maxTimeout.Milliseconds())
		}
		*field = time.Duration(ms) * time.Millisecond
	}
	return a, nil
}

// environmentAccount reads the variables of one account, which begin with prefix.
func environmentAccount(set map[string]string, prefix string, common Account) (Account, error) {
	a := common
	for _, needed := range []string{suffixHost, suffixUser, suffixPass} {
		if set[prefix+needed] == "" {
			return a, environmentError("%s is not set, and other variables of that account are.", prefix+needed)
		}
	}
	secure, err := environmentBool(set, prefix+suffixSecure, true)
	if err != nil {
		return a, err
	}
	a.IMAP = Endpoint{Host: set[prefix+suffixHost], Security: TLS}
	switch {
	case !secure && a.IMAP.Loopback():
		a.IMAP.Security = Plaintext
	case !secure:
		a.IMAP.Security = StartTLS
	}
	a.IMAP.Port = DefaultPort("imap", a.IMAP.Security)
	if text := set[prefix+suffixPort]; text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return a, environmentError("%s must be a number from 1 to 65535.", prefix+suffixPort)
		}
		a.IMAP.Port = uint16(port)
	}
	a.Username = set[prefix+suffixUser]
	if at := strings.IndexByte(a.Username, '@'); at > 0 && at < len(a.Username)-1 {
		a.Email = a.Username
	}
	return a, nil
}

func environmentBool(set map[string]string, variable string, def bool) (bool, error) {
	switch strings.ToLower(set[variable]) {
	case "":
		return def, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, environmentError("%s must be true or false.", variable)
}

func environmentError(format string, v ...any) *Error {
	return &Error{Op: "mail accounts", Kind: KindConfig, Stage: "config", Message: fmt.Sprintf(format, v...),
		Advice: AdviceUnsetVariables}
}

// Has reports whether the account comes from the environment.
func (e *Environment) Has(name string) bool {
	_, ok := e.accounts[name]
	return ok
}

// Len is how many accounts there are.
func (e *Environment) Len() int { return len(e.accounts) }

// Variable is the first variable of an account, such as MAIL_IMAP_DEFAULT_HOST, to
// name to a person.
func (e *Environment) Variable(name string) string {
	return EnvironmentPrefix + strings.ToUpper(name) + suffixHost
}

// Accounts implements Directory.
func (e *Environment) Accounts(context.Context) ([]Account, error) {
	accounts := make([]Account, 0, len(e.accounts))
	for _, name := range slices.Sorted(maps.Keys(e.accounts)) {
		accounts = append(accounts, e.accounts[name])
	}
	return accounts, nil
}

// Account implements Directory.
func (e *Environment) Account(_ context.Context, name string) (Account, error) {
	a, ok := e.accounts[name]
	if !ok {
		return Account{}, ErrNoAccount
	}
	return a, nil
}

// Secret implements Directory.
func (e *Environment) Secret(_ context.Context, name string) (Secret, error) {
	s, ok := e.secrets[name]
	if !ok {
		return Secret{}, ErrNoAccount
	}
	return NewSecret(s.value), nil
}
