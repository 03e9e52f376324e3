package postgres

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postern-mail/postern/vault/kv"
)

const (
	// flushSize is how many bytes of writes are collected before they are sent.
	flushSize = 1 << 20

	// largeValue is the size from which a value is sent at once, and not kept to be read again.
	largeValue = 64 << 10

	// keepWrites is how many writes leave their marks.
	keepWrites = 10000

	// commitTime is how long an end of a transaction may take, whatever its caller's
	// context says by then: answerTime for the answer, and the rest to find out on another
	// connection what became of it.
	commitTime = 30 * time.Second
	answerTime = 10 * time.Second

	// warned is where a connection keeps the last warning of the server.
	warned = "warning"
)

// errUnknown says of a write that it may have been kept or not.
var errUnknown = errors.New("whether the last write was kept is not known")

// Transact implements kv.Engine.
func (e *Engine) Transact(ctx context.Context, write bool, fn func(kv.Tx) error) (kv.Version, error) {
	return e.run(ctx, write, func(t *tx) error {
		if t.state.seq == 0 {
			return fmt.Errorf("%w at %s", kv.ErrNone, e.name)
		}
		return fn(t)
	})
}

// run is Transact that also lends a state without a vault.
func (e *Engine) run(ctx context.Context, write bool, fn func(*tx) error) (v kv.Version, err error) {
	within, cancel := context.WithTimeout(ctx, e.pool.patience())
	defer cancel()
	t := &tx{e: e, ctx: ctx, since: time.Now(), write: write, known: map[place]*cell{}, wrote: map[string]bool{}, reads: map[string]int{}}
	defer t.end()
	before := e.newest()
	if write {
		if err := acquire(within, e.pool.turns); err != nil {
			return v, e.explain(ctx, t.since, err)
		}
		t.turn = true
	}
	if t.c, err = e.pool.take(within, func(c *pgconn.PgConn) error { return t.begin(within, c) }); err != nil {
		return v, e.explain(ctx, t.since, err)
	}
	if t.state.seq > 0 {
		if v, err = e.check(t.state, before); err != nil {
			return v, err
		}
	}
	err = fn(t)
	e.learn(write, t.reads)
	if err != nil || t.broken != nil {
		return v, t.outcome(err)
	}
	if !t.changed {
		return v, nil
	}
	if err := t.commit(); err != nil {
		return v, err
	}
	e.see(t.state)
	return t.state.version(), nil
}

// outcome is the error of a transaction's function, or that of the transaction, which the
// function may have overlooked.
func (t *tx) outcome(err error) error {
	if err != nil && (t.broken == nil || !errors.Is(err, t.broken)) {
		return err
	}
	return t.e.explain(t.ctx, t.since, t.broken)
}

// begin begins a transaction and reads the state, which a writer also locks, and after it what
// the transaction probably reads: one round trip. The server gives up waiting for other
// writers a little before the caller does.
func (t *tx) begin(ctx context.Context, c *pgconn.PgConn) error {
	wait := patience
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	wait = max(wait-min(wait/10, time.Second), time.Millisecond)
	kind, lock := "REPEATABLE READ READ ONLY", ""
	if t.write {
		kind, lock = "READ COMMITTED READ WRITE", " FOR UPDATE"
		// It also ends who takes no more of an answer. PostgreSQL has it since 12.
		if version, _ := strconv.Atoi(strings.SplitN(c.ParameterStatus("server_version"), ".", 2)[0]); version >= 12 && c.ParameterStatus("crdb_version") == "" {
			kind += fmt.Sprintf("; SET LOCAL tcp_user_timeout = %d", t.e.still.Milliseconds())
		}
	}
	sql := fmt.Sprintf("BEGIN TRANSACTION ISOLATION LEVEL %s; SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = %d; SELECT %s FROM postern_vault WHERE one = 1%s",
		kind, wait.Milliseconds(), patience.Milliseconds(), t.e.still.Milliseconds(), stateColumns, lock)
	asked := t.e.ahead(t.write)
	for _, words := range asked {
		sql += "; SELECT encode(key, 'base64'), encode(value, 'base64') FROM postern_records WHERE epoch = (SELECT epoch FROM postern_vault WHERE one = 1) AND " + words
	}
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return err
	}
	n := len(results) - len(asked)
	if t.state, err = readState(results[:n], nil); err != nil {
		return err
	}
	return t.answered(asked, results[n:])
}

// place names a record.
type place struct {
	epoch       int64
	bucket, key string
}

// words are the condition for a record of the present epoch.
func (at place) words() string {
	a := &arguments{inText: true}
	return "bucket = " + a.text(at.bucket) + " AND key = " + a.bytes([]byte(at.key))
}

// cell is a record that a transaction has written.
type cell struct {
	value []byte // nil where there is none
	dirty bool
}

