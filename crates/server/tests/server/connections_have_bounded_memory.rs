//! What connections take of memory is counted and bounded: what does not fit is refused by name, and the
//! connection goes on. A thousand that wait keep nobody else from going on.

use onrush_server::ServerOptions;
use tokio::io::AsyncWriteExt;

use crate::common::{World, code, failure, message, query, read_message, state_of};

const LIMIT: usize = 2 << 20;

fn small_memory() -> World {
    World::with(ServerOptions { connection_memory_bytes: LIMIT, ..ServerOptions::default() })
}

fn counted(world: &World) -> u64 {
    let memory = world.database.statistics().memory;
    let part = memory.iter().find(|part| part.name == "connections").unwrap();
    assert!(part.limit_bytes.is_some());
    part.used_bytes
}

/// Everything up to the next *ready*: kinds of messages, and the SQLSTATE of an error among them.
async fn answers(socket: &mut tokio::net::TcpStream) -> (String, Option<String>) {
    let (mut kinds, mut state) = (String::new(), None);
    loop {
        let (kind, body) = read_message(socket).await.unwrap();
        kinds.push(char::from(kind));
        if kind == b'E' {
            state = Some(state_of(&body));
        }
        if kind == b'Z' {
            return (kinds, state);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_counted_until_they_are_gone() {
    let world = small_memory();
    assert_eq!(counted(&world), 0);
    let first = world.client().await;
    let one = counted(&world);
    let second = world.client().await;
    assert!(one > 0 && counted(&world) >= 2 * one);
    let page = world.database.statistics().to_prometheus();
    assert!(page.contains("onrush_memory_bytes{part=\"connections\"}"), "{page}");
    drop((first, second));
    while counted(&world) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_space_for_its_connection_is_turned_away() {
    let world = small_memory();
    let mut clients = Vec::new();
    let refused = loop {
        match world.try_client().await {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
        assert!(clients.len() < 100 && counted(&world) <= LIMIT as u64 + (1 << 20));
    };
    assert_eq!(code(&refused), "53200");
    assert_eq!(query(&clients[0], "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_message_that_does_not_fit_is_refused_and_the_connection_goes_on() {
    let world = small_memory();
    let mut socket = world.raw_client().await;
    let text = |bytes: usize| format!("SELECT length('{}')\0", "x".repeat(bytes)).into_bytes();
    socket.write_all(&message(b'Q', &text(4 << 20))).await.unwrap();
    assert_eq!(answers(&mut socket).await, ("EZ".to_owned(), Some("53200".to_owned())));
    socket.write_all(&message(b'Q', &text(300 << 10))).await.unwrap();
    assert_eq!(answers(&mut socket).await, ("TDCZ".to_owned(), None));
    // What it becomes when it is read must fit, too.
    let values = format!("SELECT * FROM (VALUES {}) t\0", vec!["(1,2,3)"; 20_000].join(","));
    socket.write_all(&message(b'Q', values.as_bytes())).await.unwrap();
    assert_eq!(answers(&mut socket).await, ("EZ".to_owned(), Some("53200".to_owned())));
    // In the extended protocol everything up to the Sync is left out.
    let mut sent = message(b'P', &[b"\0".as_slice(), &text(4 << 20), b"\0\0"].concat());
    sent.extend(message(b'B', b"\0\0\0\0\0\0\0\0"));
    sent.extend(message(b'S', b""));
    sent.extend(message(b'Q', b"SELECT 1\0"));
    socket.write_all(&sent).await.unwrap();
    assert_eq!(answers(&mut socket).await, ("EZ".to_owned(), Some("53200".to_owned())));
    assert_eq!(answers(&mut socket).await, ("TDCZ".to_owned(), None));
    assert!(counted(&world) < LIMIT as u64 / 2, "a long message is not kept: {}", counted(&world));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_rows_do_not_fit_is_refused_and_takes_nothing() {
    let world = small_memory();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY, text text)").await;
    let mut socket = world.raw_client().await;
    socket.write_all(&message(b'Q', b"COPY t FROM STDIN\0")).await.unwrap();
    let (kind, _) = read_message(&mut socket).await.unwrap();
    assert_eq!(kind, b'G');
    let rows = format!("1\t{}\n", "x".repeat(4 << 20));
    socket.write_all(&message(b'd', rows.as_bytes())).await.unwrap();
    socket.write_all(&message(b'c', b"")).await.unwrap();
    assert_eq!(answers(&mut socket).await, ("EZ".to_owned(), Some("53200".to_owned())));
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_kept_as_long_as_they_fit_and_no_further() {
    let world = small_memory();
    let client = world.client().await;
    let mut kept = 0;
    let refused = loop {
        match client.batch_execute(&format!("PREPARE s{kept} AS SELECT {kept}")).await {
            Ok(()) => kept += 1,
            Err(error) => break code(&error),
        }
    };
    assert_eq!(refused, "53200");
    assert!(kept > 10 && counted(&world) <= LIMIT as u64);
    assert_eq!(query(&client, "EXECUTE s3").await, ["3"]);
    query(&client, "DEALLOCATE s3").await;
    query(&client, "PREPARE again AS SELECT 'again'").await;
    assert_eq!(query(&client, "EXECUTE again").await, ["again"]);
    query(&client, "DEALLOCATE ALL").await;
    assert!(counted(&world) < LIMIT as u64 / 4, "{}", counted(&world));
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_are_kept_as_long_as_they_fit_and_no_further() {
    let world = small_memory();
    let mut socket = world.raw_client().await;
    socket.write_all(&message(b'Q', b"BEGIN\0")).await.unwrap();
    answers(&mut socket).await;
    let mut sent = message(b'P', b"s\0SELECT $1::text\0\0\0");
    for number in 0..100 {
        let value = vec![b'x'; 50_000];
        let name = format!("p{number}\0s\0");
        let (count, length) = ([0, 0, 0, 1], 50_000_u32.to_be_bytes());
        let body = [name.as_bytes(), &count, &length, &value, &[0, 0]].concat();
        sent.extend(message(b'B', &body));
    }
    sent.extend(message(b'S', b""));
    socket.write_all(&sent).await.unwrap();
    let (kinds, state) = answers(&mut socket).await;
    assert_eq!(state.as_deref(), Some("53200"));
    assert!(kinds.matches('2').count() > 5, "{kinds}");
    assert!(counted(&world) <= LIMIT as u64 + (1 << 20));
    socket.write_all(&message(b'Q', b"ROLLBACK\0")).await.unwrap();
    answers(&mut socket).await;
    socket.write_all(&message(b'Q', b"SELECT 1\0")).await.unwrap();
    answers(&mut socket).await;
    assert!(counted(&world) < LIMIT as u64 / 2, "{}", counted(&world));
}

/// Each waits for a table on a thread of its own; whoever has the table must not lack one.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_that_wait_for_a_table_do_not_keep_its_owner_from_going_on() {
    const WAITING: usize = 1000;
    let world =
        World::with(ServerOptions { connections_max: WAITING + 10, ..ServerOptions::default() });
    let owner = world.client().await;
    query(&owner, "CREATE TABLE t (id bigint PRIMARY KEY)").await;
    query(&owner, "CREATE TABLE other (id bigint PRIMARY KEY)").await;
    let mut clients = Vec::new();
    for _ in 0..WAITING {
        clients.push(world.client().await);
    }
    query(&owner, "BEGIN").await;
    query(&owner, "ALTER TABLE t ADD COLUMN more bigint").await;
    let waiting: Vec<_> = (0..)
        .zip(clients)
        .map(|(id, client)| {
            let insert = format!("INSERT INTO t (id) VALUES ({id})");
            tokio::spawn(async move { client.batch_execute(&insert).await })
        })
        .collect();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event IS NOT NULL AND query LIKE 'INSERT INTO t%'";
    let beside = world.client().await;
    while query(&beside, waits).await != [WAITING.to_string()] {}
    // Others go on, and so does the owner: queries, definitions, the commit.
    query(&beside, "INSERT INTO other VALUES (1)").await;
    assert_eq!(query(&beside, "SELECT count(*) FROM other").await, ["1"]);
    assert_eq!(query(&owner, "SELECT count(*) FROM t").await, ["0"]);
    query(&owner, "ALTER TABLE t ADD COLUMN another bigint").await;
    query(&owner, "COMMIT").await;
    for waited in waiting {
        waited.await.unwrap().unwrap();
    }
    assert_eq!(query(&owner, "SELECT count(*) FROM t").await, [WAITING.to_string()]);
    assert_eq!(failure(&owner, "SELECT more, another FROM t LIMIT 1").await, "no error");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_cursor_may_go_back_to_are_counted_and_bounded() {
    let world = small_memory();
    let client = world.client().await;
    let before = counted(&world);
    let rows = "SELECT repeat('x', 1000) AS x FROM generate_series(1, 100000)";
    query(&client, "BEGIN").await;
    query(&client, &format!("DECLARE forward CURSOR FOR {rows}")).await;
    query(&client, &format!("DECLARE back SCROLL CURSOR FOR {rows}")).await;
    query(&client, "MOVE 500 FROM back").await;
    assert!(counted(&world) > before + 500_000);
    query(&client, "MOVE ALL FROM forward").await;
    assert_eq!(failure(&client, "FETCH LAST FROM back").await, "53200");
    query(&client, "ROLLBACK").await;
    assert!(counted(&world) < before + 500_000);
    assert_eq!(query(&client, "SELECT 1").await, ["1"]);
}
