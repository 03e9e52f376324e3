package extension

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Rights that change a file or directory, and those that put another in its place.
const (
	deleteChild = 0x40 // FILE_DELETE_CHILD

	changes = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.FILE_WRITE_EA | windows.FILE_WRITE_ATTRIBUTES |
		windows.GENERIC_WRITE | replaces
	replaces = deleteChild | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_ALL

	installer = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464" // owns what Windows installs
)

func onlyOurs(path string, _ fs.FileInfo) error { return nobodyElse(path, changes) }

func trustedAncestor(path string) error {
	if err := nobodyElse(path, replaces); err != nil {
		return fmt.Errorf("%s, which it lies in, %w", path, err)
	}
	return nil
}

func ownedLink(path string, _ fs.FileInfo) error {
	return fmt.Errorf("%s is a link, which is not followed here", path)
}

// nobodyElse reports whether an object belongs to this person, the administrators or
// the system, and grants nobody else any of the rights.
func nobodyElse(path string, rights windows.ACCESS_MASK) error {
	errUnread := errors.New("has permissions that cannot be read")
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return errUnread
	}
	ours, err := trustees()
	if err != nil {
		return errUnread
	}
	trusted := func(sid *windows.SID) bool {
		for _, s := range ours {
			if s.Equals(sid) {
				return true
			}
		}
		return false
	}
	owner, _, err := sd.Owner()
	if err != nil || !trusted(owner) {
		return errors.New("belongs to somebody else: it has to be yours or the administrators'")
	}
	dacl, _, err := sd.DACL()
	if err != nil || dacl == nil { // no list lets everybody do everything
		return errors.New("can be changed by everybody")
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return errUnread
		}
		switch {
		case ace.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE, ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0:
		case ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE:
			return errors.New("has permissions of a kind that is not understood")
		case ace.Mask&rights != 0 && !trusted((*windows.SID)(unsafe.Pointer(&ace.SidStart))):
			return errors.New("can be changed by others: take their rights away")
		}
	}
	return nil
}

// trustees are the person who runs this process and those who can do everything
// anyway.
func trustees() ([]*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	list := []*windows.SID{user.User.Sid}
	for _, known := range []windows.WELL_KNOWN_SID_TYPE{windows.WinBuiltinAdministratorsSid, windows.WinLocalSystemSid} {
		sid, err := windows.CreateWellKnownSid(known)
		if err != nil {
			return nil, err
		}
		list = append(list, sid)
	}
	sid, err := windows.StringToSid(installer)
	if err != nil {
		return nil, err
	}
	return append(list, sid), nil
}
