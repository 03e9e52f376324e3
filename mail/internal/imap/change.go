package imap

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/postern-mail/postern/mail/internal/wire"
)

// Change is Lend for work that may make the changes of grant. It prefers a session that has
// folder SELECTed. fn runs a second time only when the connection turned out dead before
// any changing command left. The login has been accepted before fn begins.
func (p *Pool) Change(ctx context.Context, folder string, grant Grant, fn func(ctx context.Context, s *Session) error) error {
	granted := func(ctx context.Context, s *Session) error {
		if err := s.Ready(); err != nil {
			return err
		}
		s.askCapabilities()
		s.guard.grant(grant)
		defer s.guard.grant(NoChange)
		return fn(ctx, s)
	}
	return p.lend(ctx, want{folder: FolderName(folder), writable: true}, granted)
}

// Select starts a SELECT, which the session's grant has to allow. See Examine.
func (s *Session) Select(name string) *Examining { return s.opening(name, false) }

// UIDPlus reports whether single messages can be expunged (RFC 4315).
func (s *Session) UIDPlus() bool { return s.Has("UIDPLUS") || s.Has("IMAP4REV2") }

// CanMove reports whether the server moves messages by itself (RFC 6851).
func (s *Session) CanMove() bool { return s.Has("MOVE") || s.Has("IMAP4REV2") }

// Store starts a UID STORE that adds flags, or with remove removes them. Wait returns the
// flags as they are now of the messages that exist. For its progress, see Fetch.
func (s *Session) Store(set UIDSet, remove bool, flags []string) *Fetching {
	change := &goimap.StoreFlags{Op: goimap.StoreFlagsAdd}
	if remove {
		change.Op = goimap.StoreFlagsDel
	}
	var err error
	if change.Flags, err = wireFlags(flags); err != nil {
		f := &Fetching{done: make(chan struct{}), err: impossible(StageStore, err)}
		close(f.done)
		return f
	}
	return s.collecting(StageStore, s.gather(gathering{sets: []NumSet{set}, stores: true}), s.client.Store(set.uids(), change, nil))
}

// wireFlags is flags as the library has them. The error is that one of them cannot be sent.
func wireFlags(flags []string) (out []goimap.Flag, err error) {
	for _, f := range flags {
		if !ValidFlag(f) {
			return nil, errors.New("the flag is not valid")
		}
		out = append(out, goimap.Flag(f))
	}
	return out, nil
}

// ValidFlag reports whether a flag can be sent: a keyword is an atom, a system
// flag one behind a backslash (RFC 9051 section 9).
func ValidFlag(f string) bool {
	name := strings.TrimPrefix(f, `\`)
	return name != "" && len(f) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`(){%*"\]`, r)
	})
}

// ErrSends is the cause of a refused append or copy to a folder whose messages the server
// sends. No byte of the command left.
var ErrSends = errors.New("the server sends what is put into this folder")

// takes reports why no message may be put into a folder; nil means that it may. Courier
// sends every message that comes into the folder that its capability names.
func (s *Session) takes(folder string) error {
	if err := wire.CheckFolder(folder); err != nil {
		return err
	}
	for _, c := range s.Capabilities() {
		outbox, sends := strings.CutPrefix(c, "XCOURIEROUTBOX=")
		if !sends || s.cfg.Outbox != nil && s.cfg.Outbox(folder) {
			continue
		}
		encoded := strings.Contains(outbox, "&") && strings.ContainsFunc(folder, func(r rune) bool { return r >= 0x80 || r == '&' })
		if encoded || strings.EqualFold(outbox, folder) {
			return ErrSends
		}
	}
	return nil
}

// Copied says where messages went. Target is by source UID, and empty when the server did
// not send it.
type Copied struct {
	UIDValidity uint32
	Target      map[uint32]uint32
}

// Copying is a UID COPY or UID MOVE that was started.
// Wait returns where the messages are now.
type Copying = Pending[Copied]

