//! Connections that do nothing cost the server little memory each, also after they have done something.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;

use common::World;

/// No more than half of the files that a process may have open where nothing else is said.
const CONNECTIONS: u64 = 400;
const BYTES_MAX: u64 = 64 << 10;

/// Memory of a process that lies in the machine's, in bytes.
fn resident_bytes(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes << 10
}

/// Reads messages up to the one that says that the server is ready.
fn wait_until_ready(socket: &mut TcpStream) {
    loop {
        let mut header = [0; 5];
        socket.read_exact(&mut header).unwrap();
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let mut body = vec![0; length - 4];
        socket.read_exact(&mut body).unwrap();
        assert_ne!(header[0], b'E', "{}", String::from_utf8_lossy(&body));
        if header[0] == b'Z' {
            return;
        }
    }
}

fn connect(address: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"\0\0\0\x13\0\x03\0\0user\0test\0\0").unwrap();
    wait_until_ready(&mut socket);
    socket
}

fn query(socket: &mut TcpStream, text: &str) {
    let length = u32::try_from(text.len() + 5).unwrap();
    let message = [b"Q", &length.to_be_bytes()[..], text.as_bytes(), b"\0"].concat();
    socket.write_all(&message).unwrap();
    wait_until_ready(socket);
}

#[test]
fn idle_connections_cost_less_than_64_kib_each() {
    let world = World::new();
    let (mut server, address) = world.serve(&[]);
    let mut first = connect(&address);
    query(&mut first, "CREATE TABLE t (id bigserial PRIMARY KEY, n int)");
    query(&mut first, "INSERT INTO t (n) VALUES (1)");
    query(&mut first, "SELECT n FROM t WHERE id = 1");
    let before = resident_bytes(&server);
    let mut idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(&address)).collect();
    let each = (resident_bytes(&server) - before) / CONNECTIONS;
    assert!(each < BYTES_MAX, "{each} bytes");
    for socket in &mut idle {
        query(socket, "SELECT n FROM t WHERE id = 1");
    }
    let each = (resident_bytes(&server) - before) / CONNECTIONS;
    assert!(each < BYTES_MAX, "{each} bytes after a query");
    server.kill().unwrap();
    server.wait().unwrap();
}
