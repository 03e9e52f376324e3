package admin

import (
	"fmt"
	"strings"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/vault"
)

// SettingShown is one setting with its value in force.
type SettingShown struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Default     string `json:"default"`
	Type        string `json:"type"`
	Minimum     *int   `json:"minimum,omitempty"`
	Maximum     *int   `json:"maximum,omitempty"`
	Description string `json:"description"`
}

func shownSetting(s *vault.Setting) SettingShown {
	shown := SettingShown{Name: s.Name, Value: s.Value, Default: s.Default, Type: string(s.Type), Description: s.Description}
	if s.Type == vault.TypeInteger {
		shown.Minimum, shown.Maximum = &s.Min, &s.Max
	}
	return shown
}

func settingsHint(all []vault.Setting) string {
	return "Known settings: " + strings.Join(answer.Each(all, func(s *vault.Setting) string { return s.Name }), ", ") + "."
}

type settingNameArgs struct {
	Name string `json:"name" acli:"positional" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Name of the setting"`
}

// settingBrief is a setting and its value.
type settingBrief struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Brief is the value alone.
func (s SettingShown) Brief() settingBrief { return settingBrief{s.Name, s.Value} }

// Summary implements discovery.Summarizer.
func (s SettingShown) Summary() string { return fmt.Sprintf("%s is %q", s.Name, s.Value) }

// AskSetting is the setting that lets the agent's client ask its person.
const AskSetting = "ask_in_client"
