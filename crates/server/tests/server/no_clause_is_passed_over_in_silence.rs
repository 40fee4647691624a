//! Each clause of a statement has its effect, or the statement is refused with the clause's name.

use crate::common::{World, query};
use tokio_postgres::Client;

/// Where an item of FROM stands: `{}` is behind it.
const IN_FROM: [&str; 11] = [
    "SELECT count(*) FROM t {}",
    "SELECT id FROM t {} WHERE id = 1",
    "SELECT * FROM (SELECT * FROM t {}) AS inner_one",
    "WITH w AS (SELECT * FROM t {}) SELECT count(*) FROM w",
    "WITH w AS (SELECT 1) SELECT count(*) FROM t {}",
    "SELECT EXISTS (SELECT 1 FROM t {})",
    "SELECT count(*) FROM u JOIN t {} ON true",
    "SELECT 1 UNION ALL SELECT id FROM t {}",
    "INSERT INTO u SELECT id, a, b FROM t {}",
    "EXPLAIN SELECT count(*) FROM t {}",
    "DECLARE c CURSOR FOR SELECT count(*) FROM t {}",
];

/// Behind an item of FROM, and what the refusal names.
const BEHIND_A_TABLE: [(&str, &str); 3] = [
    ("TABLESAMPLE BERNOULLI (1)", "TABLESAMPLE"),
    ("TABLESAMPLE SYSTEM (10) REPEATABLE (3)", "TABLESAMPLE"),
    ("WITH ORDINALITY", "ORDINALITY"),
];

