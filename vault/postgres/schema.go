package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postern-mail/postern/vault/kv"
)

// schemaVersion is the version of the tables.
const schemaVersion = 1

// tables make what a vault needs. A record is of an epoch, of which one is present:
// a vault that is rekeyed is written anew beside the old records.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS postern_vault (one int8 PRIMARY KEY, schema int8 NOT NULL, id int8 NOT NULL, seq int8 NOT NULL, mark int8 NOT NULL, epoch int8 NOT NULL, loud int8 NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS postern_records (epoch int8, bucket text, key bytea, value bytea NOT NULL, PRIMARY KEY (epoch, bucket, key))`,
	`CREATE TABLE IF NOT EXISTS postern_writes (seq int8 PRIMARY KEY, mark int8 NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS postern_leases (name text PRIMARY KEY, holder int8 NOT NULL, until timestamptz NOT NULL)`,
}

const stateColumns = "schema, id, seq, mark, epoch, loud"

// state is the row that writers lock. loud is the last write that others may be waiting for.
type state struct{ schema, id, seq, mark, epoch, loud int64 }

func (s state) version() kv.Version {
	return kv.Version{File: uint64(s.id), Seq: uint64(s.seq), Sum: uint64(s.mark)}
}

// readState returns the row that the last of several statements gives.
func readState(results []*pgconn.Result, err error) (s state, _ error) {
	if err != nil {
		return s, err
	}
	if len(results) == 0 || len(results[len(results)-1].Rows) != 1 {
		return s, nil // there are tables, and no vault
	}
	for i, to := range []*int64{&s.schema, &s.id, &s.seq, &s.mark, &s.epoch, &s.loud} {
		if *to, err = strconv.ParseInt(string(results[len(results)-1].Rows[0][i]), 10, 64); err != nil {
			return s, fmt.Errorf("%w: its state is no number", kv.ErrDamaged)
		}
	}
	return s, nil
}

func random() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// Remove takes the vault at an address away, and leaves its tables.
func Remove(ctx context.Context, address string) error {
	e, err := engine(address)
	if err != nil {
		return err
	}
	_, err = e.run(ctx, true, func(t *tx) error {
		t.changed, t.state.seq = true, -1 // the commit makes it 0
		_, err := t.ask("DELETE FROM postern_records", &arguments{})
		if err == nil {
			_, err = t.ask("DELETE FROM postern_writes", &arguments{})
		}
		return err
	})
	e.forget()
	return err
}

// Create makes the tables at an address where they are missing, and where they have no vault
// yet, the records of fill. It reports whether it did that: a vault that is there, or that
// another process makes meanwhile, stays unchanged.
func Create(ctx context.Context, address string, fill func(kv.Tx) error) (created bool, err error) {
	e, err := engine(address)
	if err != nil {
		return false, err
	}
	since := time.Now()
	if err := e.pool.lend(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		for _, table := range tables {
			_, err := c.Exec(ctx, table).ReadAll()
			var answer *pgconn.PgError
			// Another process that makes the same table, and its type, at this moment.
			if errors.As(err, &answer) && (answer.Code == "23505" || answer.Code == "42P07" || answer.Code == "42710") {
				err = nil
			}
			if err != nil {
				return err
			}
		}
		_, err := c.Exec(ctx, fmt.Sprintf("INSERT INTO postern_vault (one, schema, id, seq, mark, epoch, loud) VALUES (1, %d, %d, 0, 0, 1, 0) ON CONFLICT (one) DO NOTHING", schemaVersion, random())).ReadAll()
		return err
	}); err != nil {
		return false, e.explain(ctx, since, err)
	}
	_, err = e.run(ctx, true, func(t *tx) error {
		if t.state.seq > 0 {
			return nil
		}
		created, t.changed = true, true
		return fill(t)
	})
	return created && err == nil, err
}
