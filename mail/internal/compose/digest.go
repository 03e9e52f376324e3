package compose

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest returns the SHA-256, in lower-case hexadecimal, of a submission: the
// envelope's sender, its recipients in their order, and the message. Each is
// preceded by its length, so that two different submissions never have the same
// encoding.
func Digest(from string, recipients []string, wire []byte) string {
	sum := sha256.New()
	writeSized(sum, []byte(from))
	writeSize(sum, len(recipients))
	for _, r := range recipients {
		writeSized(sum, []byte(r))
	}
	writeSized(sum, wire)
	return hex.EncodeToString(sum.Sum(nil))
}

func writeSized(h hash.Hash, b []byte) {
	writeSize(h, len(b))
	_, _ = h.Write(b) // hash.Hash promises not to fail
}

func writeSize(h hash.Hash, n int) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
}
