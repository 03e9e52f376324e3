package clientconfig

import (
	"fmt"
	"path"
	"path/filepath"
)

// location is where a client has a file of the user's, by its documentation.
type location struct {
	home     string // below the user's home directory, with slashes
	config   string // below the user's directory of settings, in place of home
	xdg      string // below XDG_CONFIG_HOME where that is set, in place of home; not on Windows and macOS
	variable string // environment variable for another directory of home's file; empty without one
}

// userFile returns the file on a system: windows, darwin or any other.
func (c *location) userFile(system string, getenv func(string) string) (string, error) {
	if c.variable != "" {
		if dir := getenv(c.variable); dir != "" {
			return filepath.Join(dir, path.Base(c.home)), nil
		}
	}
	variable, below := "HOME", c.home
	switch xdg := getenv("XDG_CONFIG_HOME"); {
	case system == "windows" && c.config != "":
		variable, below = "APPDATA", c.config
	case system == "windows":
		variable = "USERPROFILE"
	case c.xdg != "" && system != "darwin" && filepath.IsAbs(xdg):
		variable, below = "XDG_CONFIG_HOME", c.xdg
	case c.config == "":
	case system == "darwin":
		below = "Library/Application Support/" + c.config
	case filepath.IsAbs(xdg):
		variable, below = "XDG_CONFIG_HOME", c.config
	default:
		below = ".config/" + c.config
	}
	dir := getenv(variable)
	if dir == "" {
		return "", fmt.Errorf("it is not known where your home directory is: %s is not set", variable)
	}
	return filepath.Join(dir, filepath.FromSlash(below)), nil
}