/// Whole statements, and what the refusal names.
const REFUSED: [(&str, &str); 71] = [
    // Rows that are changed.
    ("UPDATE t SET a = 1 WHERE id = 1 LIMIT 1", "LIMIT"),
    ("DELETE FROM t WHERE id = 1 LIMIT 1", "LIMIT"),
    ("DELETE FROM t WHERE id = 1 ORDER BY id", "ORDER BY"),
    ("UPDATE t AS x (p, q) SET a = 1 WHERE id = 1", "names for the columns"),
    ("DELETE FROM t AS x (p) WHERE id = 1", "names for the columns"),
    ("UPDATE t SET (a, b) = (SELECT DISTINCT 1, 'x') WHERE id = 1", "SET (columns)"),
    ("SELECT * FROM (WITH w AS (DELETE FROM u RETURNING id) SELECT * FROM w) AS x", "DELETE"),
    ("COPY t FROM STDIN WITH (FORCE_NULL (a))", "FORCE_NULL"),
    ("COPY t TO STDOUT WITH (FORMAT csv, FORCE_QUOTE (a))", "FORCE_QUOTE"),
    ("COPY t FROM STDIN WITH (ENCODING 'latin1')", "ENCODING"),
    // Queries.
    ("SELECT a FROM t GROUP BY a FOR UPDATE", "FOR UPDATE"),
    ("SELECT * FROM t UNION SELECT * FROM u FOR SHARE", "FOR SHARE"),
    ("SELECT id FROM t WHERE id IN (SELECT id FROM u FOR UPDATE)", "FOR UPDATE"),
    ("SELECT * FROM t LIMIT 1 + 1 FOR UPDATE SKIP LOCKED", "LIMIT"),
    ("SELECT * FROM (SELECT * FROM t FOR UPDATE) AS x", "FOR UPDATE"),
    ("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE RETURNING id", "RETURNING"),
    ("SELECT * FROM t FETCH FIRST 10 PERCENT ROWS ONLY", "PERCENT"),
    ("SELECT * FROM (SELECT * INTO v FROM t) AS x", "SELECT INTO"),
    ("SELECT id INTO v FROM t UNION SELECT 1", "SELECT INTO"),
    ("SELECT * FROM t GROUP BY a WITH ROLLUP", "ROLLUP"),
    ("SELECT id FROM t UNION BY NAME SELECT id FROM u", "BY NAME"),
    ("SELECT sum(a) OVER (w ORDER BY id) FROM t WINDOW w AS (PARTITION BY b)", "window"),
    ("SELECT id FROM t WINDOW w AS (PARTITION BY b) ORDER BY sum(a) OVER w", "OVER"),
    (
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9 LIMIT 3) SELECT * FROM r",
        "LIMIT",
    ),
    (
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9 ORDER BY 1) \
         SELECT * FROM r",
        "ORDER BY",
    ),
    ("SELECT * FROM t NATURAL JOIN u TABLESAMPLE BERNOULLI (1)", "TABLESAMPLE"),
    ("SELECT * FROM (t CROSS JOIN u TABLESAMPLE BERNOULLI (1))", "TABLESAMPLE"),
    // Calls.
    ("SELECT abs(DISTINCT a) FROM t", "DISTINCT"),
    ("SELECT abs(a) FILTER (WHERE false) FROM t", "FILTER"),
    ("SELECT abs(a) OVER (PARTITION BY b) FROM t", "OVER"),
    ("SELECT upper(b ORDER BY b) FROM t", "ORDER BY"),
    ("SELECT coalesce(a, 1) FILTER (WHERE false) FROM t", "FILTER"),
    ("SELECT mod(a, 2) OVER () FROM t", "OVER"),
    ("SELECT now() FILTER (WHERE false)", "FILTER"),
    ("SELECT id FROM t WHERE upper(DISTINCT b) = 'X'", "DISTINCT"),
    ("INSERT INTO t VALUES (abs(DISTINCT 7), 1, 'x')", "DISTINCT"),
    ("UPDATE t SET a = abs(DISTINCT a) WHERE id = 1", "DISTINCT"),
    (
        "INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET a = abs(DISTINCT 1)",
        "DISTINCT",
    ),
    ("SELECT sum(a) IGNORE NULLS FROM t", "IGNORE NULLS"),
    ("SELECT interval '1 2' DAY TO YEAR", "interval"),
    ("SELECT CAST(a AS text FORMAT 'YYYY') FROM t", "FORMAT"),
    // Tables.
    ("CREATE TABLE v (id int PRIMARY KEY DEFERRABLE)", "DEFERRABLE"),
    ("CREATE TABLE v (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)", "DEFERRABLE"),
    ("CREATE TABLE v (id int, PRIMARY KEY (id) DEFERRABLE)", "DEFERRABLE"),
    ("CREATE TABLE v (id int, PRIMARY KEY (id) INITIALLY DEFERRED)", "DEFERRED"),
    ("CREATE TABLE v (id int, PRIMARY KEY (id) NOT ENFORCED)", "NOT ENFORCED"),
    ("CREATE TABLE v (id int, PRIMARY KEY (id DESC))", "DESC"),
    ("CREATE UNLOGGED TABLE v (id int PRIMARY KEY DEFERRABLE)", "DEFERRABLE"),
    ("ALTER TABLE keyless ADD PRIMARY KEY (id) DEFERRABLE", "DEFERRABLE"),
    ("CREATE TABLE v (id int PRIMARY KEY, CHECK (id > 0) NOT ENFORCED)", "ENFORCED"),
    ("CREATE GLOBAL TEMPORARY TABLE v (id int PRIMARY KEY)", "GLOBAL"),
    ("CREATE OR REPLACE TABLE v (id int PRIMARY KEY)", "REPLACE"),
    ("CREATE TABLE v (id int PRIMARY KEY) INHERITS (t)", "INHERITS"),
    ("CREATE TABLE v (id int PRIMARY KEY) PARTITION BY RANGE (id)", "PARTITION BY"),
    ("CREATE TABLE v PARTITION OF t DEFAULT", "PARTITION OF"),
    ("CREATE TABLE v AS SELECT id FROM t FOR UPDATE", "FOR UPDATE"),
    ("CREATE TABLE v (id int PRIMARY KEY, a int REFERENCES t MATCH PARTIAL)", "MATCH PARTIAL"),
    ("CREATE INDEX i ON t (md5(a::text))", "md5"),
    ("CREATE INDEX i ON t USING hash (a)", "HASH"),
    ("CREATE INDEX i ON t (a own_class)", "own_class"),
    (
        "CREATE TABLE v (id int PRIMARY KEY, a int GENERATED ALWAYS AS (id + 1) VIRTUAL)",
        "GENERATED",
    ),
    ("CREATE VIEW v AS SELECT id FROM t WHERE id > 1 WITH CHECK OPTION", "CHECK OPTION"),
    ("CREATE VIEW v WITH (security_barrier) AS SELECT id FROM t", "option"),
    ("CREATE DOMAIN d AS int DEFAULT identity()", "identity"),
    ("CREATE DOMAIN d AS int CHECK (VALUE > 0) NOT ENFORCED", "ENFORCED"),
    ("CREATE VIEW v AS SELECT id FROM t FOR UPDATE", "FOR UPDATE"),
    // Sessions.
    ("SET TRANSACTION SNAPSHOT '1'", "SNAPSHOT"),
    ("DECLARE c BINARY CURSOR FOR SELECT 1", "BINARY"),
    ("CREATE ROLE other CONNECTION LIMIT 1", "CONNECTION LIMIT"),
    ("CREATE ROLE other VALID UNTIL '2030-01-01'", "VALID UNTIL"),
    ("GRANT SELECT ON t TO team WITH GRANT OPTION", "GRANT OPTION"),
];

