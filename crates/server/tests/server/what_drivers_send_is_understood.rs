//! What drivers send and ask that nobody writes by hand: arrays, queries of the catalogue, and what
//! they tell about themselves.

use crate::common::{World, code, failure, query, read_message};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_postgres::types::Type;

async fn with_rows(world: &World) -> tokio_postgres::Client {
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int, name text, PRIMARY KEY (id))").await;
    query(&client, "INSERT INTO t VALUES (1, 'a'), (2, 'b c'), (3, NULL)").await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_parameter_has_the_type_of_what_it_is_compared_with() {
    let world = World::new();
    let client = with_rows(&world).await;
    let cases = [
        ("SELECT id FROM t WHERE id = ANY($1)", Type::INT4_ARRAY),
        ("SELECT id FROM t WHERE id < ANY($1)", Type::INT4_ARRAY),
        ("SELECT id FROM t WHERE name <> ALL($1)", Type::TEXT_ARRAY),
        ("SELECT id FROM t WHERE id = ANY($1::bigint[])", Type::INT8_ARRAY),
        ("SELECT id FROM t WHERE $1 IS NULL OR id = ANY($1)", Type::INT4_ARRAY),
    ];
    for (text, expected) in cases {
        let statement = client.prepare(text).await.unwrap();
        assert_eq!(statement.params(), [expected], "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_found_by_an_array_in_binary() {
    let world = World::new();
    let client = with_rows(&world).await;
    let ids = |rows: Vec<tokio_postgres::Row>| -> Vec<i32> {
        rows.iter().map(|row| row.get(0)).collect()
    };
    let found = "SELECT id FROM t WHERE id = ANY($1) ORDER BY id";
    assert_eq!(ids(client.query(found, &[&vec![1, 3, 5]]).await.unwrap()), [1, 3]);
    assert!(client.query(found, &[&Vec::<i32>::new()]).await.unwrap().is_empty());
    assert!(client.query(found, &[&Option::<Vec<i32>>::None]).await.unwrap().is_empty());
    let named = "SELECT id FROM t WHERE name = ANY($1)";
    let names = vec![Some("b c"), None, Some("quo\"te")];
    assert_eq!(ids(client.query(named, &[&names]).await.unwrap()), [2]);
    let others = "SELECT id FROM t WHERE id <> ALL($1) ORDER BY id";
    assert_eq!(ids(client.query(others, &[&vec![1, 5]]).await.unwrap()), [2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_comes_in_binary_with_its_type() {
    let world = World::new();
    let client = with_rows(&world).await;
    let text =
        "SELECT array_agg(id ORDER BY id), array_agg(name ORDER BY id), ARRAY[]::bigint[] FROM t";
    let row = client.query_one(text, &[]).await.unwrap();
    assert_eq!(row.columns()[0].type_(), &Type::INT4_ARRAY);
    assert_eq!(row.get::<_, Vec<i32>>(0), [1, 2, 3]);
    let names = [Some("a".to_owned()), Some("b c".to_owned()), None];
    assert_eq!(row.get::<_, Vec<Option<String>>>(1), names);
    assert!(row.get::<_, Vec<i64>>(2).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_array_is_an_error_of_its_statement() {
    let world = World::new();
    let client = with_rows(&world).await;
    assert_eq!(failure(&client, "SELECT id FROM t WHERE id = ANY('{1,2')").await, "22P02");
    assert_eq!(failure(&client, "SELECT id FROM t WHERE id = ANY('{1,x}')").await, "22P02");
    assert_eq!(query(&client, "SELECT id FROM t WHERE id = ANY('{1,2}')").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_becomes_an_array() {
    let world = World::new();
    let client = with_rows(&world).await;
    let text = "SELECT array_to_string(ARRAY(SELECT id FROM t ORDER BY id DESC), ',')";
    assert_eq!(query(&client, text).await, ["3,2,1"]);
    let text = "SELECT ARRAY(SELECT name FROM t WHERE id = 99)";
    assert_eq!(query(&client, text).await, ["{}"]);
}

/// As the JDBC driver asks for a primary key.
#[tokio::test(flavor = "multi_thread")]
async fn the_columns_of_a_key_are_numbered() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int, customer int, PRIMARY KEY (customer, id))").await;
    let text = "SELECT result.column_name, result.key_seq FROM (SELECT a.attname AS column_name, \
        (information_schema._pg_expandarray(i.indkey)).n AS key_seq, \
        information_schema._pg_expandarray(i.indkey) AS keys, a.attnum AS a_attnum \
        FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) \
        JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid) WHERE ct.relname = 't' AND i.indisprimary \
        ) result WHERE result.a_attnum = (result.keys).x ORDER BY result.key_seq";
    assert_eq!(query(&client, text).await, ["customer|1", "id|2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn like_has_an_escape_character_of_its_own() {
    let world = World::new();
    let client = world.client().await;
    let like = |text: &str, pattern: &str| format!("SELECT '{text}' LIKE '{pattern}' ESCAPE '/'");
    for (text, pattern, expected) in
        [("a_b", "a/_b", "t"), ("axb", "a/_b", "f"), ("axb", "a_b", "t"), ("a\\b", "a\\b", "t")]
    {
        assert_eq!(query(&client, &like(text, pattern)).await, [expected], "{text} {pattern}");
    }
}

/// As node-postgres writes a date, and JDBC a number in its simple mode.
#[tokio::test(flavor = "multi_thread")]
async fn values_in_other_words_are_read() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, day date, at timestamp, n numeric(12,3))")
        .await;
    let timestamp = "2026-02-28T23:30:00.000-05:00";
    let insert = format!("INSERT INTO t VALUES (1, '{timestamp}', '{timestamp}', '-1.5'::numeric)");
    query(&client, &insert).await;
    let expected = "2026-02-28|2026-02-28 23:30:00|-1.500";
    assert_eq!(query(&client, "SELECT day, at, n FROM t").await, [expected]);
    assert_eq!(
        failure(&client, "INSERT INTO t VALUES (2, '2026-02-28 noon', NULL, 1)").await,
        "22007"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_is_deallocated() {
    let world = World::new();
    let client = with_rows(&world).await;
    let statement = client.prepare("SELECT count(*) FROM t").await.unwrap();
    query(&client, "DEALLOCATE ALL").await;
    assert_eq!(code(&client.query(&statement, &[]).await.unwrap_err()), "26000");
    assert_eq!(failure(&client, "DEALLOCATE nothing").await, "26000");
}

/// What a client is told that begins with these parameters.
async fn told_at_the_beginning(world: &World, parameters: &[u8]) -> String {
    let mut socket = world.socket().await;
    let body = [b"\0\x03\0\0user\0test\0", parameters, b"\0"].concat();
    socket.write_all(&(body.len() as u32 + 4).to_be_bytes()).await.unwrap();
    socket.write_all(&body).await.unwrap();
    let mut told = Vec::new();
    loop {
        let (kind, body) = read_message(&mut socket).await.unwrap();
        assert_ne!(kind, b'E', "{}", String::from_utf8_lossy(&body));
        told.extend(body);
        if kind == b'Z' {
            return String::from_utf8_lossy(&told).into_owned();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_tells_its_time_zone_at_the_beginning_is_in_it() {
    let world = World::new();
    let told = told_at_the_beginning(&world, b"TimeZone\0Europe/Berlin\0").await;
    assert!(told.contains("TimeZone\0Europe/Berlin\0"));
}

/// asyncpg sends it with the quotes.
#[tokio::test(flavor = "multi_thread")]
async fn utf8_has_many_names() {
    let world = World::new();
    for name in ["'utf-8'", "UTF-8", "UTF8", "unicode", "utf_8"] {
        let parameters = format!("client_encoding\0{name}\0");
        let told = told_at_the_beginning(&world, parameters.as_bytes()).await;
        assert!(told.contains("client_encoding\0UTF8\0"), "{name}");
    }
    let client = world.client().await;
    query(&client, "SET client_encoding TO 'utf-8'; SET NAMES 'UTF-8'").await;
    assert_eq!(failure(&client, "SET client_encoding TO 'EUC_JP'").await, "22023");
}

/// A message of the client: its kind, its length, its body.
fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// The answers to what is sent, up to the one that says that the client may go on.
async fn answers(socket: &mut TcpStream, sent: &[u8]) -> Vec<(u8, Vec<u8>)> {
    socket.write_all(sent).await.unwrap();
    let mut answers = Vec::new();
    loop {
        let (kind, body) = read_message(socket).await.unwrap();
        if kind == b'Z' {
            return answers;
        }
        answers.push((kind, body));
    }
}

/// Bodies of the answers of a kind, one behind the other.
fn bodies(answers: &[(u8, Vec<u8>)], kind: u8) -> Vec<u8> {
    answers.iter().filter(|answer| answer.0 == kind).flat_map(|answer| answer.1.clone()).collect()
}

/// In LATIN1 `0xe4` is an a with two dots, and there is no sign of the euro.
#[tokio::test(flavor = "multi_thread")]
async fn text_comes_and_goes_in_the_encoding_of_the_client() {
    let world = World::new();
    let mut socket = world.socket().await;
    let body = b"\0\x03\0\0user\0test\0client_encoding\0latin-1\0\0";
    let welcome = [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
    let told = bodies(&answers(&mut socket, &welcome).await, b'S');
    assert!(told.windows(23).any(|part| part == b"client_encoding\0LATIN1\0"));

    // In a simple query, as a name, a value and a part of an error.
    let got =
        answers(&mut socket, &framed(b'Q', b"SELECT '\xe4\xdf' AS \xe4, length('\xe4')\0")).await;
    assert!(bodies(&got, b'T').windows(2).any(|part| part == b"\xe4\0"));
    assert_eq!(bodies(&got, b'D'), b"\0\x02\0\0\0\x02\xe4\xdf\0\0\0\x011");
    let got = answers(&mut socket, &framed(b'Q', b"SELECT \"\xe4\"\0")).await;
    assert!(bodies(&got, b'E').windows(3).any(|part| part == b"\"\xe4\""));

    // A parameter in text, its answer in binary.
    let extended = [
        framed(b'P', b"\0SELECT $1::text || '\xdf'\0\0\0"),
        framed(b'B', b"\0\0\0\0\0\x01\0\0\0\x01\xe4\0\x01\0\x01"),
        framed(b'E', b"\0\0\0\0\0"),
        framed(b'S', b""),
    ];
    let got = answers(&mut socket, &extended.concat()).await;
    assert_eq!(bodies(&got, b'D'), b"\0\x01\0\0\0\x02\xe4\xdf");

    // COPY both ways.
    let create = b"CREATE TABLE words (word text PRIMARY KEY); COPY words FROM STDIN\0";
    socket.write_all(&framed(b'Q', create)).await.unwrap();
    let rows = [framed(b'd', b"\xe4\n"), framed(b'c', b"")].concat();
    answers(&mut socket, &rows).await;
    let got = answers(&mut socket, &framed(b'Q', b"COPY words TO STDOUT\0")).await;
    assert_eq!(bodies(&got, b'd'), b"\xe4\n");

    // What the encoding has not is an error, and no other character.
    let got = answers(&mut socket, &framed(b'Q', b"SELECT chr(8364)\0")).await;
    assert!(bodies(&got, b'E').windows(7).any(|part| part == b"C22P05\0"));
    let client = world.client().await;
    assert_eq!(query(&client, "SELECT word, length(word) FROM words").await, ["\u{e4}|1"]);
}

/// As asyncpg does when a connection goes back to its pool.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_made_as_new() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "SET statement_timeout = 5000").await;
    let reset = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";
    query(&client, reset).await;
    assert_eq!(query(&client, "SHOW statement_timeout").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_set_and_shown_by_functions_and_all_at_once() {
    let world = World::new();
    let client = with_rows(&world).await;
    let both = "SELECT current_setting('jit') AS cur, set_config('jit', 'on', false) AS new";
    assert_eq!(query(&client, both).await, ["off|on"]);
    let name = "SELECT set_config('application_name', $1, $2)";
    let row = client.query_one(name, &[&"a name", &false]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "a name");
    query(&client, "BEGIN; SELECT set_config('statement_timeout', '5s', true)").await;
    assert_eq!(query(&client, "SHOW statement_timeout; COMMIT").await, ["5000ms"]);
    assert_eq!(query(&client, "SHOW statement_timeout").await, ["0"]);
    let state = failure(&client, "SELECT set_config('synchronous_commit', 'maybe', false)").await;
    assert_eq!(state, "22023");
    query(&client, "SELECT pg_catalog.set_config('search_path', '', false)").await;
    assert_eq!(query(&client, "SHOW search_path").await, [""]);
    assert_eq!(failure(&client, "SELECT id FROM t").await, "42P01");
    assert_eq!(query(&client, "SELECT count(*) FROM public.t").await, ["3"]);
    assert_eq!(query(&client, "SHOW max_connections").await, ["1000"]);
    assert_eq!(query(&client, "SHOW superuser_reserved_connections").await, ["3"]);
    let all = query(&client, "SHOW ALL").await;
    assert!(all.contains(&"max_connections|1000|".to_owned()), "{all:?}");
    assert!(all.contains(&"application_name|a name|".to_owned()), "{all:?}");
}
