package vault

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
)

// SettingType is the kind of value that a setting takes.
type SettingType string

// The kinds: a decimal integer within bounds; the name of an account or an empty text; an
// IANA time zone or "local"; paths of commands separated by commas; "on" or "off"; a program
// and its arguments as an array in JSON, or an empty text.
const (
	TypeInteger  SettingType = "integer"
	TypeAccount  SettingType = "account"
	TypeTimezone SettingType = "timezone"
	TypeCommands SettingType = "commands"
	TypeSwitch   SettingType = "switch"
	TypeProgram  SettingType = "program"
)

// Setting is one setting with its present value.
type Setting struct {
	Name        string
	Type        SettingType
	Default     string
	Min, Max    int // bounds of an integer, both included
	Description string
	Value       string // the value that was set, else the default
	IsSet       bool   // false while the default holds
}

// Config is the values of all settings, typed, read at one moment.
type Config struct {
	AuditRetentionDays int
	CommandsPerMinute  int
	SendsPerHour       int // 0 allows none
	ChangesPerHour     int // messages; 0 allows none
	DefaultAccount     string
	Timezone           *time.Location // never nil
	Deny               []string       // paths of commands that only the administrator may run, such as "mail send"
	SearchMaxMatches   int
	ExtensionsSend     bool     // agents may run extensions that let something leave
	NotifyCommand      []string // the program that tells a person what waits, and its arguments; none by default
	AskInClient        bool     // what needs approval may be approved in the agent's own client
}

type setting struct {
	Setting
	parse func(s *setting, value string, c *Config) (canonical string, err error)
}

func integer(name string, def, low, high int, description string, field func(*Config) *int) setting {
	return setting{
		Setting{Name: name, Type: TypeInteger, Default: strconv.Itoa(def), Min: low, Max: high, Description: description},
		func(s *setting, value string, c *Config) (string, error) {
			n, err := strconv.Atoi(value)
			if err != nil || n < s.Min || n > s.Max {
				return "", fmt.Errorf("want an integer from %d to %d", s.Min, s.Max)
			}
			*field(c) = n
			return strconv.Itoa(n), nil
		},
	}
}

func toggle(name string, def bool, description string, field func(*Config) *bool) setting {
	word := map[bool]string{true: "on", false: "off"}
	return setting{
		Setting{Name: name, Type: TypeSwitch, Default: word[def], Description: description},
		func(_ *setting, value string, c *Config) (string, error) {
			on := strings.EqualFold(value, "on")
			if !on && !strings.EqualFold(value, "off") {
				return "", fmt.Errorf("want on or off")
			}
			*field(c) = on
			return word[on], nil
		},
	}
}

// settings are all settings.
var settings = []setting{
	integer("audit_retention_days", 90, 1, 3650, "days an audit entry is kept",
		func(c *Config) *int { return &c.AuditRetentionDays }),
	integer("commands_per_minute", 1200, 1, 100_000, "commands one principal may run per minute",
		func(c *Config) *int { return &c.CommandsPerMinute }),
	integer("sends_per_hour", 20, 0, 10_000, "messages one principal may send per hour; 0 allows none",
		func(c *Config) *int { return &c.SendsPerHour }),
	integer("changes_per_hour", 1000, 0, 1_000_000, "messages one principal may flag, copy, move, trash, delete or draft per hour; 0 allows none",
		func(c *Config) *int { return &c.ChangesPerHour }),
	{Setting{Name: "default_account", Type: TypeAccount, Description: "account used when a command names none"}, parseAccount},
	{Setting{Name: "timezone", Type: TypeTimezone, Default: "local", Description: "zone of dates given without one"}, parseTimezone},
	{Setting{Name: "deny", Type: TypeCommands, Description: "commands that only the administrator may run, with all that do the same; or what they do: send, draft, file, flags, destroy"}, parseDeny},
	integer("search_max_matches", 20_000, 100, 1_000_000, "matches above which a search is refused",
		func(c *Config) *int { return &c.SearchMaxMatches }),
	toggle("ask_in_client", false, "on asks in the agent's own client what needs approval, which any program that starts the server can answer; off leaves it to 'outbox approve'; while neither is set, only grants with --ask-in-client ask",
		func(c *Config) *bool { return &c.AskInClient }),
	toggle("extensions_send", false, "on lets agents run extensions of effect send; what these let leave passes no list, and no person is asked",
		func(c *Config) *bool { return &c.ExtensionsSend }),
	{Setting{Name: "notify_command", Type: TypeProgram, Description: "program that tells you what begins to wait for you: its path and arguments as an array in JSON, in which {id}, {account} and {recipients} are filled in"}, parseNotifyCommand},
}

// maxArguments bounds the program of a setting and its arguments.
const maxArguments = 32

