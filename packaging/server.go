package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeServer writes server.json for the bundles of a version in dir, each with
// its digest, by the registry's schema of 2025-12-11.
func writeServer(dir, version string) error {
	bundles, err := filepath.Glob(filepath.Join(dir, name+"_*.mcpb"))
	if err != nil {
		return err
	}
	var packages []object
	for _, path := range bundles {
		file := filepath.Base(path)
		if !strings.HasPrefix(file, name+"_"+version+"_") {
			continue // of another release
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		digest := sha256.Sum256(content)
		packages = append(packages, object{
			"registryType": "mcpb",
			"identifier":   fmt.Sprintf("%s/releases/download/v%s/%s", repository, version, file),
			"version":      version,
			"fileSha256":   hex.EncodeToString(digest[:]),
			"transport":    object{"type": "stdio"},
		})
	}
	if len(packages) == 0 {
		return errors.New("there is no bundle of version " + version + " in " + dir)
	}
	b, err := json.MarshalIndent(object{
		"$schema":     "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":        "io.github.postern-mail/postern",
		"title":       title,
		"description": description,
		"version":     version,
		"repository":  object{"url": repository, "source": "github"},
		"packages":    packages,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "server.json"), append(b, '\n'), 0o644)
}
