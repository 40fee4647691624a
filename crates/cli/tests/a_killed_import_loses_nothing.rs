//! The command itself is killed, again and again, while it imports one row a commit: what is there
//! afterwards is the beginning of what it was given, and all of what an import that ended was given.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::process::{Child, Command, Stdio};

use common::World;

const ROUNDS: u64 = 50;
/// Every so many-th import is not killed.
const ROUNDS_PER_WHOLE: u64 = 10;
/// An import is killed when it was given so many bytes; a pipe holds 64 KiB of them.
const BYTES_BEFORE_KILL: u64 = 66 << 10;

fn line(id: u64) -> String {
    format!("{id},{:040},{}\n", id * 7919, id % 1000)
}

fn import(world: &World) -> Child {
    Command::new(env!("CARGO_BIN_EXE_onrush"))
        .args(["import", "shop", "orders", "--rejects", "rejected.csv", "--rows-per-commit", "1"])
        .current_dir(world.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_import_has_imported_the_beginning_of_its_rows() {
    let world = World::with_orders();
    let mut next_id = 1;
    for round in 1..=ROUNDS {
        let mut child = import(&world);
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"id,note,amount\n").unwrap();
        let (mut id, mut bytes) = (next_id, 0);
        let is_whole = round % ROUNDS_PER_WHOLE == 0;
        let enough = BYTES_BEFORE_KILL + (round * 977) % (24 << 10);
        while bytes < enough {
            let line = line(id);
            input.write_all(line.as_bytes()).unwrap();
            (id, bytes) = (id + 1, bytes + line.len() as u64);
        }
        if is_whole {
            drop(input);
            assert!(child.wait().unwrap().success(), "round {round}");
        } else {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let rows = world.ok(&["export", "shop", "orders", "--from", &next_id.to_string()]);
        let found: Vec<&str> = rows.lines().skip(1).collect();
        assert!(found.len() as u64 <= id - next_id, "round {round}: more rows than were given");
        for (found, id) in found.iter().zip(next_id..) {
            assert_eq!(*found, line(id).trim_end(), "round {round}");
        }
        next_id += found.len() as u64;
        if is_whole {
            assert_eq!(next_id, id, "round {round}: rows of an import that ended are missing");
            world.ok(&["check", "shop"]);
        }
    }
    let all = world.ok(&["export", "shop", "orders"]);
    let given = (1..next_id).map(line).collect::<String>();
    assert!(all == format!("id,note,amount\n{given}"), "rows of earlier rounds have changed");
}
