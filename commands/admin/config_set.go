package admin

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-mail/postern/commands/internal/argument"
	"github.com/postern-mail/postern/discovery"
)

// does is what commands do and deny may name: see discovery.Spec.
var does = []string{"send", "draft", "file", "flags", "destroy"}

type configSetArgs struct {
	settingNameArgs
	Value string `json:"value" acli:"positional" jsonschema:"maxLength=1000" jsonschema_description:"The new value; an empty one restores the default"`
}

func configSet(d *Deps) *discovery.Command {
	return argument.Command(discovery.Spec{
		Path:     "config set",
		Summary:  "Change one setting",
		Effect:   discovery.Admin,
		Standing: true,
		Examples: []string{"config set audit_retention_days 30", "config set timezone Europe/Berlin"},
	}, func(ctx context.Context, call *discovery.Call, args *configSetArgs) (SettingShown, error) {
		call.Target = args.Name
		known, err := d.shownSetting(ctx, args.Name)
		if err != nil {
			return SettingShown{}, err
		}
		if args.Name == "default_account" && args.Value != "" {
			if _, err := d.Store.Account(ctx, args.Value); err != nil {
				return SettingShown{}, err
			}
		}
		if args.Name == "deny" {
			for path := range strings.SplitSeq(args.Value, ",") {
				if path = strings.TrimSpace(path); path != "" && !slices.Contains(does, path) && !d.Exists(path) {
					return SettingShown{}, &discovery.Fault{Code: discovery.ValidationError, Message: "One of the paths names neither a command nor a group, nor what commands do: " + strings.Join(does, ", ") + ".",
						Hint: "Run 'help' for the commands, and separate paths by commas."}
				}
			}
		}
		if args.Name == "notify_command" {
			var command []string
			if json.Unmarshal([]byte(args.Value), &command) == nil && len(command) > 0 && filepath.IsAbs(command[0]) {
				if _, err := exec.LookPath(command[0]); err != nil {
					return SettingShown{}, &discovery.Fault{Code: discovery.ValidationError, Message: "There is no program at the path that the array begins with.", Err: err,
						Hint: "Give the full path of a file that can be started on this machine."}
				}
			}
		}
		value := args.Value
		if value == "" {
			value = known.Default
		}
		if err := d.Store.SetSetting(ctx, args.Name, value); err != nil {
			return SettingShown{}, err
		}
		return d.shownSetting(ctx, args.Name)
	})
}
