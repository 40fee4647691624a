//! What is answered over HTTP, and to whom.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;

use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition};
use onrush_dashboard::{Dashboard, DashboardError};

struct World {
    database: Database,
    dashboard: Dashboard,
    _folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let definition = TableDefinition::builder("orders")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .primary_key(["id"])
        .build()
        .unwrap();
    let table = database.create_table(definition).unwrap();
    database.session().unwrap().insert(&table, &[7i64.into()]).unwrap();
    let dashboard = Dashboard::start(&database, "127.0.0.1:0".parse().unwrap(), None).unwrap();
    World { database, dashboard, _folder: folder }
}

impl World {
    /// Status and body.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.dashboard.address()).unwrap();
        write!(socket, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "localhost")
    }
}

#[test]
fn the_page_is_whole() {
    let (status, page) = world().get("/");
    assert_eq!(status, 200);
    assert!(page.contains("<title>Onrush</title>") && page.ends_with("</html>\n"));
}

#[test]
fn the_numbers_are_those_of_the_database() {
    let world = world();
    let (status, body) = world.get("/view.json");
    assert_eq!(status, 200);
    let shown: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(shown["tables"][0]["name"], "orders");
    assert_eq!(shown["tables"][0]["primary_key"], "id");
    let counters = shown["statistics"]["totals"]["counters"].as_array().unwrap();
    let rows = counters.iter().find(|one| one["counter"] == "ROWS_INSERTED").unwrap();
    assert_eq!(rows["value"], 1);
}

#[test]
fn sessions_carry_whose_they_are() {
    let world = world();
    let session = world.database.session().unwrap();
    let (application, user) = ("till 3".to_owned(), "cashier".to_owned());
    let client = onrush::SessionClient { application, user, address: "10.0.0.7:5000".to_owned() };
    world.database.set_session_client(session.id(), client);
    let shown: serde_json::Value = serde_json::from_str(&world.get("/view.json").1).unwrap();
    let sessions = shown["sessions"].as_array().unwrap();
    let own = sessions.iter().find(|one| one["id"] == session.id()).unwrap();
    assert_eq!(own["client"]["application"], "till 3");
    assert_eq!(own["client"]["user"], "cashier");
    assert_eq!(own["client"]["address"], "10.0.0.7:5000");
}

#[test]
fn prometheus_gets_its_page() {
    let (status, page) = world().get("/metrics");
    assert_eq!(status, 200);
    assert!(page.contains("# TYPE onrush_leaves gauge"), "{page}");
}

#[test]
fn health_tells_when_the_database_is_closed() {
    let world = world();
    assert_eq!(world.get("/health"), (200, "ok\n".to_owned()));
    world.database.clone().close().unwrap();
    let (status, reason) = world.get("/health");
    assert_eq!(status, 503);
    assert!(reason.contains("closed"), "{reason}");
}

#[test]
fn health_takes_no_session() {
    let world = world();
    let sessions = || world.database.sessions().len();
    let before = sessions();
    let mut socket = TcpStream::connect(world.dashboard.address()).unwrap();
    for _ in 0..3 {
        write!(socket, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        assert_eq!(sessions(), before);
        let mut rest = Vec::new();
        while !rest.ends_with(b"ok\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            rest.extend(byte);
        }
    }
}

#[test]
fn nothing_but_reading_is_answered() {
    let world = world();
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(world.ask(method, "/view.json", "localhost").0, 405, "{method}");
    }
    assert_eq!(world.get("/other").0, 404);
}

/// A page from elsewhere that gives this address a name of its own (DNS rebinding).
#[test]
fn a_request_for_another_host_is_refused() {
    let world = world();
    assert_eq!(world.ask("GET", "/view.json", "example.org").0, 403);
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let world = world();
    let refused = Dashboard::start(&world.database, "0.0.0.0:0".parse().unwrap(), None).err();
    assert!(matches!(refused, Some(DashboardError::NotGuarded(_))), "{refused:?}");
}
