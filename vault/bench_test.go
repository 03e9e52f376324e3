package vault

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/postern-mail/postern/gateway"
)

func benchVault(b *testing.B) *Vault {
	path, k := newPlace(b)
	admin := mustOpen(b, path, k, nil)
	for i := range 10 {
		mustAdd(b, admin, fmt.Sprint("account", i))
	}
	return mustOpen(b, path, Keys{Agent: k.Agent}, nil)
}

func BenchmarkRecord(b *testing.B) {
	v := benchVault(b)
	for b.Loop() {
		must(b, v.Record(b.Context(), entry("mail list")))
	}
}

// BenchmarkFiftyCallsAtOnce makes the vault calls of fifty trivial commands at once: the
// settings, a rate limit, an account, and an audit entry each.
func BenchmarkFiftyCallsAtOnce(b *testing.B) {
	v := benchVault(b)
	for b.Loop() {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := v.Config(b.Context())
				if err == nil {
					_, err = v.Take(b.Context(), "commands:agent", 100_000, time.Minute)
				}
				if err == nil {
					_, err = v.Account(b.Context(), "account5")
				}
				if err == nil {
					err = v.Record(b.Context(), gateway.AuditEntry{Principal: "agent", Command: "mail list"})
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
