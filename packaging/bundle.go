package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The texts about Postern in every bundle and in the registry.
const (
	name        = "postern"
	title       = "Postern"
	description = "A person's mail behind their own rules: one tool, no password for the agent."
	repository  = "https://github.com/postern-mail/postern"
)

// bundle is one platform's .mcpb: a zip file with the program and a manifest of
// version 0.3 of the MCPB format.
type bundle struct {
	binary, os, arch, version string
}

// platforms are the format's names for operating systems.
var platforms = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}

func fileName(os, arch, version string) string {
	return fmt.Sprintf("%s_%s_%s_%s.mcpb", name, version, os, arch)
}

// program is the path of the program in the bundle.
func (b bundle) program() string {
	if b.os == "windows" {
		return "server/postern.exe"
	}
	return "server/postern"
}

type object = map[string]any

// manifest asks the person for the agent's key file only: 'postern init' makes
// the vault, its accounts and its rules, and the client keeps no secret.
func (b bundle) manifest() object {
	return object{
		"manifest_version": "0.3",
		"name":             name,
		"display_name":     title,
		"version":          b.version,
		"description":      description,
		"long_description": "Run 'postern init' once: it asks for your address, tests the login and makes the vault. What the agent may see and to whom it may write is yours to say, and it never holds a password.",
		"author":           object{"name": "Postern", "url": repository},
		"repository":       object{"type": "git", "url": repository + ".git"},
		"license":          "MIT",
		"keywords":         []string{"mail", "email", "imap", "smtp", "pop3"},
		"server": object{
			"type":        "binary",
			"entry_point": b.program(),
			"mcp_config": object{
				"command": "${__dirname}/" + b.program(),
				"args":    []string{"serve", "--profile", "${user_config.profile}"},
				"env":     object{"POSTERN_KEY_FILE": "${user_config.key_file}"},
			},
		},
		"tools": []object{{"name": "cli", "description": "Execute CLI command. Run 'help' for available commands."}},
		"user_config": object{
			"key_file": object{"type": "file", "title": "Agent key file", "required": true,
				"description": "The file with the agent's key that you made with 'postern keygen' or 'postern init'. Not the administrator's."},
			"profile": object{"type": "string", "title": "Profile", "default": "read",
				"description": "read: only commands that change nothing. full: everything your rules allow."},
		},
		"compatibility": object{"platforms": []string{platforms[b.os]}},
	}
}

// write makes the bundle in dir, which it creates, and returns its path. The same
// program and version make the same bytes.
func (b bundle) write(dir string) (string, error) {
	if platforms[b.os] == "" || b.arch == "" {
		return "", fmt.Errorf("there is no bundle for %q on %q", b.os, b.arch)
	}
	program, err := os.ReadFile(b.binary)
	if err != nil {
		return "", err
	}
	manifest, err := json.MarshalIndent(b.manifest(), "", "  ")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	err = errors.Join(add(z, "manifest.json", 0o644, append(manifest, '\n')), add(z, b.program(), 0o755, program), z.Close(), os.MkdirAll(dir, 0o755))
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, fileName(b.os, b.arch, b.version))
	return file, os.WriteFile(file, out.Bytes(), 0o644)
}

// add writes a file of the zip, dated with the earliest time of the zip format.
func add(z *zip.Writer, name string, mode fs.FileMode, content []byte) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(mode)
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
