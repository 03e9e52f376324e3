package clientconfig

import (
	"fmt"
	"path"
	"path/filepath"
)

// userFile returns the place of the client's file by its documentation, for a
// system: windows, darwin or any other.
func (c *Client) userFile(system string, getenv func(string) string) (string, error) {
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
