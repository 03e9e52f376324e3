// Package postgres keeps a vault's records in a PostgreSQL database, for processes on any
// number of machines, with that part of SQL that CockroachDB and YugabyteDB have too.
//
// Writers take turns by one locked row, which also counts the writes; readers see one
// snapshot and wait for nobody. So nothing is ever tried again because of another
// transaction. What a transaction writes is collected and sent with the COMMIT, and what the
// last ones of the process read is asked for with the BEGIN: a write costs a round trip to
// begin, one for each record that it reads and they did not, two for each large value, and
// one to end. Each write leaves its number and a random mark, by which a COMMIT whose answer
// was lost is found or not. Who stops in a write, wherever that is, is ended by the server
// after a minute.
//
// A connection is used for one transaction or one statement at a time and has no state of
// its own, so that a pooler in transaction mode can stand between.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postern-mail/postern/vault/kv"
)

// Engine is a vault in a database. A process has one for each address.
type Engine struct {
	name string // the address without its password
	pool *pool
	wake *wake

	still, answer, lease, look, least time.Duration // maxTransaction, answerTime, leaseTime, lookPause and shortWait

	mu     sync.Mutex
	seen   state            // the newest state that this process has seen
	habits map[bool][]habit // of transactions that write, and of the others
}

var _ kv.Engine = (*Engine)(nil)

const (
	// patience is the longest that a call waits for others, or for a database that fails
	// over, where its context does not say.
	patience = 30 * time.Second

	// firstPatience is that of a process that has not reached the database yet.
	firstPatience = 5 * time.Second

	// maxTransaction is how long the server waits for the next statement of a transaction
	// before it ends it: a process that stands still must not hold up the others.
	maxTransaction = time.Minute
)

// At returns the engine of the vault at an address, as libpq reads it: with the service
// file, the password file and the PG* variables for what the address leaves out. It
// refuses a connection to another machine that is not encrypted and verified
// (sslmode=verify-full, which is the default for one). Errors match kv.ErrNone,
// kv.ErrUnreachable or kv.ErrNewer, and tell nothing of a password.
func At(ctx context.Context, address string) (*Engine, error) {
	e, err := engine(address)
	if err != nil {
		return nil, err
	}
	if _, err := e.Version(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// shared has the engine of each address of this process.
var shared struct {
	sync.Mutex
	by map[string]*Engine
}

func engine(address string) (*Engine, error) {
	shared.Lock()
	defer shared.Unlock()
	if e := shared.by[address]; e != nil {
		return e, nil
	}
	e, err := newEngine(address)
	if err != nil {
		return nil, err
	}
	if shared.by == nil {
		shared.by = map[string]*Engine{}
	}
	shared.by[address] = e
	return e, nil
}

func newEngine(address string) (*Engine, error) {
	config, err := configure(address)
	if err != nil {
		return nil, err
	}
	return &Engine{
		name: describe(config), pool: newPool(config), wake: &wake{config: config}, habits: map[bool][]habit{},
		still: maxTransaction, answer: answerTime, lease: leaseTime, look: lookPause, least: shortWait,
	}, nil
}

// configure reads an address.
func configure(address string) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(address)
	if err == nil && !verified(config) && os.Getenv("PGSSLMODE") == "" && !strings.Contains(address, "sslmode=") {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		config, err = pgconn.ParseConfig(address + separator + "sslmode=verify-full")
	}
	// A password with such signs in it is taken for a host or a database, which are told.
	if err != nil || strings.ContainsAny(config.Database, "@/") || strings.Contains(hosts(config), "@") {
		// The parser's error is not repeated: it may quote a password.
		return nil, fmt.Errorf("%w: it cannot be read, or a service, password file or certificate that it names; signs like @ and / in a name or a password are written %%40 and %%2F", kv.ErrAddress)
	}
	if !verified(config) {
		return nil, fmt.Errorf("%w: the database is on another machine, and the connection would not be encrypted and verified; set sslmode=verify-full, and sslrootcert where its certificate is your own", kv.ErrAddress)
	}
	config.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		err := pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, c)
		if err != nil && ctx.Err() == nil && !c.IsClosed() {
			err = errReads
		}
		return err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "postern"
	}
	config.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warned] = n.Message
		}
	}
	return config, nil
}

var errReads = errors.New("it only reads, as a standby does")

func hosts(c *pgconn.Config) string {
	all := c.Host
	for _, f := range c.Fallbacks {
		all += " " + f.Host
	}
	return all
}

// verified reports whether all servers of an address are on this machine, or verified.
func verified(c *pgconn.Config) bool {
	safe := func(host string, insecure bool) bool {
		if strings.HasPrefix(host, "/") || host == "localhost" {
			return true
		}
		ip, err := netip.ParseAddr(host)
		return err == nil && ip.IsLoopback() || !insecure
	}
	ok := safe(c.Host, c.TLSConfig == nil || c.TLSConfig.InsecureSkipVerify)
	for _, f := range c.Fallbacks {
		ok = ok && safe(f.Host, f.TLSConfig == nil || f.TLSConfig.InsecureSkipVerify)
	}
	return ok
}