// Copy starts a UID COPY.
func (s *Session) Copy(set UIDSet, folder string) *Copying {
	if err := s.takes(folder); err != nil {
		return unsent[Copied](StageCopy, err)
	}
	cmd := s.client.Copy(set.uids(), s.named(folder))
	return &Copying{func() (Copied, error) {
		data, err := cmd.Wait()
		if err != nil {
			return Copied{}, s.fail(StageCopy, err)
		}
		return copied(data.UIDValidity, data.SourceUIDs, data.DestUIDs), nil
	}}
}

// Move starts a UID MOVE. Where CanMove is false it is refused here: the library's fallback
// can remove messages that were never copied.
func (s *Session) Move(set UIDSet, folder string) *Copying {
	if err := s.takes(folder); err != nil {
		return unsent[Copied](StageMove, err)
	}
	if s.CanMove() && !s.client.Caps().Has(goimap.CapMove) {
		_ = s.Noop().Wait() // by then the library has read the server's capabilities
	}
	if !s.CanMove() || !s.client.Caps().Has(goimap.CapMove) {
		return unsent[Copied](StageMove, errors.New("server does not offer MOVE"))
	}
	cmd := s.client.Move(set.uids(), s.named(folder))
	return &Copying{func() (Copied, error) {
		data, err := cmd.Wait()
		if err != nil {
			return Copied{}, s.fail(StageMove, err)
		}
		source, _ := data.SourceUIDs.(goimap.UIDSet)
		dest, _ := data.DestUIDs.(goimap.UIDSet)
		return copied(data.UIDValidity, source, dest), nil
	}}
}

// maxCopied bounds the numbers of a set that are written out.
const maxCopied = 10_000

// copied pairs the two sets of a COPYUID (RFC 4315 section 3). It returns no pairs for sets
// that do not fit together.
func copied(validity uint32, source, dest goimap.UIDSet) Copied {
	c := Copied{UIDValidity: validity, Target: map[uint32]uint32{}}
	of, ok := uidsOf(source)
	at, also := uidsOf(dest)
	from, to := of.Numbers(), at.Numbers()
	if validity == 0 || !ok || !also || len(from) != len(to) {
		return c
	}
	for i, u := range from {
		c.Target[u] = to[i]
	}
	return c
}

// Expunging is a UID EXPUNGE that was started. Wait returns the sequence numbers that the
// server named as expunged, each counted after those before it were gone. They also come
// with an error if the server refused the others.
type Expunging = Pending[[]uint32]

// Expunge starts a UID EXPUNGE, which removes those of the messages that are
// marked \Deleted. Without UIDPlus it is refused here.
func (s *Session) Expunge(set UIDSet) *Expunging {
	if !s.UIDPlus() {
		return unsent[[]uint32](StageExpunge, errors.New("server cannot expunge single messages"))
	}
	cmd := s.client.UIDExpunge(set.uids())
	var named []uint32
	done := make(chan error, 1)
	go func() { // the reader waits for each number to be taken
		for n := cmd.Next(); n != 0; n = cmd.Next() {
			if len(named) < maxCopied {
				named = append(named, n)
			}
		}
		done <- cmd.Close()
	}()
	return &Expunging{func() ([]uint32, error) {
		err := s.fail(StageExpunge, <-done)
		return named, err
	}}
}

// Append adds a message to a folder and waits for the outcome. UID and uidValidity are 0
// when the server did not send them.
func (s *Session) Append(folder string, flags []string, date time.Time, raw []byte) (uidValidity, uid uint32, err error) {
	sent, err := wireFlags(flags)
	if err = cmp.Or(s.takes(folder), err); err != nil {
		return 0, 0, impossible(StageAppend, err)
	}
	cmd := s.client.Append(s.named(folder), int64(len(raw)), &goimap.AppendOptions{Flags: sent, Time: date})
	_, werr := cmd.Write(raw)
	if cerr := cmd.Close(); werr == nil {
		werr = cerr
	}
	data, err := cmd.Wait()
	if err == nil {
		err = werr
	}
	if err != nil {
		return 0, 0, s.fail(StageAppend, err)
	}
	return data.UIDValidity, uint32(data.UID), nil
}