/// Statements without and with a clause: their answers differ.
const WITH_AN_EFFECT: [(&str, &str); 22] = [
    ("SELECT a FROM t ORDER BY id", "SELECT DISTINCT a FROM t ORDER BY a"),
    ("SELECT a FROM t ORDER BY id", "SELECT DISTINCT ON (a) id FROM t ORDER BY a, id"),
    ("SELECT id FROM t ORDER BY id", "SELECT id FROM t ORDER BY id DESC"),
    ("SELECT n FROM t ORDER BY n", "SELECT n FROM t ORDER BY n NULLS FIRST"),
    ("SELECT id FROM t ORDER BY id", "SELECT id FROM t ORDER BY id LIMIT 2"),
    ("SELECT id FROM t ORDER BY id", "SELECT id FROM t ORDER BY id OFFSET 2"),
    ("SELECT id FROM t ORDER BY id", "SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY"),
    ("SELECT id FROM t WHERE id = 1", "SELECT id FROM t WHERE id = 1 LIMIT 0"),
    (
        "SELECT count(*) FROM t GROUP BY a ORDER BY a",
        "SELECT count(*) FROM t GROUP BY a HAVING a > 1 ORDER BY a",
    ),
    ("SELECT count(a) FROM t", "SELECT count(DISTINCT a) FROM t"),
    ("SELECT count(*) FROM t", "SELECT count(*) FILTER (WHERE a = 1) FROM t"),
    ("SELECT string_agg(b, '') FROM t", "SELECT string_agg(b, '' ORDER BY id DESC) FROM t"),
    ("SELECT sum(a) OVER () FROM t", "SELECT sum(a) OVER (PARTITION BY a) FROM t ORDER BY id"),
    (
        "SELECT sum(a) OVER (PARTITION BY a) FROM t ORDER BY id",
        "SELECT sum(a) OVER w FROM t WINDOW w AS () ORDER BY id",
    ),
    (
        "SELECT sum(a) OVER (ORDER BY id) FROM t ORDER BY id",
        "SELECT sum(a) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM t ORDER BY id",
    ),
    ("SELECT json_agg(a) FROM t", "SELECT json_agg(a) FILTER (WHERE a = 1) FROM t"),
    ("SELECT json_agg(a) FROM t", "SELECT json_agg(DISTINCT a) FROM t WHERE a = 1"),
    (
        "SELECT first_value(n) OVER (ORDER BY id) FROM t",
        "SELECT first_value(n) IGNORE NULLS OVER (ORDER BY id DESC) FROM t",
    ),
    (
        "SELECT id FROM t UNION ALL SELECT id FROM t ORDER BY 1",
        "SELECT id FROM t UNION SELECT id FROM t ORDER BY 1",
    ),
    ("SELECT count(*) FROM t JOIN u ON false", "SELECT count(*) FROM t LEFT JOIN u ON false"),
    (
        "SELECT b FROM t WHERE b LIKE 'x%' ORDER BY id",
        "SELECT b FROM t WHERE b ILIKE 'X%' OR b NOT LIKE 'x%' ORDER BY id",
    ),
    (
        "SELECT ARRAY(SELECT id FROM t ORDER BY id)",
        "SELECT ARRAY(SELECT id FROM t ORDER BY id DESC)",
    ),
];

