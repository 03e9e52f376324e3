// Package folders says what the folders of an account are for, by what a server marks and by
// usual names, and in which order they are listed. It asks no server.
package folders

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-mail/postern/mail"
)

// Folder is one mailbox in the sense of RFC 9051.
type Folder struct {
	Name       string   // decoded, as a person reads it
	Delimiter  string   // hierarchy delimiter; empty for a flat name
	Role       string   // special use without its backslash, lower case: sent, drafts, trash, junk, archive, all, flagged; "inbox" for INBOX; see Assume
	Attributes []string // other LIST attributes, such as \Noselect
	Counts     *Counts  // nil unless asked for and known

	Others bool // it is not in the user's own namespace
}

// NoSelect reports whether the folder only holds others and has no messages.
func (f Folder) NoSelect() bool {
	return slices.ContainsFunc(f.Attributes, func(a string) bool {
		return strings.EqualFold(a, `\Noselect`) || strings.EqualFold(a, `\NonExistent`)
	})
}

// Counts are the numbers of messages: with a policy that hides messages they count only
// visible ones.
type Counts struct {
	Messages, Unread     uint32
	UIDNext, UIDValidity uint32 // 0 where there are no UIDs or the server did not say
	Flagless             bool   // there are no flags, so that it is not known which messages are unread
}

// roles are the special uses of RFC 6154, in the order in which their folders are listed.
var roles = []string{"drafts", "sent", "archive", "all", "flagged", "junk", "trash"}

