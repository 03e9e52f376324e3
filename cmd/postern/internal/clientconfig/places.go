package clientconfig

import (
	"fmt"
	"path/filepath"
)

// places are the directories of the user that clients look in.
type places struct {
	getenv func(string) string
	home   func() (string, error)
	config func() (string, error) // os.UserConfigDir
}

func (p *places) inHome(elements ...string) (string, error) {
	home, err := p.home()
	return filepath.Join(append([]string{home}, elements...)...), err
}

func (p *places) inConfig(elements ...string) (string, error) {
	dir, err := p.config()
	return filepath.Join(append([]string{dir}, elements...)...), err
}

// orIn is a directory that a variable names, or one in the home directory.
func (p *places) orIn(variable string, inHome string, elements ...string) (string, error) {
	if dir := p.getenv(variable); dir != "" {
		return filepath.Join(append([]string{dir}, elements...)...), nil
	}
	return p.inHome(append([]string{inHome}, elements...)...)
}

// placesOf knows the directories of each system.
func placesOf(system string, getenv func(string) string) *places {
	need := func(variable string, elements ...string) func() (string, error) {
		return func() (string, error) {
			if dir := getenv(variable); dir != "" {
				return filepath.Join(append([]string{dir}, elements...)...), nil
			}
			return "", fmt.Errorf("it is not known where your home directory is: %s is not set", variable)
		}
	}
	switch system {
	case "windows":
		return &places{getenv: getenv, home: need("USERPROFILE"), config: need("APPDATA")}
	case "darwin":
		return &places{getenv: getenv, home: need("HOME"), config: need("HOME", "Library", "Application Support")}
	}
	config := need("HOME", ".config")
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		config = func() (string, error) { return dir, nil }
	}
	return &places{getenv: getenv, home: need("HOME"), config: config}
}
