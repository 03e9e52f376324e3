package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// formatVersion is the format that this version writes. It is part of every value's
// associated data and of every derived key, so that data of one format cannot pass
// for data of another.
const formatVersion = 1

// rekeyedFormat is the format in the header of a vault that was rekeyed; a version that
// does not know it would derive other names and digests. Values are those of formatVersion.
const rekeyedFormat = 2

const idSize = 16

// sealer seals values for their place in one vault. It is safe for concurrent
// use.
type sealer struct {
	aead cipher.AEAD
	id   []byte
}

func newSealer(key, id []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	// A random nonce of 96 bits per value, which it puts in front.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead: aead, id: id}, nil
}

func (s *sealer) place(bucket string, key []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, formatVersion)
	return appendSized(b, s.id, []byte(bucket), key)
}

func (s *sealer) seal(bucket string, key, plain []byte) []byte {
	return s.aead.Seal(nil, nil, plain, s.place(bucket, key))
}

// open returns a fresh slice, never nil.
func (s *sealer) open(bucket string, key, sealed []byte) ([]byte, error) {
	plain, err := s.aead.Open([]byte{}, nil, sealed, s.place(bucket, key))
	if err != nil {
		return nil, fmt.Errorf("%w: the record %s/%s does not open", ErrDamaged, bucket, printable(key))
	}
	return plain, nil
}

// printable shows a record's key in an error: names as text, numbers and
// anything else in hexadecimal.
func printable(key []byte) string {
	if len(key) > 64 {
		key = key[:64]
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return fmt.Sprintf("%x", key)
		}
	}
	return string(key)
}

// derive makes the key for one purpose from a secret, bound to the vault.
func derive(secret, id []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, id, fmt.Sprintf("postern vault %d: %s", formatVersion, purpose), keySize)
}

func derivedSealer(secret, id []byte, purpose string) (*sealer, error) {
	k, err := derive(secret, id, purpose)
	if err != nil {
		return nil, err
	}
	defer clear(k)
	return newSealer(k, id)
}

func appendSized(b []byte, fields ...[]byte) []byte {
	for _, f := range fields {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(f))), f...)
	}
	return b
}

// writeSized feeds fields to a hash so that two different sequences of fields
// never give the same bytes.
func writeSized(h hash.Hash, fields ...[]byte) {
	var n [8]byte
	for _, f := range fields {
		binary.BigEndian.PutUint64(n[:], uint64(len(f)))
		_, _ = h.Write(n[:])
		_, _ = h.Write(f)
	}
}

func keyedDigest(key []byte, fields ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	writeSized(h, fields...)
	return h.Sum(nil)
}

// decodeStrict decodes the whole of a record. An unknown field is an error, since it
// may be a restriction that this version would ignore.
func decodeStrict(record []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(record))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes follow its end")
	}
	return nil
}

func uint64Bytes(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
