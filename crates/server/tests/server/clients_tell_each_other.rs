//! LISTEN and NOTIFY, and clients that stop other clients.

use crate::common::{World, code, message, query, read_message};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_postgres::Client;

/// Runs a text, and gives the notifications that came before the server was ready again.
async fn told(socket: &mut TcpStream, text: &str) -> Vec<String> {
    let body = [text.as_bytes(), b"\0"].concat();
    socket.write_all(&message(b'Q', &body)).await.unwrap();
    let mut told = Vec::new();
    loop {
        match read_message(socket).await.unwrap() {
            (b'A', body) => told.push(notification(&body)),
            (b'Z', _) => return told,
            (b'E', body) => panic!("{text}: {}", String::from_utf8_lossy(&body)),
            _ => {}
        }
    }
}

/// Channel and payload.
fn notification(body: &[u8]) -> String {
    let texts: Vec<_> = body[4..].split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    format!("{}: {}", texts[0], texts[1])
}

/// The next message without being asked for.
async fn next_notification(socket: &mut TcpStream) -> String {
    let (kind, body) = read_message(socket).await.unwrap();
    assert_eq!(kind, b'A');
    notification(&body)
}

async fn listening(world: &World, channel: &str) -> TcpStream {
    let mut socket = world.raw_client().await;
    told(&mut socket, &format!("LISTEN {channel}")).await;
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn who_listens_is_told_without_asking() {
    let world = World::new();
    let mut listener = listening(&world, "news").await;
    let other = world.client().await;
    query(&other, "NOTIFY news, 'first'").await;
    query(&other, "NOTIFY others, 'not listened to'").await;
    query(&other, "SELECT pg_notify('news', 'second')").await;
    query(&other, "NOTIFY news").await;
    for expected in ["news: first", "news: second", "news: "] {
        assert_eq!(next_notification(&mut listener).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_tells_what_it_says_once_and_only_when_it_commits() {
    let world = World::new();
    let mut listener = listening(&world, "news").await;
    let other = world.client().await;
    query(&other, "BEGIN; NOTIFY news, 'rolled back'; ROLLBACK").await;
    let failing = "SELECT pg_notify('news', 'failed'), 1 / (SELECT count(*) FROM pg_cursors)";
    assert!(other.simple_query(failing).await.is_err());
    query(&other, "BEGIN; NOTIFY news, 'kept'; SAVEPOINT a; NOTIFY news, 'gone'").await;
    query(&other, "ROLLBACK TO a; NOTIFY news, 'kept'; NOTIFY news, 'last'").await;
    // Nothing has come so far: the first to come is said outside of the transaction that is open.
    let another = world.client().await;
    query(&another, "NOTIFY news, 'before'").await;
    assert_eq!(next_notification(&mut listener).await, "news: before");
    query(&other, "COMMIT; NOTIFY news, 'end'").await;
    for expected in ["news: kept", "news: last", "news: end"] {
        assert_eq!(next_notification(&mut listener).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_between_its_transactions() {
    let world = World::new();
    let mut listener = listening(&world, "news").await;
    let other = world.client().await;
    assert!(told(&mut listener, "BEGIN").await.is_empty());
    query(&other, "NOTIFY news, 'x'").await;
    assert!(told(&mut listener, "SELECT 1").await.is_empty());
    assert_eq!(told(&mut listener, "COMMIT").await, ["news: x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_no_longer_listens_is_not_told() {
    for text in ["UNLISTEN news", "UNLISTEN *", "DISCARD ALL", "BEGIN; UNLISTEN news; COMMIT"] {
        let world = World::new();
        let mut listener = listening(&world, "news").await;
        told(&mut listener, text).await;
        // A LISTEN that is rolled back is none.
        told(&mut listener, "BEGIN; LISTEN news; ROLLBACK; LISTEN end").await;
        let other = world.client().await;
        query(&other, "NOTIFY news, 'x'").await;
        query(&other, "NOTIFY \"end\"").await;
        assert_eq!(next_notification(&mut listener).await, "end: ", "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_payloads_that_are_too_long_are_refused() {
    let world = World::new();
    let client = world.client().await;
    let (name, payload) = ("c".repeat(64), "p".repeat(8000));
    for text in [
        format!("SELECT pg_notify('{name}', '')"),
        format!("SELECT pg_notify('c', '{payload}')"),
        "SELECT pg_notify('', '')".to_owned(),
        format!("LISTEN {name}"),
    ] {
        let error = client.simple_query(&text).await.unwrap_err();
        assert_eq!(code(&error), "22023", "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_says_too_much_is_refused_and_tells_nothing() {
    let world = World::new();
    let mut listener = listening(&world, "news").await;
    let client = world.client().await;
    let many =
        "SELECT pg_notify('news', n || repeat('x', 7000)) FROM generate_series(1, 2000) AS g(n)";
    assert_eq!(code(&client.simple_query(many).await.unwrap_err()), "54000");
    query(&client, "NOTIFY news, 'after'").await;
    assert_eq!(next_notification(&mut listener).await, "news: after");
}

/// The client's number.
async fn number(client: &Client) -> String {
    query(client, "SELECT pg_backend_pid()").await.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_cancelled_from_another_client() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    let number = number(&one).await;
    let sleeping = tokio::spawn(async move {
        let failed = one.simple_query("SELECT pg_sleep(1000)").await.unwrap_err();
        (code(&failed), query(&one, "SELECT 1").await)
    });
    let active = format!("SELECT state FROM pg_stat_activity WHERE pid = {number}");
    while query(&other, &active).await != ["active"] {
        tokio::task::yield_now().await;
    }
    assert_eq!(query(&other, &format!("SELECT pg_cancel_backend({number})")).await, ["t"]);
    assert_eq!(sleeping.await.unwrap(), ("57014".to_owned(), vec!["1".to_owned()]));
    assert_eq!(query(&other, "SELECT pg_cancel_backend(123456)").await, ["f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_sent_away_by_another_one_whatever_it_does() {
    for text in ["SELECT pg_sleep(1000)", "SELECT 1", "BEGIN"] {
        let world = World::new();
        let other = world.client().await;
        let mut one = world.raw_client().await;
        let pid = query(&other, "SELECT max(pid) FROM pg_stat_activity").await.remove(0);
        let body = [text.as_bytes(), b"\0"].concat();
        one.write_all(&message(b'Q', &body)).await.unwrap();
        let running = format!("SELECT query FROM pg_stat_activity WHERE pid = {pid}");
        while query(&other, &running).await != [text] {
            tokio::task::yield_now().await;
        }
        assert_eq!(query(&other, &format!("SELECT pg_terminate_backend({pid})")).await, ["t"]);
        let mut told = None;
        while let Some((kind, body)) = read_message(&mut one).await {
            if kind == b'E' {
                told = Some(String::from_utf8_lossy(&body).into_owned());
            }
        }
        let told = told.expect("the client is told why");
        assert!(told.contains("57P01") && told.contains("FATAL"), "{text}: {told}");
        let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        while query(&other, &gone).await != ["0"] {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_stops_the_clients_of_others() {
    let world = World::new();
    let owner = world.client().await;
    query(&owner, "CREATE ROLE mallory LOGIN").await;
    let (pid, user) = (number(&owner).await, "SET SESSION AUTHORIZATION mallory");
    let mallory = world.client().await;
    query(&mallory, user).await;
    for function in ["pg_cancel_backend", "pg_terminate_backend"] {
        let text = format!("SELECT {function}({pid})");
        let error = mallory.simple_query(&text).await.unwrap_err();
        assert_eq!(code(&error), "42501", "{function}");
    }
    assert_eq!(query(&owner, "SELECT 1").await, ["1"]);
}