// Describe is an address without user, password and options; empty for one that cannot be
// read.
func Describe(address string) string {
	config, err := configure(address)
	if err != nil {
		return ""
	}
	return describe(config)
}

func describe(c *pgconn.Config) string {
	host := c.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, fmt.Sprint(c.Port))
	}
	return "postgres://" + host + "/" + c.Database
}

// Path returns the address of the database without user, password and options.
func (e *Engine) Path() string { return e.name }

// Version implements kv.Engine.
func (e *Engine) Version(ctx context.Context) (kv.Version, error) {
	var s state
	before, since := e.newest(), time.Now()
	err := e.pool.lend(ctx, func(ctx context.Context, c *pgconn.PgConn) (err error) {
		s, err = readState(c.Exec(ctx, "SELECT "+stateColumns+" FROM postern_vault WHERE one = 1").ReadAll())
		return err
	})
	if err != nil {
		return kv.Version{}, e.explain(ctx, since, err)
	}
	return e.check(s, before)
}

func (e *Engine) newest() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// check judges a state by the newest one that this process had seen before it asked for it,
// and returns its version.
func (e *Engine) check(s, before state) (kv.Version, error) {
	switch {
	case s.seq == 0:
		return kv.Version{}, fmt.Errorf("%w at %s", kv.ErrNone, e.name)
	case s.schema != schemaVersion:
		return kv.Version{}, fmt.Errorf("%w: the tables of %s have version %d, and this program knows %d", kv.ErrNewer, e.name, s.schema, schemaVersion)
	case before.seq > 0 && (s.id != before.id || s.seq < before.seq || s.seq == before.seq && s.mark != before.mark):
		return kv.Version{}, fmt.Errorf("%w: %s from its write %d to %d", kv.ErrWentBack, e.name, before.seq, s.seq)
	default:
		e.see(s)
		return s.version(), nil
	}
}

// forget is for a vault that this process has removed.
func (e *Engine) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = state{}
}

func (e *Engine) see(s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.id != e.seen.id || s.seq > e.seen.seq {
		e.seen = s
	}
}

// explain gives an error of the driver its meaning. since is when its caller began to wait.
func (e *Engine) explain(ctx context.Context, since time.Time, err error) error {
	var answer *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.As(err, &connect) && !pgconn.Timeout(err):
		return &kv.Away{Path: e.name, Why: reason(err), Err: errors.Join(ctx.Err(), err)}
	case ctx.Err() != nil:
		return kv.Ended(ctx, since, e.name)
	case errors.Is(err, kv.ErrBusy), errors.Is(err, kv.ErrDamaged):
		return fmt.Errorf("%s: %w", e.name, err)
	case !errors.As(err, &answer):
		return &kv.Away{Path: e.name, Why: reason(err), Err: err}
	}
	switch answer.Code {
	case "42P01": // no such table
		if !strings.Contains(answer.Message, "postern_vault") {
			return fmt.Errorf("%w: %s: %w", kv.ErrDamaged, e.name, err)
		}
		return fmt.Errorf("%w at %s", kv.ErrNone, e.name)
	case "55P03", "57014", "25P03", "40001", "40P01": // waited too long for others, or lost to them
		return fmt.Errorf("%w: %s: %w", kv.ErrBusy, e.name, err)
	case "22012": // of commit
		return fmt.Errorf("%w: %s: the lock was lost to it meanwhile", kv.ErrBusy, e.name)
	}
	return &kv.Away{Path: e.name, Why: reason(err), Err: err}
}

// reason is what went wrong in an error of the driver, which has a line for each attempt and
// names the user.
func reason(err error) string {
	var network *net.OpError
	var name *net.DNSError
	var answer *pgconn.PgError
	switch {
	case pgconn.Timeout(err):
		return "it did not answer in time"
	case errors.Is(err, errReads):
		return errReads.Error()
	case errors.As(err, &network):
		return network.Error()
	case errors.As(err, &name):
		return name.Error()
	case errors.As(err, &answer):
		return answer.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pgconn.ErrConnClosed):
		return "the connection to it ended"
	}
	return err.Error()
}

// gone reports whether a connection has ended, or a server is ending, starting or no longer
// the one that writes, so that another connection may find a better one.
func gone(err error) bool {
	var answer *pgconn.PgError
	var connect *pgconn.ConnectError
	if !errors.As(err, &answer) {
		return !errors.Is(err, kv.ErrDamaged)
	}
	switch answer.Code {
	case "57P01", "57P02", "57P03", "25006", "53300":
		return true
	}
	return strings.HasPrefix(answer.Code, "08") || answer.SeverityUnlocalized != "ERROR" && !errors.As(err, &connect)
}
