// Command packaging makes the files of a release besides its archives: an MCP
// bundle (.mcpb) for each platform, which a desktop client installs with a click,
// and the server.json for the MCP registry.
//
//	packaging bundle --binary FILE --os GOOS --arch GOARCH --version V --out DIR
//	packaging server --version V --out DIR    once every bundle is in DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say bundle or server")
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := f.String("version", "", "of the release, without a leading v")
	out := f.String("out", "", "directory the bundles are in")
	var b bundle
	f.StringVar(&b.binary, "binary", "", "the built program")
	f.StringVar(&b.os, "os", "", "GOOS it was built for")
	f.StringVar(&b.arch, "arch", "", "GOARCH it was built for")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	b.version = *version
	switch {
	case *version == "" || *out == "":
		return errors.New("--version and --out are needed")
	case args[0] == "bundle":
		path, err := b.write(*out)
		if err == nil {
			fmt.Println(path)
		}
		return err
	case args[0] == "server":
		return writeServer(*out, *version)
	}
	return fmt.Errorf("there is no %q: say bundle or server", args[0])
}
