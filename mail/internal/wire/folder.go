package wire

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFolderChars bounds a folder's name (001, mailbox). In UTF-8 that is at most
// 1,024 bytes.
const MaxFolderChars = 256

// CheckFolder reports why a folder cannot have this name, although a client could send some
// such names; nil means that it can.
func CheckFolder(name string) error {
	switch {
	case name == "":
		return errors.New("the folder's name is empty")
	case !utf8.ValidString(name):
		return errors.New("the folder's name is not valid UTF-8")
	case utf8.RuneCountInString(name) > MaxFolderChars:
		return errors.New("the folder's name is longer than 256 characters")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the folder's name holds a control character")
	}
	return nil
}