func parseNotifyCommand(_ *setting, value string, c *Config) (string, error) {
	c.NotifyCommand = nil
	if value == "" {
		return "", nil
	}
	if err := json.Unmarshal([]byte(value), &c.NotifyCommand); err != nil || len(c.NotifyCommand) == 0 || len(c.NotifyCommand) > maxArguments ||
		!filepath.IsAbs(c.NotifyCommand[0]) || strings.Contains(strings.Join(c.NotifyCommand, ""), "\x00") {
		return "", fmt.Errorf(`want an array in JSON that begins with the full path of a program, such as ["/usr/bin/notify-send","A message waits: {id}"]`)
	}
	return value, nil
}

func parseAccount(_ *setting, value string, c *Config) (string, error) {
	if value != "" && !mail.ValidAccountName(value) {
		return "", fmt.Errorf("want the name of an account, or nothing")
	}
	c.DefaultAccount = value
	return value, nil
}

func parseTimezone(_ *setting, value string, c *Config) (string, error) {
	if strings.EqualFold(value, "local") {
		c.Timezone = time.Local
		return "local", nil
	}
	zone, err := time.LoadLocation(value)
	if err != nil || value == "" {
		return "", fmt.Errorf("want local or an IANA time zone such as Europe/Berlin")
	}
	c.Timezone = zone
	return value, nil
}

var commandPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[a-z][a-z0-9-]{0,31}( [a-z][a-z0-9-]{0,31}){0,3}\z`)
})

const maxDeny = 200

func parseDeny(_ *setting, value string, c *Config) (string, error) {
	paths := []string{}
	for part := range strings.SplitSeq(value, ",") {
		path := strings.Join(strings.Fields(part), " ")
		if path == "" {
			continue
		}
		if !commandPath().MatchString(path) {
			return "", fmt.Errorf("want commands separated by commas, or what they do, such as mail send,destroy")
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) > maxDeny {
		return "", fmt.Errorf("want at most %d commands", maxDeny)
	}
	c.Deny = paths
	return strings.Join(paths, ","), nil
}

func findSetting(name string) (*setting, error) {
	var names []string
	for i := range settings {
		if settings[i].Name == name {
			return &settings[i], nil
		}
		names = append(names, settings[i].Name)
	}
	return nil, fmt.Errorf("%w: no such setting; there are %s", ErrInvalid, strings.Join(names, ", "))
}

// parseConfig parses the values that are set and fills in the defaults.
func parseConfig(set map[string][]byte) (Config, error) {
	var c Config
	known := 0
	for i := range settings {
		s := &settings[i]
		value, ok := set[s.Name]
		if ok {
			known++
		} else {
			value = []byte(s.Default)
		}
		if _, err := s.parse(s, string(value), &c); err != nil {
			return Config{}, fmt.Errorf("setting %s: %w: %w", s.Name, ErrInvalid, err)
		}
	}
	if known != len(set) {
		// An unknown setting may be a restriction that this version would ignore.
		return Config{}, fmt.Errorf("%w: it holds a setting this version does not know", ErrFutureFormat)
	}
	return c, nil
}

// Config returns every setting, read and verified at one moment.
func (v *Vault) Config(ctx context.Context) (Config, error) {
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return Config{}, err
	}
	return p.copyConfig()
}

func (p *policy) copyConfig() (Config, error) {
	c := p.config
	c.Deny = slices.Clone(c.Deny)
	return c, p.configErr
}

// Setting returns the present value of one setting. For an unknown name the
// error matches ErrInvalid and lists the names.
func (v *Vault) Setting(ctx context.Context, name string) (string, error) {
	s, err := findSetting(name)
	if err != nil {
		return "", err
	}
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return "", err
	}
	return p.setting(s).Value, nil
}

// DefaultSettings returns every setting with its default.
func DefaultSettings() []Setting { return (&policy{}).settings() }

// Settings returns every setting with its value, in a fixed order.
func (v *Vault) Settings(ctx context.Context) ([]Setting, error) {
	p, err := v.readPolicyOnce(ctx)
	if err != nil {
		return nil, err
	}
	return p.settings(), nil
}

func (p *policy) settings() []Setting {
	all := make([]Setting, 0, len(settings))
	for i := range settings {
		all = append(all, p.setting(&settings[i]))
	}
	return all
}

func (p *policy) setting(s *setting) Setting {
	out := s.Setting
	value, ok := p.records[bucketSettings][s.Name]
	if out.Value = out.Default; ok {
		out.Value, out.IsSet = string(value), true
	}
	return out
}

// SetSetting sets one setting. Only the admin may call it. Errors match ErrAdminRequired or
// ErrInvalid and say which values the setting takes, without the value given.
func (v *Vault) SetSetting(ctx context.Context, name, value string) error {
	s, err := findSetting(name)
	if err != nil {
		return err
	}
	canonical, err := s.parse(s, strings.TrimSpace(value), &Config{})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	return v.change(ctx, func(c *policyChange) error { return c.put(bucketSettings, name, []byte(canonical)) })
}