// tx is a kv.Tx.
type tx struct {
	e       *Engine
	ctx     context.Context
	since   time.Time
	c       *pgconn.PgConn
	write   bool
	turn    bool                   // it has one of the pool's turns
	probe   bool                   // its COMMIT is only to see that one before it is durable
	state   state                  // with which it began; after the commit, the one that it made
	answers map[string][]kv.Record // by condition, what was read
	reads   map[string]int         // the first conditions, with the bytes of their records
	wrote   map[string]bool        // buckets
	known   map[place]*cell
	order   []place // those that are dirty
	size    int     // their bytes
	changed bool
	loud    bool  // a record was written that others may be waiting for
	broken  error // the first error, after which nothing is committed
}

var _ kv.Tx = (*tx)(nil)

// end gives the connection back, after ending what was not committed.
func (t *tx) end() {
	if t.turn {
		defer t.e.pool.turns.Release(1)
		t.turn = false
	}
	if t.c == nil {
		return
	}
	if !t.c.IsClosed() && t.c.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = t.c.Exec(ctx, "ROLLBACK").ReadAll()
	}
	t.e.pool.give(t.c)
	t.c = nil
}

const (
	typeBytes, typeInt, typeText = 17, 20, 25
	asText, asBytes              = 0, 1
)

// arguments are those of a statement: beside it, or in its text.
type arguments struct {
	inText  bool
	values  [][]byte
	types   []uint32
	formats []int16
}

func (a *arguments) add(value []byte, kind uint32, format int16) string {
	a.values, a.types, a.formats = append(a.values, value), append(a.types, kind), append(a.formats, format)
	return "$" + strconv.Itoa(len(a.values))
}

func (a *arguments) int(n int64) string {
	if a.inText {
		return strconv.FormatInt(n, 10)
	}
	return a.add(strconv.AppendInt(nil, n, 10), typeInt, asText)
}

func (a *arguments) text(s string) string {
	switch {
	case a.inText && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789./-") == "":
		return "'" + s + "'" // that has the collation of the index, and what a function gives has not
	case a.inText:
		return "convert_from(" + a.bytes([]byte(s)) + ", 'UTF8')"
	}
	return a.add([]byte(s), typeText, asText)
}

func (a *arguments) bytes(b []byte) string {
	if a.inText {
		return "decode('" + base64.StdEncoding.EncodeToString(b) + "', 'base64')"
	}
	return a.add(append([]byte{}, b...), typeBytes, asBytes)
}

// where selects the records of a bucket.
func (a *arguments) where(epoch int64, bucket string) string {
	return " WHERE epoch = " + a.int(epoch) + " AND bucket = " + a.text(bucket)
}

// ask runs a statement and returns its rows, of bytes.
func (t *tx) ask(sql string, a *arguments) ([][][]byte, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	result := t.c.ExecParams(t.ctx, sql, a.values, a.types, a.formats, []int16{asBytes}).Read()
	t.broken = result.Err
	return result.Rows, result.Err
}

func (t *tx) fail(err error) error {
	if t.broken == nil {
		t.broken = err
	}
	return t.broken
}

func (t *tx) Get(bucket string, key []byte) ([]byte, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	at := place{t.state.epoch, bucket, string(key)}
	if known := t.known[at]; known != nil {
		return bytes.Clone(known.value), nil
	}
	list, err := t.read(at.words(), true)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return bytes.Clone(list[0].Value), nil
}

func (t *tx) Put(bucket string, key, value []byte) error {
	return t.set(place{t.state.epoch, bucket, string(key)}, append([]byte{}, value...))
}

func (t *tx) Delete(bucket string, key []byte) error {
	return t.set(place{t.state.epoch, bucket, string(key)}, nil)
}

func (t *tx) set(at place, value []byte) error {
	switch {
	case t.broken != nil:
		return t.broken
	case !t.write:
		return t.fail(errors.New("a transaction that only reads cannot write"))
	case at.key == "":
		return t.fail(errors.New("a record without a key"))
	}
	t.changed, t.wrote[at.bucket] = true, true
	t.loud = t.loud || !quiet[at.bucket]
	if len(value) >= largeValue {
		t.order = slices.DeleteFunc(t.order, func(other place) bool { return other == at })
		delete(t.known, at)
		delete(t.answers, at.words())
		return t.putLarge(at, value)
	}
	if known := t.known[at]; known == nil || !known.dirty {
		t.order = append(t.order, at)
	}
	t.known[at] = &cell{value: value, dirty: true}
	if t.size += len(at.key) + len(value); t.size < flushSize {
		return nil
	}
	return t.flush()
}

// unhurried lets the next statements take as long as the caller waits.
func (t *tx) unhurried() error {
	_, err := t.ask("SET LOCAL statement_timeout = 0", &arguments{})
	return err
}

