//! What a client sends between two Syncs of the extended protocol is one transaction.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::common::{World, message, query, read_message, state_of};

/// Parse, Bind and Execute of a statement without parameters.
fn statement(text: &str) -> Vec<u8> {
    let parse = message(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
    let bind = message(b'B', &[0; 8]);
    let execute = message(b'E', &[0; 5]);
    [parse, bind, execute].concat()
}

fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// Sends statements and then Sync, and gives what comes up to the server being ready: tags, SQLSTATEs of errors and
/// of warnings, and the state of the transaction.
async fn pipeline(socket: &mut TcpStream, statements: &[&str]) -> Vec<String> {
    let sent: Vec<u8> = statements.iter().flat_map(|text| statement(text)).chain(sync()).collect();
    socket.write_all(&sent).await.unwrap();
    answers(socket).await
}

async fn answers(socket: &mut TcpStream) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        match read_message(socket).await.expect("the connection goes on") {
            (b'C', body) => told.push(String::from_utf8_lossy(&body[..body.len() - 1]).into()),
            (b'E' | b'N', body) => told.push(state_of(&body)),
            (b'Z', body) => {
                told.push(char::from(body[0]).to_string());
                return told;
            }
            _ => {}
        }
    }
}

async fn with_table(world: &World) -> (tokio_postgres::Client, TcpStream) {
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    (client, world.raw_client().await)
}

const ALL: &str = "SELECT id FROM t ORDER BY id";

#[tokio::test(flavor = "multi_thread")]
async fn an_error_takes_back_what_came_before_it_in_the_pipeline() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    let sent = ["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"];
    assert_eq!(pipeline(&mut socket, &sent).await, ["INSERT 0 1", "23505", "I"]);
    assert!(query(&client, ALL).await.is_empty());
    assert_eq!(pipeline(&mut socket, &["INSERT INTO t VALUES (3)"]).await, ["INSERT 0 1", "I"]);
    assert_eq!(query(&client, ALL).await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn others_see_nothing_of_a_pipeline_before_its_sync() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    let flush = message(b'H', &[]);
    let sent = [statement("INSERT INTO t VALUES (1)"), flush].concat();
    socket.write_all(&sent).await.unwrap();
    while read_message(&mut socket).await.unwrap().0 != b'C' {}
    assert!(query(&client, ALL).await.is_empty());
    socket.write_all(&sync()).await.unwrap();
    assert_eq!(answers(&mut socket).await, ["I"]);
    assert_eq!(query(&client, ALL).await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn begin_in_a_pipeline_takes_what_came_before_it() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    let sent = ["INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)"];
    let told = pipeline(&mut socket, &sent).await;
    assert_eq!(told, ["INSERT 0 1", "BEGIN", "INSERT 0 1", "T"]);
    assert!(query(&client, ALL).await.is_empty());
    assert_eq!(pipeline(&mut socket, &["ROLLBACK"]).await, ["ROLLBACK", "I"]);
    assert!(query(&client, ALL).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_and_rollback_in_a_pipeline_end_it_with_a_warning() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    let sent = ["INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)", "ROLLBACK"];
    let told = pipeline(&mut socket, &sent).await;
    let expected = ["INSERT 0 1", "25P01", "COMMIT", "INSERT 0 1", "25P01", "ROLLBACK", "I"];
    assert_eq!(told, expected);
    assert_eq!(query(&client, ALL).await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_in_a_transaction_commits_what_came_before_it() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    let sent = ["INSERT INTO t VALUES (1)", "SAVEPOINT s", "INSERT INTO t VALUES (2)"];
    assert_eq!(pipeline(&mut socket, &sent).await, ["INSERT 0 1", "25P01", "I"]);
    assert_eq!(query(&client, ALL).await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_is_deferred_is_looked_at_by_sync() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    query(&client, "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t INITIALLY DEFERRED)")
        .await;
    let sent = ["INSERT INTO c VALUES (1, 7)", "SELECT 1"];
    let told = pipeline(&mut socket, &sent).await;
    assert_eq!(told, ["INSERT 0 1", "SELECT 1", "23503", "I"]);
    assert!(query(&client, "SELECT id FROM c").await.is_empty());
    let sent = ["INSERT INTO c VALUES (1, 7)", "INSERT INTO t VALUES (7)"];
    assert_eq!(pipeline(&mut socket, &sent).await, ["INSERT 0 1", "INSERT 0 1", "I"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_before_its_sync_has_changed_nothing() {
    let world = World::new();
    let (client, mut socket) = with_table(&world).await;
    let sent = [statement("INSERT INTO t VALUES (1)"), message(b'X', &[])].concat();
    socket.write_all(&sent).await.unwrap();
    while read_message(&mut socket).await.is_some() {}
    assert!(query(&client, ALL).await.is_empty());
}
