//! Malformed, oversized, slow and silent clients: each gets a proper end, and others go on.

use std::time::Duration;

use crate::common::{
    World, code, failure, message, query, read_message, startup_message, state_of,
};
use onrush_server::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The SQLSTATE that the server says goodbye with.
async fn last_state(socket: &mut TcpStream) -> String {
    let mut state = String::new();
    while let Some((kind, body)) = read_message(socket).await {
        if kind == b'E' {
            state = state_of(&body);
        }
    }
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_are_told_and_end_the_connection() {
    let world = World::new();
    let other = world.client().await;
    for (bytes, state) in [
        (message(b'B', b"\0\0\0\0\xff\xff"), "08P01"), // more parameters than bytes
        (message(b'P', b"no zero byte"), "08P01"),
        (message(b'P', b"\0SELECT 1\0\xff\xff"), "08P01"), // more types than bytes
        (message(b'E', b""), "08P01"),
        (message(b'D', b"?x\0"), "08P01"),
        (message(b'Q', b"SELECT 1\0and more"), "08P01"),
        (message(b'@', b""), "08P01"),
        (vec![b'Q', 0, 0, 0, 3], "08P01"), // shorter than its own length
        (vec![b'Q', 0xff, 0xff, 0xff, 0xff], "08P01"), // negative
        (vec![b'Q', 0x7f, 0xff, 0xff, 0xff], "54000"), // 2 GiB
    ] {
        let mut socket = world.raw_client().await;
        socket.write_all(&bytes).await.unwrap();
        assert_eq!(last_state(&mut socket).await, state, "{bytes:?}");
    }
    assert_eq!(query(&other, "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_beginning_of_the_protocol_is_refused() {
    let world = World::new();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"\0\0\0\x05\0\0\0\0\0",
        b"\xff\xff\xff\xff\0\0\0\0\0",
        b"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x08", // bytes before encryption was agreed on
    ] {
        let mut socket = world.socket().await;
        socket.write_all(bytes).await.unwrap();
        assert_eq!(last_state(&mut socket).await, "08P01", "{bytes:?}");
    }
    world.client().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encryption_is_refused_and_the_client_may_go_on_without() {
    let world = World::new();
    let mut socket = world.socket().await;
    socket.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'N');
    socket.write_all(&startup_message()).await.unwrap();
    assert_eq!(read_message(&mut socket).await.unwrap().0, b'R');
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_that_comes_byte_by_byte_ends_at_the_deadline() {
    let handshake_timeout = Duration::from_millis(300);
    let world = World::with(ServerOptions { handshake_timeout, ..ServerOptions::default() });
    let mut slow = world.socket().await;
    let (mut reading, mut writing) = slow.split();
    let feed = async {
        for byte in startup_message().iter().cycle() {
            if writing.write_all(&[*byte & 1]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let mut answer = Vec::new();
    // Reading ends when the server hangs up; feeding never does by itself.
    tokio::select! {
        _ = reading.read_to_end(&mut answer) => {}
        () = feed => {}
    }
    world.client().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_and_chained_expressions_are_refused() {
    let world = World::new();
    let client = world.client().await;
    for text in [
        format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT 1{}", " + 1".repeat(100_000)),
        format!("SELECT {}1", "- ".repeat(100_000)),
        format!("SELECT 1{}", " UNION SELECT 1".repeat(100_000)),
    ] {
        assert_eq!(failure(&client, &text).await, "54001");
    }
    assert_eq!(query(&client, "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_left_and_others_go_on() {
    let write_timeout = Duration::from_millis(300);
    let world = World::with(ServerOptions { write_timeout, ..ServerOptions::default() });
    let other = world.client().await;
    query(&other, "CREATE TABLE t (id bigserial PRIMARY KEY, note text DEFAULT 'a longer note than is needed')").await;
    query(&other, "CALL onrush.insert_loop('t', 2000, 500)").await;
    let mut silent = world.raw_client().await;
    // Far more answers than the socket's buffers take.
    for _ in 0..200 {
        if silent.write_all(&message(b'Q', b"SELECT * FROM t\0")).await.is_err() {
            break;
        }
        assert_eq!(query(&other, "SELECT count(*) FROM t").await, ["2000"]);
    }
    while world.database.sessions().iter().filter(|session| session.name == "session").count() > 1 {
        query(&other, "SELECT 1").await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_clients_than_allowed_are_told_so() {
    let few = ServerOptions { connections_max: 2, connections_reserved: 0, ..Default::default() };
    let world = World::with(few);
    let (_one, two) = (world.client().await, world.client().await);
    let refused = world.try_client().await.err().unwrap();
    assert_eq!(code(&refused), "53300");
    drop(two);
    // The place is free once the server has seen that the client is gone.
    while world.try_client().await.is_err() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_end_at_their_timeout_and_when_they_are_cancelled() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY)").await;
    query(&client, "SET statement_timeout = '50ms'").await;
    assert_eq!(failure(&client, "CALL onrush.insert_loop('t', 1000000000, 10)").await, "57014");
    query(&client, "SET statement_timeout = 0").await;
    let token = client.cancel_token();
    let endless = failure(&client, "CALL onrush.insert_loop('t', 1000000000, 10)");
    let cancel = async {
        // It may not have begun yet: asked until it has ended.
        loop {
            token.cancel_query(tokio_postgres::NoTls).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        state = endless => assert_eq!(state, "57014"),
        () = cancel => {}
    }
    assert_eq!(query(&client, "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_nested_as_deep_as_may_be_neither_overflows_a_stack_nor_takes_for_ever() {
    let world = World::new();
    let client = world.client().await;
    let nested = |before: &str, inside: &str, after: &str| {
        format!("SELECT {}{inside}{}", before.repeat(40), after.repeat(40))
    };
    assert_eq!(query(&client, &nested("abs(", "-1", ")")).await, ["1"]);
    let joins = format!("* FROM {}t{}", "(t JOIN ".repeat(40), " ON true)".repeat(40));
    assert_eq!(failure(&client, &format!("SELECT {joins}")).await, "42P01");
    assert_eq!(failure(&client, &nested("NOT (", "1 +", ")")).await, "54001");
}

/// A join that drops nearly every combination of its rows would go on for an hour.
#[tokio::test(flavor = "multi_thread")]
async fn queries_that_were_given_up_leave_their_threads_to_others() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY)").await;
    for first in (1..200_000).step_by(2000) {
        let rows = format!("generate_series({first}, {})", first + 1999);
        query(&client, &format!("INSERT INTO t SELECT n FROM {rows} n")).await;
    }
    for join in [
        "SELECT count(*) FROM t a, t b WHERE a.id + b.id = -1",
        "SELECT count(*) FROM t a, t b",
        "SELECT count(*) FROM t a JOIN t b ON a.id % 2 = b.id % 2 AND a.id + b.id = -1",
    ] {
        query(&client, "SET statement_timeout = '50ms'").await;
        assert_eq!(failure(&client, join).await, "57014", "{join}");
        query(&client, "SET statement_timeout = 0").await;
        assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["200000"], "after {join}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_transaction_ends_at_its_timeout() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "SET idle_in_transaction_session_timeout = '50ms'").await;
    query(&client, "BEGIN").await;
    while !client.is_closed() {
        tokio::task::yield_now().await;
    }
    world.client().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_goodbye_with_its_question_gets_the_answer() {
    let world = World::new();
    let mut socket = world.raw_client().await;
    let both = [message(b'Q', b"SELECT 1\0"), message(b'X', b"")].concat();
    socket.write_all(&both).await.unwrap();
    let mut kinds = Vec::new();
    while let Some((kind, _)) = read_message(&mut socket).await {
        kinds.push(kind as char);
    }
    assert_eq!(kinds, ['T', 'D', 'C', 'Z']);
}