// quiet are the buckets that change with each command, and that nobody waits for. They are
// named in package vault, which has a test that none was forgotten.
var quiet = map[string]bool{"audit": true, "audit.chain": true, "limits": true, "sums": true}

// The server ends a transaction that stands still, with idle_in_transaction_session_timeout,
// until it has read the whole of the first message that it waits for, and not in the middle of
// those that follow. So what is long is sent as one message, or as the first one.

// putLarge sends a value beside its statement, which is faster than in its text.
func (t *tx) putLarge(at place, value []byte) error {
	a := &arguments{}
	sql := insert(a, at, value)
	if _, err := t.c.Prepare(t.ctx, "", sql, a.types); err != nil {
		return t.fail(err)
	}
	if err := t.c.ExecPrepared(t.ctx, "", a.values, a.formats, nil).Read().Err; err != nil {
		return t.fail(err)
	}
	return nil
}

func insert(a *arguments, at place, value []byte) (sql string) {
	return "INSERT INTO postern_records (epoch, bucket, key, value) VALUES (" + a.int(at.epoch) + ", " + a.text(at.bucket) + ", " + a.bytes([]byte(at.key)) + ", " + a.bytes(value) +
		") ON CONFLICT (epoch, bucket, key) DO UPDATE SET value = excluded.value"
}

// flush sends the collected writes.
func (t *tx) flush() error {
	if t.broken != nil || len(t.order) == 0 {
		return t.broken
	}
	if _, err := t.c.Exec(t.ctx, t.collected()).ReadAll(); err != nil {
		return t.fail(err)
	}
	return nil
}

// collected takes the collected writes, as statements for one message.
func (t *tx) collected() string {
	var sql strings.Builder
	a := &arguments{inText: true}
	for _, at := range t.order {
		if value := t.known[at].value; value != nil {
			sql.WriteString(insert(a, at, value) + ";")
		} else {
			sql.WriteString("DELETE FROM postern_records" + a.where(at.epoch, at.bucket) + " AND key = " + a.bytes([]byte(at.key)) + ";")
		}
		if t.known[at].dirty = false; at.epoch != t.state.epoch {
			delete(t.known, at)
		}
	}
	t.order, t.size = nil, 0
	return sql.String()
}

func (t *tx) Scan(bucket string, r kv.Range, limit int) (list []kv.Record, err error) {
	if slices.ContainsFunc(t.order, func(at place) bool { return at.bucket == bucket && at.epoch == t.state.epoch }) {
		if err := t.flush(); err != nil {
			return nil, err
		}
	}
	if t.broken != nil || limit <= 0 {
		return nil, t.broken
	}
	a := &arguments{inText: true}
	words := "bucket = " + a.text(bucket)
	if r.From != nil {
		words += " AND key >= " + a.bytes(r.From)
	}
	if r.To != nil {
		words += " AND key < " + a.bytes(r.To)
	}
	words += " ORDER BY key"
	if r.Reverse {
		words += " DESC"
	}
	words += " LIMIT " + a.int(int64(limit))
	if t.wrote[bucket] {
		return t.fetch(words)
	}
	known, err := t.read(words, len(t.reads) < maxAhead)
	for _, r := range known {
		list = append(list, kv.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
	}
	return list, err
}

func (t *tx) Buckets() (names []string, err error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	a := &arguments{}
	rows, err := t.ask("SELECT DISTINCT bucket FROM postern_records WHERE epoch = "+a.int(t.state.epoch), a)
	for _, row := range rows {
		names = append(names, string(row[0]))
	}
	slices.Sort(names)
	return names, err
}

// commit sends what is left with the COMMIT, and after that the notification, which is a
// transaction of its own: one round trip. Where the answer is lost, it finds out whether the
// write was kept before it says anything.
func (t *tx) commit() error {
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", t.e.name, err)
	}
	next := t.state
	next.seq, next.mark = next.seq+1, random()
	if t.loud {
		next.loud = next.seq
	}
	sql, a := t.collected(), &arguments{inText: true}
	for l := leaseOf(t.ctx); l != nil; l = l.outer {
		if l.e == t.e {
			sql += "SELECT 1 / count(*) FROM (SELECT 1 FROM postern_leases" + l.where(a) + " FOR SHARE) AS held;"
		}
	}
	sql += "UPDATE postern_vault SET seq = " + a.int(next.seq) + ", mark = " + a.int(next.mark) + ", epoch = " + a.int(next.epoch) + ", loud = " + a.int(next.loud) + " WHERE one = 1;" +
		"INSERT INTO postern_writes (seq, mark) VALUES (" + a.int(next.seq) + ", " + a.int(next.mark) + ");" +
		"DELETE FROM postern_writes WHERE seq <= " + a.int(next.seq-keepWrites) + ";COMMIT"
	if t.loud && !t.e.wake.silent() {
		sql += ";NOTIFY postern"
	}
	// A caller that gives up now must not make the outcome unknown.
	whole, end := context.WithTimeout(context.Background(), commitTime)
	defer end()
	ctx, cancel := context.WithTimeout(whole, t.e.answer)
	defer cancel()
	delete(t.c.CustomData(), warned)
	results, err := t.c.Exec(ctx, sql).ReadAll()
	committed := slices.ContainsFunc(results, func(r *pgconn.Result) bool { return r.CommandTag.String() == "COMMIT" })
	warning := t.c.CustomData()[warned]
	switch {
	case committed && warning != nil: // the one known is that a standby did not answer
		return &kv.Away{Path: t.e.name, Why: fmt.Sprintf("%v: the database warns: %v", errUnknown, warning), Unknown: true, Err: errUnknown}
	case committed:
		if err != nil && !gone(err) {
			t.e.wake.silence()
		}
	case err == nil:
		return fmt.Errorf("%w: %s did not commit", kv.ErrUnreachable, t.e.name)
	case t.probe || !gone(err):
		return t.e.explain(ctx, t.since, err)
	default:
		discard(t.c) // so that the server ends a transaction that is still open
		t.end()
		kept, unknown := t.e.kept(whole, next)
		switch {
		case unknown != nil:
			return &kv.Away{Path: t.e.name, Why: errUnknown.Error() + ": " + reason(err), Unknown: true, Err: errors.Join(errUnknown, err, unknown)}
		case !kept:
			return t.e.explain(context.Background(), t.since, err)
		}
	}
	t.state = next
	return nil
}