// Of is a folder as a server listed it, with its special use among the attributes.
func Of(name, delimiter string, attributes []string) Folder {
	f := Folder{Name: name, Delimiter: delimiter}
	for _, a := range attributes {
		if use := strings.ToLower(strings.TrimPrefix(a, `\`)); slices.Contains(roles, use) {
			f.Role = use
		} else {
			f.Attributes = append(f.Attributes, a)
		}
	}
	if strings.EqualFold(f.Name, "INBOX") {
		f.Role = "inbox"
	}
	return f
}

// compare orders folders as a list shows them: INBOX, those with a role, the others by name.
func (f Folder) Compare(g Folder) int {
	return cmp.Or(cmp.Compare(f.rank(), g.rank()), slices.Compare(f.levels(), g.levels()))
}

// rank is the place of a folder in a list by its role.
func (f *Folder) rank() int {
	switch i := slices.Index(roles, f.Role); {
	case f.Role == "inbox":
		return -1
	case i >= 0:
		return i
	}
	return len(roles)
}

// levels are the parts of a name, so that a folder stands before those below it.
func (f *Folder) levels() []string {
	if f.Delimiter == "" {
		return []string{f.Name}
	}
	return strings.Split(f.Name, f.Delimiter)
}

// ForgetHidden removes what tells that there are folders below others: a folder that holds
// only hidden ones, and the attributes that say so.
func ForgetHidden(list []Folder, aboveHidden func(name string) bool) []Folder {
	all := slices.Clone(list)
	list = slices.DeleteFunc(list, func(f Folder) bool {
		return f.NoSelect() && aboveHidden(f.Name) && !slices.ContainsFunc(all, func(o Folder) bool {
			return strings.HasPrefix(o.Name, f.Name+f.Delimiter) && !o.NoSelect()
		})
	})
	for i := range list {
		f := &list[i]
		f.Attributes = slices.DeleteFunc(f.Attributes, func(a string) bool {
			return strings.EqualFold(a, `\HasChildren`) || strings.EqualFold(a, `\HasNoChildren`)
		})
	}
	return list
}

// usualNames are the common names of folders, in lower case, for servers without
// SPECIAL-USE (RFC 6154).
var usualNames = map[string][]string{
	"sent": {"sent", "sent messages", "sent items", "sent mail", "sent-mail", "outbox/sent", "gesendet", "gesendete elemente", "gesendete objekte",
		"envoyés", "éléments envoyés", "messages envoyés", "enviados", "elementos enviados", "itens enviados", "mensajes enviados",
		"inviati", "inviata", "posta inviata", "verzonden", "verzonden items", "verzonden berichten", "skickat", "skickade objekt",
		"sendt", "sendte elementer", "lähetetyt", "wysłane", "elementy wysłane", "odeslané", "отправленные", "надіслані", "送信済み", "送信済みアイテム", "已发送", "已發送", "보낸 편지함"},
	"drafts": {"drafts", "draft", "draft messages", "entwürfe", "brouillons", "borradores", "rascunhos", "bozze", "concepten", "utkast", "kladder",
		"luonnokset", "szkice", "kopie robocze", "koncepty", "черновики", "чернетки", "下書き", "草稿", "草稿箱", "임시 보관함"},
	"archive": {"archive", "archives", "archiv", "archivo", "archivio", "arquivo", "archief", "arkiv", "arkisto", "archiwum", "архив", "архів", "アーカイブ", "存档", "存檔", "보관함"},
	"junk": {"junk", "junk e-mail", "junk email", "junk mail", "spam", "bulk mail", "spamverdacht", "junk-e-mail", "courrier indésirable", "indésirables",
		"correo no deseado", "lixo eletrônico", "posta indesiderata", "ongewenste e-mail", "skräppost", "søppelpost", "roskaposti", "wiadomości-śmieci",
		"нежелательная почта", "спам", "迷惑メール", "垃圾邮件", "垃圾郵件", "스팸"},
	"trash": {"trash", "deleted", "deleted items", "deleted messages", "bin", "papierkorb", "gelöscht", "gelöschte elemente", "gelöschte objekte",
		"corbeille", "éléments supprimés", "papelera", "elementos eliminados", "lixeira", "itens excluídos", "cestino", "posta eliminata",
		"prullenbak", "verwijderde items", "papperskorg", "papirkurv", "roskakori", "kosz", "koš", "корзина", "удаленные", "кошик", "ごみ箱",
		"已删除邮件", "垃圾桶", "휴지통"},
}

// Usual reports whether a name, in lower case, is a common one of folders of a role.
func Usual(name, role string) bool { return slices.Contains(usualNames[role], name) }

// FirstWithRole is the first folder of WithRole, or empty.
func FirstWithRole(folders []Folder, role string) string {
	if names := WithRole(folders, role); len(names) > 0 {
		return names[0]
	}
	return ""
}

// WithRole returns the user's own folders of a role.
func WithRole(folders []Folder, role string) []string {
	var names []string
	for _, f := range folders {
		if f.Role == role && !f.NoSelect() && !f.Others {
			names = append(names, f.Name)
		}
	}
	return names
}

// Assume gives each role that the server marks no folder of the user's own with to the first one
// with a usual name. list has all folders.
func Assume(list []Folder) {
	for role, names := range usualNames {
		if len(WithRole(list, role)) > 0 {
			continue
		}
		var first *Folder
		least := len(names)
		for i, f := range list {
			name := strings.ToLower(f.Name)
			if f.Delimiter != "" {
				name = strings.TrimPrefix(name, "inbox"+f.Delimiter)
			}
			if at := slices.Index(names, name); 0 <= at && at < least && f.Role == "" && !f.NoSelect() && !f.Others {
				first, least = &list[i], at
			}
		}
		if first != nil {
			first.Role = role
		}
	}
}

// Known are the folders of an account as a server listed them, and what they are for. A nil or
// zero *Known knows no folder. It is safe for concurrent use.
type Known struct {
	mu    sync.Mutex
	names []string
	talk  []string  // the folders that conversations are in besides INBOX
	all   bool      // talk is the folder of all messages
	list  []Folder  // all of them
	asked time.Time // when the server listed the folders
}

// maxTalking bounds the folders that conversations are looked for in.
const maxTalking = 8

// ownFresh is how long a list of the folders counts.
const ownFresh = 10 * time.Minute

// listFresh is how long a list of the folders counts as complete.
const listFresh = 30 * time.Second

// Own reports whether a folder is one for the account's own messages, sent ones or drafts: those
// with the role, else the one with a usual name. INBOX is never one.
func (o *Known) Own(folder string) bool {
	if o == nil || folder == "INBOX" {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.names, folder)
}

// Note keeps the folders that a server listed.
func (o *Known) Note(folders []Folder, now time.Time) {
	sent, all := WithRole(folders, "sent"), WithRole(folders, "all")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names, o.list, o.asked, o.all = slices.Concat(sent, WithRole(folders, "drafts")), folders, now, len(all) > 0
	if o.talk = slices.Concat(sent, WithRole(folders, "archive")); o.all {
		o.talk = all
	}
	o.talk = o.talk[:min(len(o.talk), maxTalking)]
}

// Assumed gives some of the folders the roles that they have among all of them.
func (o *Known) Assumed(some []Folder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range some {
		for _, f := range o.list {
			if some[i].Role == "" && some[i].Name == f.Name {
				some[i].Role = f.Role
			}
		}
	}
}

// Talking returns the folders that conversations are in, besides INBOX: the one of all
// messages, else those for sent and archived mail.
func (o *Known) Talking() (folders []string, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.talk, o.all
}

// Listed are the folders, and whether the server listed them so short a while ago that they are
// complete. The caller may not change them.
func (o *Known) Listed(now time.Time) (list []Folder, complete bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list, !o.asked.IsZero() && now.Sub(o.asked) < listFresh
}

// Fresh reports whether the server listed the folders a while ago.
func (o *Known) Fresh(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.asked.IsZero() && now.Sub(o.asked) < ownFresh
}

// Is reports whether a folder has a role: the server marks it, or where it marks none, the
// name is a usual one.
func (o *Known) Is(folder, role string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, marked := mail.FolderKey(folder), false
	for _, f := range o.list {
		if f.Role == role && !f.Others {
			if marked = true; mail.FolderKey(f.Name) == key {
				return true
			}
		}
	}
	return !marked && Usual(key, role)
}
