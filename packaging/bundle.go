package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// What every bundle and the registry say of Postern.
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

// manifest asks the person for the agent's key file and for nothing else: the
// vault, its accounts and its rules are made by 'postern init', and no secret is
// kept by the client.
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
func (b bundle) write(dir string) (_ string, err error) {
	if platforms[b.os] == "" || b.arch == "" {
		return "", fmt.Errorf("there is no bundle for %q on %q", b.os, b.arch)
	}
	in, err := os.Open(b.binary)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, fileName(b.os, b.arch, b.version))
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = os.Remove(file) // half a bundle is worse than none
		}
	}()
	manifest, err := json.MarshalIndent(b.manifest(), "", "  ")
	if err != nil {
		return "", err
	}
	z := zip.NewWriter(out)
	m, err := entry(z, "manifest.json", 0o644)
	if err != nil {
		return "", err
	}
	if _, err := m.Write(append(manifest, '\n')); err != nil {
		return "", err
	}
	p, err := entry(z, b.program(), 0o755)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(p, in); err != nil {
		return "", err
	}
	return file, z.Close()
}

// entry begins a file of the zip with the time zip files begin at.
func entry(z *zip.Writer, name string, mode fs.FileMode) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(mode)
	return z.CreateHeader(h)
}