// kept finds out whether a write was committed. It locks the row, so that it waits for
// a transaction that is still under way, and where the write is there, it commits one of its
// own, whose answer says that a standby has both.
func (e *Engine) kept(ctx context.Context, write state) (kept bool, err error) {
	for {
		_, err = e.run(ctx, true, func(t *tx) error {
			a := &arguments{}
			rows, err := t.ask("SELECT 1 FROM postern_writes WHERE seq = "+a.int(write.seq)+" AND mark = "+a.int(write.mark), a)
			kept = len(rows) == 1
			t.probe, t.changed = true, kept
			return err
		})
		if !errors.Is(err, kv.ErrUnreachable) {
			return kept, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(reconnect):
		}
	}
}

// Replace implements kv.Engine with records of another epoch. Others go on to read the
// present ones until it ends. What the server keeps of the old ones until it is vacuumed,
// in its log and in backups, is the database's.
func (e *Engine) Replace(ctx context.Context, fn func(old kv.Tx, put func(bucket string, key, value []byte) error) error) (kv.Version, error) {
	return e.run(ctx, true, func(t *tx) error {
		if t.state.seq == 0 {
			return fmt.Errorf("%w at %s", kv.ErrNone, e.name)
		}
		next := t.state.epoch + 1
		if err := fn(t, func(bucket string, key, value []byte) error {
			return t.set(place{next, bucket, string(key)}, append([]byte{}, value...))
		}); err != nil {
			return err
		}
		if err := t.flush(); err != nil {
			return err
		}
		if err := t.unhurried(); err != nil {
			return err
		}
		a := &arguments{}
		if _, err := t.ask("DELETE FROM postern_records WHERE epoch <> "+a.int(next), a); err != nil {
			return err
		}
		t.state.epoch, t.changed = next, true
		return nil
	})
}

// Check implements kv.Engine: the state, the mark of the last write, and that each record
// is of the present epoch and can be read.
func (e *Engine) Check(ctx context.Context) error {
	_, err := e.run(ctx, true, func(t *tx) error {
		if t.state.seq == 0 {
			return fmt.Errorf("%w at %s", kv.ErrNone, e.name)
		}
		a := &arguments{}
		rows, err := t.ask("SELECT 1 FROM postern_writes WHERE seq = "+a.int(t.state.seq)+" AND mark = "+a.int(t.state.mark), a)
		if err == nil && len(rows) != 1 {
			err = fmt.Errorf("%w: the last write of %s left no mark", kv.ErrDamaged, e.name)
		}
		if err != nil {
			return err
		}
		a = &arguments{}
		rows, err = t.ask("SELECT 1 FROM postern_records WHERE epoch <> "+a.int(t.state.epoch)+" LIMIT 1", a)
		if err == nil && len(rows) > 0 {
			err = fmt.Errorf("%w: %s has records of another epoch", kv.ErrDamaged, e.name)
		}
		if err != nil {
			return err
		}
		if err := t.unhurried(); err != nil {
			return err
		}
		_, err = t.ask("SELECT count(sha256(value)) FROM postern_records", &arguments{})
		return err
	})
	return err
}
