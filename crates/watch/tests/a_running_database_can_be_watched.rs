//! Another process sees the statistics of a running database, and nobody else does.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition, Totals, Wait};
use onrush_watch::{SOCKET_NAME, Server, WatchError, look};

struct Running {
    folder: tempfile::TempDir,
    database: Database,
}

fn running() -> Running {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path(), Options::small()).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    let notes = database.create_table(notes.build().unwrap()).unwrap();
    let mut session = database.session().unwrap();
    for id in 0..10i64 {
        session.insert(&notes, &[id.into()]).unwrap();
    }
    Running { folder, database }
}

#[test]
fn the_socket_tells_what_the_database_tells() {
    let Running { folder, database } = running();
    let server = Server::in_folder(&database, folder.path()).unwrap();
    let view = look(folder.path()).unwrap();
    assert_eq!(view.process, std::process::id());
    let rows = |totals: &Totals| {
        let counted = totals.counters.iter().find(|one| one.counter.name() == "ROWS_INSERTED");
        counted.unwrap().value
    };
    assert_eq!(rows(&view.statistics.totals), 10);
    assert_eq!(rows(&database.statistics().totals), 10);
    assert!(view.sessions.iter().any(|session| session.name == "engine"));
    drop(server);
    assert!(!folder.path().join(SOCKET_NAME).exists());
    assert!(matches!(look(folder.path()), Err(WatchError::NotServed { .. })));
    database.close().unwrap();
}

#[test]
fn a_session_tells_its_waits_in_full() {
    let Running { folder, database } = running();
    let notes = database.table("notes").unwrap();
    let mut session = database.session().unwrap();
    for id in 100..110i64 {
        session.insert(&notes, &[id.into()]).unwrap();
    }
    let _server = Server::in_folder(&database, folder.path()).unwrap();
    let own = session.statistics();
    let view = look(folder.path()).unwrap();
    let told = view.sessions.iter().find(|one| one.id == own.id).unwrap();
    let waited: Vec<_> = own.totals.waits.into_iter().filter(|wait| wait.nanos > 0).collect();
    assert!(waited.iter().any(|wait| wait.wait == Wait::WriteLog), "{waited:?}");
    assert_eq!(told.waits, waited);
}

#[test]
fn the_socket_is_the_owners_alone() {
    let Running { folder, database } = running();
    let _server = Server::in_folder(&database, folder.path()).unwrap();
    let mode = folder.path().join(SOCKET_NAME).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_socket_that_a_killed_process_left_is_replaced() {
    let Running { folder, database } = running();
    drop(std::os::unix::net::UnixListener::bind(folder.path().join(SOCKET_NAME)).unwrap());
    let message = look(folder.path()).unwrap_err().to_string();
    assert!(message.contains("nobody serves"), "{message}");
    let _server = Server::in_folder(&database, folder.path()).unwrap();
    assert!(look(folder.path()).is_ok());
}

/// A strict reader of the exposition format, as far as it is used: every sample belongs to the
/// family announced before it, names and labels are well formed, values are numbers.
fn samples(page: &str) -> Vec<(String, f64)> {
    let mut family = String::new();
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kind != "counter" || name.ends_with("_total"), "{line}");
            family = name.to_owned();
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert!(name.starts_with(&family), "{line} is not of {family}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
            if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let labels = labels.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
                for label in labels.split(',') {
                    let (label, value) = label.split_once('=').unwrap();
                    assert!(label.chars().all(|c| c.is_ascii_lowercase()), "{line}");
                    assert!(value.starts_with('"') && value.ends_with('"'), "{line}");
                }
            }
            found.push((series.to_owned(), value.parse().unwrap()));
        }
    }
    found
}

#[test]
fn the_page_for_prometheus_has_the_same_numbers() {
    let Running { database, .. } = running();
    let server = Server::http(&database, "127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"));
    assert!(head.contains(&format!("Content-Length: {}", page.len())));
    let samples = samples(page);
    let value = |series: &str| samples.iter().find(|(own, _)| own == series).unwrap().1;
    assert_eq!(value("onrush_events_total{counter=\"ROWS_INSERTED\"}"), 10.0);
    let waits = database.statistics().totals;
    let count = value("onrush_wait_seconds_count{wait=\"WRITELOG\",idle=\"false\"}");
    assert_eq!(count, waits.wait(onrush::Wait::WriteLog).count as f64);
    assert_eq!(
        value("onrush_wait_seconds_bucket{wait=\"WRITELOG\",idle=\"false\",le=\"+Inf\"}"),
        count
    );
    let longest = value("onrush_wait_max_seconds{wait=\"WRITELOG\"}");
    assert_eq!(longest, waits.wait(Wait::WriteLog).nanos_max as f64 / 1e9);
    for latch in &waits.latches {
        let longest =
            value(&format!("onrush_latch_max_seconds{{latch=\"{}\"}}", latch.latch.name()));
        assert!(longest <= latch.nanos_max as f64 / 1e9, "{}", latch.latch.name());
    }
}

#[test]
fn a_server_whose_socket_was_removed_ends_with_its_thread() {
    let Running { folder, database } = running();
    let server = Server::in_folder(&database, folder.path()).unwrap();
    std::fs::remove_file(folder.path().join(SOCKET_NAME)).unwrap();
    drop(server);
    // The thread had a handle of the database, and only the last one closes it.
    database.close().unwrap();
    Database::open(folder.path(), Options::small()).unwrap().close().unwrap();
}