async fn with_tables() -> (World, Client) {
    let world = World::new();
    let client = world.client().await;
    for statement in [
        "CREATE TABLE t (id bigint PRIMARY KEY, a int, b text, n int)",
        "CREATE TABLE u (id bigint PRIMARY KEY, a int, b text)",
        "CREATE TABLE keyless (id int)",
        "CREATE ROLE team",
        "INSERT INTO t VALUES (1, 1, 'x1', 1), (2, 1, 'x2', NULL), (3, 2, 'y3', NULL), (4, 2, 'y4', 4)",
    ] {
        query(&client, statement).await;
    }
    (world, client)
}

/// Why the statement was refused: the code, and the message.
async fn refusal(client: &Client, statement: &str) -> (String, String) {
    let Err(error) = client.simple_query(statement).await else {
        return ("no error".to_owned(), String::new());
    };
    let told = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}"));
    (told.code().code().to_owned(), told.message().to_owned())
}

/// Refused as something that there is not, or not of this function, by its name, or as something that cannot be read.
async fn refused(client: &Client, statement: &str, name: &str) -> Result<(), String> {
    let (code, message) = refusal(client, statement).await;
    let is_named = message.to_lowercase().contains(&name.to_lowercase());
    match (is_named && matches!(&*code, "0A000" | "42809")) || code == "42601" {
        true => Ok(()),
        false => {
            Err(format!("{statement}\n    {code} {message:?}, where {name:?} should be named"))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clause_without_an_effect_is_refused_by_its_name() {
    let (_world, client) = with_tables().await;
    let mut wrong = Vec::new();
    for (statement, name) in REFUSED {
        wrong.extend(refused(&client, statement, name).await.err());
    }
    for form in IN_FROM {
        for (clause, name) in BEHIND_A_TABLE {
            let statement = form.replace("{}", clause);
            query(&client, "BEGIN").await;
            wrong.extend(refused(&client, &statement, name).await.err());
            query(&client, "ROLLBACK").await;
        }
    }
    assert!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clause_that_is_taken_changes_the_answer() {
    let (_world, client) = with_tables().await;
    for (without, with) in WITH_AN_EFFECT {
        assert_ne!(query(&client, without).await, query(&client, with).await, "{with}");
    }
}

/// The parts of forms that stand for nothing do not get in the way.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_says_how_it_is_anyway_is_taken() {
    let (_world, client) = with_tables().await;
    for statement in [
        "CREATE TABLE v (id int, CONSTRAINT v_key PRIMARY KEY (id) NOT DEFERRABLE INITIALLY IMMEDIATE)",
        "TRUNCATE TABLE ONLY v CONTINUE IDENTITY RESTRICT",
        "ALTER TABLE ONLY v ADD COLUMN c int",
        "ALTER TABLE v DROP COLUMN c CASCADE",
        "DROP TABLE v CASCADE",
        "WITH w AS MATERIALIZED (SELECT 1) SELECT * FROM w",
        "SELECT ALL q FROM t AS x (p, q, r, s) WHERE p = 1",
        "REVOKE SELECT ON t FROM team CASCADE",
        "START TRANSACTION READ ONLY",
        "END",
    ] {
        client
            .simple_query(statement)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}
