package mail

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// IDAlphabet is in byte order, and has no letters that are easily confused.
var IDAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns an id that sorts by time: 10 characters of milliseconds since 1970 and 6 random
// ones.
func NewID(now time.Time) string {
	var b [10]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(now.UnixMilli(), 0))<<14)
	text := IDAlphabet.EncodeToString(b[:7])[:10]
	var r [4]byte
	_, _ = rand.Read(r[:]) // it never fails
	return text + IDAlphabet.EncodeToString(r[:])[:6]
}

// IDTime returns the time for which NewID made an id, to the millisecond.
func IDTime(id string) (time.Time, bool) {
	if len(id) != 16 {
		return time.Time{}, false
	}
	b, err := IDAlphabet.DecodeString(id)
	if err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 14)).UTC(), true
}
