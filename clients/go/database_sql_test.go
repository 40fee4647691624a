package clients

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

func open(t *testing.T, server *server) *sql.DB {
	database, err := sql.Open("pgx", server.url())
	check(t, err)
	t.Cleanup(func() { _ = database.Close() })
	return database
}

func TestDatabaseSQLReadsWhatItWrote(t *testing.T) {
	database := open(t, newServer(t))
	_, err := database.Exec(`CREATE TABLE t (id bigserial PRIMARY KEY, flag boolean, big bigint,
		ratio double precision, amount numeric(12,2), note text, data bytea, name uuid, at timestamptz)`)
	check(t, err)
	insert, err := database.Prepare(`INSERT INTO t (flag, big, ratio, amount, note, data, name, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`)
	check(t, err)
	name := "01900000-0000-7000-8000-00000000abcd"
	var id int64
	check(t, insert.QueryRow(true, int64(1)<<40, 0.1, "12.50", "täxt", []byte{0, 255}, name, moment).Scan(&id))
	var (
		flag         bool
		big          int64
		ratio        float64
		amount, note string
		data         []byte
		found        string
		at           time.Time
	)
	row := database.QueryRow("SELECT flag, big, ratio, amount, note, data, name, at FROM t WHERE id = $1", id)
	check(t, row.Scan(&flag, &big, &ratio, &amount, &note, &data, &found, &at))
	equal(t, fmt.Sprint(flag, big, ratio, amount, note, data, found, at.UTC()),
		fmt.Sprint(true, int64(1)<<40, 0.1, "12.50", "täxt", []byte{0, 255}, name, moment))
	check(t, insert.QueryRow(nil, nil, nil, nil, nil, nil, nil, nil).Scan(&id))
	var nothing sql.NullTime
	check(t, database.QueryRow("SELECT at FROM t WHERE note IS NULL").Scan(&nothing))
	equal(t, nothing.Valid, false)
}

func TestDatabaseSQLRollsBack(t *testing.T) {
	database := open(t, newServer(t))
	_, err := database.Exec("CREATE TABLE t (id int PRIMARY KEY)")
	check(t, err)
	transaction, err := database.Begin()
	check(t, err)
	_, err = transaction.Exec("INSERT INTO t VALUES (1)")
	check(t, err)
	_, err = transaction.Exec("INSERT INTO t VALUES (1)")
	equal(t, state(err), "23505")
	check(t, transaction.Rollback())
	var count int
	check(t, database.QueryRow("SELECT count(*) FROM t").Scan(&count))
	equal(t, count, 0)
}

func TestDatabaseSQLReconnectsAfterAKill(t *testing.T) {
	server := newServer(t)
	database := open(t, server)
	_, err := database.Exec("CREATE TABLE t (id int PRIMARY KEY)")
	check(t, err)
	_, err = database.Exec("INSERT INTO t VALUES (1)")
	check(t, err)
	server.kill()
	if database.Ping() == nil {
		t.Fatal("nobody was there to answer")
	}
	server.start()
	var count int
	check(t, database.QueryRow("SELECT count(*) FROM t").Scan(&count))
	equal(t, count, 1)
}
