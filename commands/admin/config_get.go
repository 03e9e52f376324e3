package admin

import (
	"context"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

func configGet(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "config get",
		Summary:  "Show one setting",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"config get audit_retention_days"},
	}, func(ctx context.Context, _ *discovery.Call, args *settingNameArgs) (SettingShown, error) {
		return d.shownSetting(ctx, args.Name)
	})
}

func (d *Deps) shownSetting(ctx context.Context, name string) (SettingShown, error) {
	all, err := d.Store.AllSettings(ctx)
	if err != nil {
		return SettingShown{}, err
	}
	for i := range all {
		if all[i].Name == name {
			return shownSetting(&all[i]), nil
		}
	}
	return SettingShown{}, &discovery.Fault{Code: discovery.NotFound, Message: "There is no such setting.", Hint: settingsHint(all)}
}
