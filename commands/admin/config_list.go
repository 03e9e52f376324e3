package admin

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/answer"
	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// ConfigListResult answers config list.
type ConfigListResult struct {
	Settings []SettingShown `json:"settings"`
}

func configList(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "config list",
		Summary:  "List the settings",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"config list"},
	}, func(ctx context.Context, _ *discovery.Call, _ *struct{}) (ConfigListResult, error) {
		all, err := d.Store.AllSettings(ctx)
		if err != nil {
			return ConfigListResult{}, err
		}
		return ConfigListResult{answer.Each(all, shownSetting)}, nil
	})
}

type settingRow struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Default     string `json:"default"` // where it is another
	Description string `json:"description"`
}

// Brief is one row for each setting.
func (r ConfigListResult) Brief() answer.List[settingRow] {
	return answer.ListOf(r.Settings, answer.Rest{}, func(s *SettingShown) settingRow {
		row := settingRow{s.Name, s.Value, s.Default, s.Description}
		if row.Default == row.Value {
			row.Default = ""
		}
		return row
	})
}
