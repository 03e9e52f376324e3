package vault

import "testing"

func BenchmarkRecord(b *testing.B) {
	_, v := newVault(b, nil)
	for b.Loop() {
		must(b, v.Record(b.Context(), entry("mail list")))
	}
}
