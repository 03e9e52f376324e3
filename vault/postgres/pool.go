package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/semaphore"

	"github.com/postern-mail/postern/vault/kv"
)

const (
	// maxConnections is how many connections a process has to one address, beside the one
	// that listens.
	maxConnections = 8

	// idleTime is how long an unused connection stays open.
	idleTime = 15 * time.Second

	// reconnect is the pause between attempts to reach a database that fails over.
	reconnect = 100 * time.Millisecond
)

// pool lends connections. pgx has one of its own, above a package that maps types by
// reflection and makes the program larger by two million bytes.
type pool struct {
	config *pgconn.Config
	places *semaphore.Weighted
	turns  *semaphore.Weighted // of writers: who waits for others leaves places to readers and leases

	reached atomic.Bool // it has had a connection

	mu       sync.Mutex
	idle     []idleConn // the last one used at the end
	sweeping bool
}

type idleConn struct {
	*pgconn.PgConn
	since time.Time
}

func newPool(config *pgconn.Config) *pool {
	return &pool{config: config, places: semaphore.NewWeighted(maxConnections), turns: semaphore.NewWeighted(maxConnections / 2)}
}

func acquire(ctx context.Context, s *semaphore.Weighted) error {
	if err := s.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("%w: this process waits for itself: %w", kv.ErrBusy, err)
	}
	return nil
}

// patience is how long a call waits for a database: one that this process has reached may be
// failing over, another is more likely misnamed.
func (p *pool) patience() time.Duration {
	if p.reached.Load() {
		return patience
	}
	return firstPatience
}

// lend calls fn with a connection. Where that is of no use, because the server ended it or
// is none that writes, fn is called again with another one, as long as the context allows
// and patience lasts: so fn must not have changed anything then. The context that fn gets
// ends no later than that.
func (p *pool) lend(ctx context.Context, fn func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	c, err := p.take(ctx, func(c *pgconn.PgConn) error { return fn(ctx, c) })
	if c != nil {
		p.give(c)
	}
	return err
}

// take returns a connection with which begin succeeded, or begin's error. The caller gives
// it back in any case in which it is not nil.
func (p *pool) take(ctx context.Context, begin func(*pgconn.PgConn) error) (*pgconn.PgConn, error) {
	if err := acquire(ctx, p.places); err != nil {
		return nil, err
	}
	for failed := error(nil); ; {
		c, used, err := p.open(ctx)
		if err == nil {
			if err = begin(c); err == nil || !gone(err) {
				return c, err
			}
			discard(c)
		}
		switch {
		case ctx.Err() == nil && used: // it may have been dead for long
		case ctx.Err() == nil && gone(err) && !(len(p.config.Fallbacks) == 0 && hopeless(err)):
			select {
			case <-time.After(reconnect):
				failed = err
				continue
			case <-ctx.Done():
			}
			fallthrough
		default:
			p.places.Release(1)
			if failed != nil && pgconn.Timeout(err) { // it says more than that the last attempt was cut short
				err = failed
			}
			return nil, err
		}
	}
}

// hopeless reports an address that names no machine, or one that is not who it should be.
func hopeless(err error) bool {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &name) && name.IsNotFound || errors.As(err, &certificate)
}

// open returns a connection, and whether it was used before.
func (p *pool) open(ctx context.Context) (c *pgconn.PgConn, used bool, err error) {
	p.mu.Lock()
	n := len(p.idle)
	if n == 0 {
		p.mu.Unlock()
		if c, err = pgconn.ConnectConfig(ctx, p.config); err == nil {
			p.reached.Store(true)
		}
		return c, false, err
	}
	defer p.mu.Unlock()
	c = p.idle[n-1].PgConn
	p.idle = p.idle[:n-1]
	return c, true, nil
}

// give takes a connection back. One that is still in a transaction is closed.
func (p *pool) give(c *pgconn.PgConn) {
	defer p.places.Release(1)
	if c.IsClosed() || c.IsBusy() || c.TxStatus() != 'I' {
		discard(c)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, idleConn{c, time.Now().Round(0)})
	if !p.sweeping {
		p.sweeping = true
		time.AfterFunc(idleTime, p.sweep)
	}
}

// sweep closes what was not used for long, and comes again while something is left.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 && time.Since(p.idle[0].since) >= idleTime {
		go discard(p.idle[0].PgConn)
		p.idle = p.idle[1:]
	}
	if p.sweeping = len(p.idle) > 0; p.sweeping {
		time.AfterFunc(idleTime, p.sweep)
	}
}

func discard(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
