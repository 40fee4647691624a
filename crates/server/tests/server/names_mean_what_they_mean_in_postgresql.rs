//! Names that mean nothing, or stand where they may not, are told as PostgreSQL tells them: with its SQLSTATE, its
//! text, and the place in the statement.

use tokio_postgres::Client;
use tokio_postgres::error::ErrorPosition;

use crate::common::World;
use crate::postgresql::Cluster;

const TABLES: &str = "CREATE TABLE t (id int PRIMARY KEY, a int, b text);
    CREATE TABLE u (id int PRIMARY KEY, a int, c text)";

/// A statement, its SQLSTATE, the text, and the place, 0 where none is told.
const REFUSED: &[(&str, &str, &str, u32)] = &[
    ("SELECT missing FROM t", "42703", "column \"missing\" does not exist", 8),
    ("SELECT t.missing FROM t", "42703", "column t.missing does not exist", 8),
    ("SELECT x.a FROM t", "42P01", "missing FROM-clause entry for table \"x\"", 8),
    ("SELECT t.a FROM t x", "42P01", "invalid reference to FROM-clause entry for table \"t\"", 8),
    ("SELECT a FROM t, u", "42702", "column reference \"a\" is ambiguous", 8),
    ("SELECT * FROM nope", "42P01", "relation \"nope\" does not exist", 15),
    ("SELECT * FROM nope.t", "42P01", "relation \"nope.t\" does not exist", 15),
    ("SELECT * FROM public.nope", "42P01", "relation \"public.nope\" does not exist", 15),
    ("SELECT f(1)", "42883", "function f(integer) does not exist", 8),
    (
        "SELECT f(a, b, 'x', null, 1.5) FROM t",
        "42883",
        "function f(integer, text, unknown, unknown, numeric) does not exist",
        8,
    ),
    ("SELECT lower(1)", "42883", "function lower(integer) does not exist", 8),
    ("SELECT abs('x'::text)", "42883", "function abs(text) does not exist", 8),
    ("SELECT * FROM f(1)", "42883", "function f(integer) does not exist", 15),
    ("SELECT * FROM t, t", "42712", "table name \"t\" specified more than once", 0),
    ("SELECT * FROM t a JOIN u a ON true", "42712", "table name \"a\" specified more than once", 0),
    ("SELECT a FROM t ORDER BY 3", "42P10", "ORDER BY position 3 is not in select list", 26),
    ("SELECT a FROM t ORDER BY 'x'", "42601", "non-integer constant in ORDER BY", 26),
    ("SELECT a FROM t GROUP BY 3", "42P10", "GROUP BY position 3 is not in select list", 26),
    (
        "SELECT a, b FROM t GROUP BY a",
        "42803",
        "column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function",
        11,
    ),
    (
        "SELECT a FROM t HAVING count(*) > 1",
        "42803",
        "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function",
        8,
    ),
    (
        "SELECT count(*) FROM t WHERE count(*) > 1",
        "42803",
        "aggregate functions are not allowed in WHERE",
        30,
    ),
    (
        "SELECT count(*) FROM t GROUP BY count(*)",
        "42803",
        "aggregate functions are not allowed in GROUP BY",
        33,
    ),
    ("SELECT sum(count(*)) FROM t", "42803", "aggregate function calls cannot be nested", 12),
    (
        "SELECT a FROM t WHERE row_number() OVER () > 1",
        "42P20",
        "window functions are not allowed in WHERE",
        23,
    ),
    (
        "SELECT row_number() FROM t",
        "42809",
        "window function row_number requires an OVER clause",
        8,
    ),
    (
        "SELECT lower(b) OVER () FROM t",
        "42809",
        "OVER specified, but lower is not a window function nor an aggregate function",
        8,
    ),
    (
        "SELECT a FROM t JOIN u ON sum(t.a) > 1",
        "42803",
        "aggregate functions are not allowed in JOIN conditions",
        27,
    ),
    (
        "SELECT a FROM t GROUP BY row_number() OVER ()",
        "42P20",
        "window functions are not allowed in GROUP BY",
        26,
    ),
    (
        "SELECT a FROM t HAVING row_number() OVER () > 1",
        "42P20",
        "window functions are not allowed in HAVING",
        24,
    ),
    (
        "SELECT sum(row_number() OVER ()) FROM t",
        "42803",
        "aggregate function calls cannot contain window function calls",
        12,
    ),
    (
        "SELECT rank() OVER (ORDER BY rank() OVER ()) FROM t",
        "42P20",
        "window functions are not allowed in window definitions",
        30,
    ),
    ("SELECT a FROM t ORDER BY missing", "42703", "column \"missing\" does not exist", 26),
    ("SELECT a AS z FROM t ORDER BY z + 1", "42703", "column \"z\" does not exist", 31),
    ("SELECT a AS z FROM t WHERE z = 1", "42703", "column \"z\" does not exist", 28),
    ("SELECT a AS z, b AS z FROM t ORDER BY z", "42702", "ORDER BY \"z\" is ambiguous", 39),
    ("SELECT a AS z, b AS z FROM t GROUP BY z", "42702", "GROUP BY \"z\" is ambiguous", 39),
    (
        "SELECT * FROM t JOIN u USING (nope)",
        "42703",
        "column \"nope\" specified in USING clause does not exist in left table",
        0,
    ),
    (
        "SELECT * FROM t JOIN u USING (b)",
        "42703",
        "column \"b\" specified in USING clause does not exist in right table",
        0,
    ),
    (
        "SELECT * FROM t JOIN u USING (id) WHERE a = 1",
        "42702",
        "column reference \"a\" is ambiguous",
        41,
    ),
    (
        "SELECT * FROM t JOIN u USING (id) JOIN t v USING (a)",
        "42702",
        "common column name \"a\" appears more than once in left table",
        0,
    ),
    (
        "SELECT * FROM t JOIN u ON x.id = t.id",
        "42P01",
        "missing FROM-clause entry for table \"x\"",
        27,
    ),
    (
        "SELECT * FROM t, u JOIN t v ON t.id = v.id",
        "42P01",
        "invalid reference to FROM-clause entry for table \"t\"",
        32,
    ),
    (
        "SELECT * FROM t, (SELECT t.a) s",
        "42P01",
        "invalid reference to FROM-clause entry for table \"t\"",
        26,
    ),
    ("SELECT * FROM t, LATERAL (SELECT t.z) s", "42703", "column t.z does not exist", 34),
    ("SELECT (SELECT missing FROM u) FROM t", "42703", "column \"missing\" does not exist", 16),
    ("SELECT (SELECT t.missing FROM u) FROM t", "42703", "column t.missing does not exist", 16),
    ("SELECT s.nope FROM (SELECT a FROM t) s", "42703", "column s.nope does not exist", 8),
    (
        "SELECT * FROM (SELECT a FROM t) s (x, y)",
        "42P10",
        "table \"s\" has 1 columns available but 2 columns specified",
        0,
    ),
    (
        "SELECT * FROM t x (p, q, r, s)",
        "42P10",
        "table \"x\" has 3 columns available but 4 columns specified",
        0,
    ),
    ("WITH w AS (SELECT 1 AS a) SELECT b FROM w", "42703", "column \"b\" does not exist", 34),
    (
        "WITH w AS (SELECT 1), w AS (SELECT 2) SELECT * FROM w",
        "42712",
        "WITH query name \"w\" specified more than once",
        23,
    ),
    (
        "WITH w (a, b) AS (SELECT 1) SELECT * FROM w",
        "42P10",
        "WITH query \"w\" has 1 columns available but 2 columns specified",
        6,
    ),
    (
        "SELECT a FROM t UNION SELECT a FROM u ORDER BY missing",
        "42703",
        "column \"missing\" does not exist",
        48,
    ),
    (
        "SELECT a FROM t UNION SELECT a FROM u ORDER BY a + 1",
        "0A000",
        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
        48,
    ),
    (
        "SELECT a FROM t UNION SELECT a, b FROM t",
        "42601",
        "each UNION query must have the same number of columns",
        30,
    ),
    ("SELECT x.* FROM t", "42P01", "missing FROM-clause entry for table \"x\"", 8),
    ("SELECT *", "42601", "SELECT * with no tables specified is not valid", 8),
    ("SELECT t.* FROM t x", "42P01", "invalid reference to FROM-clause entry for table \"t\"", 8),
    (
        "SELECT DISTINCT a FROM t ORDER BY b",
        "42P10",
        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
        35,
    ),
    (
        "SELECT DISTINCT ON (a) a FROM t ORDER BY b",
        "42P10",
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        21,
    ),
    ("SELECT a FROM t LIMIT a", "42P10", "argument of LIMIT must not contain variables", 23),
    (
        "SELECT sum(a) FILTER (WHERE sum(a) > 1) FROM t",
        "42803",
        "aggregate functions are not allowed in FILTER",
        29,
    ),
    ("SELECT sum(a) OVER w FROM t", "42704", "window \"w\" does not exist", 20),
    ("SELECT count(a, b) FROM t", "42883", "function count(integer, text) does not exist", 8),
    ("SELECT sum(b) FROM t", "42883", "function sum(text) does not exist", 8),
    ("SELECT public.lower('x')", "42883", "function public.lower(unknown) does not exist", 8),
    ("SELECT \"T\".a FROM t", "42P01", "missing FROM-clause entry for table \"T\"", 8),
    ("SELECT A.b.c FROM t", "42P01", "missing FROM-clause entry for table \"b\"", 8),
    ("SELECT t.a.b FROM t", "42P01", "missing FROM-clause entry for table \"a\"", 8),
    ("SELECT public.t.zz FROM t", "42703", "column t.zz does not exist", 8),
    ("SELECT public.u.a FROM t", "42P01", "missing FROM-clause entry for table \"u\"", 8),
    (
        "SELECT a, count(*) FROM t",
        "42803",
        "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function",
        8,
    ),
    (
        "SELECT t.a + 1, count(*) FROM t GROUP BY b",
        "42803",
        "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function",
        8,
    ),
    (
        "SELECT *, count(*) FROM t GROUP BY b",
        "42803",
        "column \"t.id\" must appear in the GROUP BY clause or be used in an aggregate function",
        8,
    ),
    (
        "SELECT count(*) FROM t ORDER BY a",
        "42803",
        "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function",
        33,
    ),
    (
        "SELECT a, (SELECT t.b) FROM t GROUP BY a",
        "42803",
        "subquery uses ungrouped column \"t.b\" from outer query",
        19,
    ),
    (
        "SELECT a FROM t GROUP BY a HAVING b > 'x'",
        "42803",
        "column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function",
        35,
    ),
    ("UPDATE t SET a = zz", "42703", "column \"zz\" does not exist", 18),
    ("UPDATE t SET zz = 1", "42703", "column \"zz\" of relation \"t\" does not exist", 14),
    ("UPDATE t SET a = 1 WHERE zz = 1", "42703", "column \"zz\" does not exist", 26),
    ("DELETE FROM t WHERE zz = 1", "42703", "column \"zz\" does not exist", 21),
    ("DELETE FROM t WHERE x.zz = 1", "42P01", "missing FROM-clause entry for table \"x\"", 21),
    ("DELETE FROM nope", "42P01", "relation \"nope\" does not exist", 13),
    ("UPDATE nope SET a = 1", "42P01", "relation \"nope\" does not exist", 8),
    ("INSERT INTO nope VALUES (1)", "42P01", "relation \"nope\" does not exist", 13),
    (
        "INSERT INTO t (zz) VALUES (1)",
        "42703",
        "column \"zz\" of relation \"t\" does not exist",
        16,
    ),
    ("INSERT INTO t VALUES (zz)", "42703", "column \"zz\" does not exist", 23),
    ("INSERT INTO t VALUES (1) RETURNING zz", "42703", "column \"zz\" does not exist", 36),
    ("INSERT INTO t SELECT zz FROM u", "42703", "column \"zz\" does not exist", 22),
    ("UPDATE t SET a = sum(a)", "42803", "aggregate functions are not allowed in UPDATE", 18),
    (
        "UPDATE t SET a = 1 WHERE sum(a) = 1",
        "42803",
        "aggregate functions are not allowed in WHERE",
        26,
    ),
    ("SELECT row_to_json(zz) FROM t", "42703", "column \"zz\" does not exist", 20),
    ("VALUES (a)", "42703", "column \"a\" does not exist", 9),
    ("VALUES (1), (1, 2)", "42601", "VALUES lists must all be the same length", 14),
    ("SELECT 1 LIMIT x", "42703", "column \"x\" does not exist", 16),
    ("SELECT generate_series(1, zz)", "42703", "column \"zz\" does not exist", 27),
    (
        "SELECT * FROM generate_series(1, 2) g WHERE h = 1",
        "42703",
        "column \"h\" does not exist",
        45,
    ),
    ("SELECT CASE WHEN zz THEN 1 END FROM t", "42703", "column \"zz\" does not exist", 18),
    ("SELECT max(DISTINCT zz) FROM t", "42703", "column \"zz\" does not exist", 21),
    ("SELECT a FROM t WHERE a IN (SELECT zz FROM u)", "42703", "column \"zz\" does not exist", 36),
    ("SELECT EXISTS (SELECT 1 FROM t WHERE zz)", "42703", "column \"zz\" does not exist", 38),
];

