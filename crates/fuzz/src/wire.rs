//! What clients send to the server, byte by byte as they like. One server for all inputs, which must
//! still serve a proper client after each.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onrush::{Database, Options};
use onrush_server::{Server, ServerOptions};

/// Longer than this nothing takes that the server answers.
const PATIENCE: Duration = Duration::from_secs(30);

static PANICS: AtomicU64 = AtomicU64::new(0);

fn address() -> SocketAddr {
    static SERVER: OnceLock<(Server, tempfile::TempDir)> = OnceLock::new();
    let (server, _) = SERVER.get_or_init(|| {
        // A panic ends the task of one client, and is seen nowhere else.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Others have threads of their own here.
            let thread = std::thread::current();
            if thread.name().is_some_and(|name| name.starts_with("onrush")) {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            before(panic);
        }));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = Database::create(folder.path().join("db"), Options::small());
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let options = ServerOptions { listen, threads: 1, ..ServerOptions::default() };
        let server = Server::start(database.expect("a database"), options).expect("a server");
        (server, folder)
    });
    server.address().expect("the server listens")
}

fn connect() -> TcpStream {
    let socket = TcpStream::connect(address()).expect("the server takes clients");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// The first message of a client.
fn start() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0fuzz\0\0";
    let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
    message.extend_from_slice(body);
    message
}

/// Sends all of it, with or without the end of the stream behind it, and reads what the server says
/// until it hangs up.
fn send(bytes: &[u8], hangs_up: bool) -> Vec<u8> {
    let mut socket = connect();
    // The server may have hung up already.
    let _ = socket.write_all(bytes);
    if hangs_up {
        let _ = socket.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ) =>
        {
            panic!("the server neither answers nor hangs up")
        }
        // It hung up in the middle: what it said before counts.
        _ => answer,
    }
}

fn assert_well() {
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "the server panicked");
    let mut proper = start();
    proper.extend(message(b'Q', b"SELECT 1\0"));
    proper.extend(message(b'X', b""));
    let answer = send(&proper, false);
    assert!(answer.contains(&b'Z') && answer.windows(2).any(|pair| pair == b"C\0"), "{answer:?}");
}

/// Bytes before a client was let in.
pub fn before_start(input: &[u8]) {
    send(input, true);
    assert_well();
}

/// Bytes after that.
pub fn after_start(input: &[u8]) {
    let mut bytes = start();
    bytes.extend_from_slice(input);
    send(&bytes, true);
    assert_well();
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// Beginnings of the protocol.
#[must_use]
pub fn start_seeds() -> Vec<(String, Vec<u8>)> {
    let seed = |name: &str, bytes: Vec<u8>| (name.to_owned(), bytes);
    vec![
        seed("start", start()),
        seed("encryption", b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec()),
        seed("cancel", b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02".to_vec()),
        seed("options", {
            let body = b"\0\x03\0\0user\0fuzz\0database\0d\0application_name\0a\0_pq_.x\0y\0\0";
            [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
        }),
    ]
}

/// Messages of a client that is in.
#[must_use]
pub fn message_seeds() -> Vec<(String, Vec<u8>)> {
    let simple = [
        message(b'Q', b"CREATE TABLE IF NOT EXISTS t (id bigint PRIMARY KEY, n varchar(20), d decimal(9,2))\0"),
        message(b'Q', b"INSERT INTO t VALUES (1, 'a''b', 1.5), (2, NULL, -1); SELECT * FROM t WHERE id = 1\0"),
        message(b'Q', b"BEGIN; UPDATE t SET n = 'x' WHERE id = 2; DELETE FROM t WHERE id = 1; ROLLBACK\0"),
    ];
    let extended = [
        message(b'P', b"s\0INSERT INTO t VALUES ($1, $2, $3)\0\0\x01\0\0\0\x14"),
        message(b'D', b"Ss\0"),
        message(b'B', b"\0s\0\0\x01\0\x01\0\x03\0\0\0\x08\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\0\0\0\x03\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'C', b"Ss\0"),
        message(b'S', b""),
    ];
    let copy = [
        message(b'Q', b"COPY t FROM STDIN\0"),
        message(b'd', b"7\tseven\t7.00\n8\t\\N\t\\N\n"),
        message(b'c', b""),
        message(b'Q', b"COPY t TO STDOUT\0"),
    ];
    let seed = |name: &str, messages: &[Vec<u8>]| (name.to_owned(), messages.concat());
    vec![seed("simple", &simple), seed("extended", &extended), seed("copy", &copy)]
}
