//! A new database gets a folder for itself, and is made only when nothing stands in the way of what it is made for.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use common::{Ran, World};

/// Runs `onrush serve`, which must refuse, and returns what it said.
fn refused(world: &World, arguments: &[&str]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_onrush"))
        .arg("serve")
        .args(arguments)
        .current_dir(world.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let first = BufReader::new(child.stdout.take().unwrap()).lines().next();
    if let Some(line) = first {
        child.kill().unwrap();
        panic!("{arguments:?} is served: {}", line.unwrap());
    }
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1, "{arguments:?}: {}", ran.err);
    ran.err
}

#[test]
fn no_database_is_made_among_the_files_of_others() {
    let world = World::new();
    std::fs::create_dir(world.path("documents")).unwrap();
    world.write("documents/letter.txt", "mine");
    let told = refused(&world, &["documents", "--listen", "127.0.0.1:0"]);
    assert!(told.contains("letter.txt") && told.contains("empty folder"), "{told}");
    let ran = world.run(&["create", "documents"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let names: Vec<_> = std::fs::read_dir(world.path("documents")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn an_address_that_is_in_use_is_found_before_a_database_is_made() {
    let world = World::new();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let told = refused(&world, &["shop", "--listen", &address]);
    assert!(told.contains(&address) && told.contains("choose another"), "{told}");
    let told = refused(&world, &["shop", "--listen", "127.0.0.1:0", "--http", &address]);
    assert!(told.contains(&address), "{told}");
    assert!(world.list().is_empty(), "{:?}", world.list());
}

#[test]
fn a_unix_socket_that_is_in_use_and_a_file_of_its_name_are_left_as_they_are() {
    let world = World::new();
    let _held = UnixListener::bind(world.path("held")).unwrap();
    world.write("file", "mine");
    for name in ["held", "file"] {
        let told = refused(&world, &["shop", "--listen", "127.0.0.1:0", "--unix-socket", name]);
        assert!(told.contains(name), "{told}");
    }
    assert_eq!(world.read("file"), "mine");
    assert!(!world.exists("shop"));
}

#[test]
fn a_certificate_that_cannot_be_used_is_found_before_a_database_is_made() {
    let world = World::new();
    world.write("cert.pem", "no certificate");
    world.write("key.pem", "no key");
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    refused(&world, &[&["shop", "--listen", "127.0.0.1:0"][..], &tls].concat());
    assert!(!world.exists("shop"));
}

#[test]
fn a_setting_out_of_range_is_refused_under_its_flag_before_a_database_is_made() {
    let world = World::new();
    let ran = world.run(&["serve", "shop", "--listen", "127.0.0.1:0", "--log-capacity", "1MiB"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("--log-capacity is 1 MiB"), "{}", ran.err);
    assert!(!world.exists("shop"));
}