/// What is told of a statement that fails.
async fn told(client: &Client, statement: &str) -> (String, String, u32) {
    let Err(error) = client.simple_query(statement).await else {
        return ("00000".to_owned(), String::new(), 0);
    };
    let error = error.as_db_error().expect(statement);
    let place = match error.position() {
        Some(ErrorPosition::Original(place)) => *place,
        _ => 0,
    };
    (error.code().code().to_owned(), error.message().to_owned(), place)
}

async fn compare(client: &Client) {
    client.batch_execute(TABLES).await.unwrap();
    let mut differences = Vec::new();
    for (statement, state, message, place) in REFUSED {
        let wanted = ((*state).to_owned(), (*message).to_owned(), *place);
        let told = told(client, statement).await;
        if told != wanted {
            differences.push(format!("{statement}\n  {told:?}\n  {wanted:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

async fn compare_places(client: &Client) {
    client.batch_execute(TABLES).await.unwrap();
    for (text, place) in [
        ("SELECT 'ü',\n  missing FROM t", 15),
        ("SELECT 1; SELECT missing FROM t", 18),
        ("PREPARE p AS SELECT missing FROM t", 21),
        ("UPDATE t SET a = 1,\n\n missing = 2", 23),
    ] {
        assert_eq!(told(client, text).await.2, place, "{text}");
    }
    let error = client.prepare("SELECT $1::int, missing FROM t").await.expect_err("no such column");
    let place = error.as_db_error().and_then(|error| error.position());
    assert_eq!(place, Some(&ErrorPosition::Original(17)));
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_counted_in_characters_of_the_whole_text() {
    let world = World::new();
    compare_places(&world.client().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_counts_places_the_same() {
    let Some(cluster) = Cluster::start() else { return };
    compare_places(&cluster.client_in_new_database("places").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_mean_nothing_are_told_with_state_text_and_place() {
    let world = World::new();
    compare(&world.client().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_tells_the_same_of_names() {
    let Some(cluster) = Cluster::start() else { return };
    compare(&cluster.client_in_new_database("names").await).await;
}
