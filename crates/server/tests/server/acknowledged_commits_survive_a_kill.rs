//! The process of a server is killed while many clients insert: what was acknowledged as durable is
//! there afterwards.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onrush::{Database, Options};
use onrush_server::{Server, ServerOptions};
use tokio_postgres::{Client, NoTls};

const CLIENTS: i64 = 64;
/// The server is killed when so many inserts were acknowledged.
const ACKNOWLEDGED: usize = 2000;
/// Tells the process that it is the server, and where.
const FOLDER: &str = "ONRUSH_KILLED_SERVER_FOLDER";

#[test]
#[ignore = "this is the process that the other test starts and kills"]
fn serve_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let database = Database::open_or_create(folder, Options::small()).unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let server =
        Server::start(database, ServerOptions { listen, ..ServerOptions::default() }).unwrap();
    println!("\nlistening on {}", server.address().unwrap());
    loop {
        std::thread::park();
    }
}

/// Starts a server of its own process; returns with its port when it listens.
fn start(folder: &Path) -> (Child, u16) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "acknowledged_commits_survive_a_kill::serve_until_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("listening on ")).unwrap();
    let port = line.rsplit(':').next().unwrap().parse().unwrap();
    (child, port)
}

async fn connect(port: u16) -> Client {
    let settings = format!("host=127.0.0.1 port={port} user=test");
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_durable_commit_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let (mut child, port) = start(&path);
    let create = "CREATE TABLE t (client bigint, number bigint, PRIMARY KEY (client, number))";
    connect(port).await.simple_query(create).await.unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for name in 0..CLIENTS {
        let (client, count) = (connect(port).await, Arc::clone(&count));
        // Prepared here, as the first clients may reach the number before the last has begun.
        let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").await.unwrap();
        clients.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            for number in 0i64.. {
                if client.execute(&insert, &[&name, &number]).await.is_err() {
                    break;
                }
                mine.push((name, number));
                count.fetch_add(1, Ordering::Relaxed);
            }
            mine
        }));
    }
    while count.load(Ordering::Relaxed) < ACKNOWLEDGED {
        tokio::task::yield_now().await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut acknowledged: Vec<(i64, i64)> = Vec::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }
    assert!(acknowledged.len() >= ACKNOWLEDGED);

    let (mut child, port) = start(&path);
    let client = connect(port).await;
    let rows = client.query("SELECT client, number FROM t", &[]).await.unwrap();
    let there: HashSet<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let lost = acknowledged.iter().filter(|row| !there.contains(row)).count();
    let sound = client.simple_query("CALL onrush.check(dop => 1)").await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lost, 0, "of {} acknowledged rows", acknowledged.len());
    sound.unwrap();
}
