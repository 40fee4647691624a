//! Runs `onrush` in a folder of its own.

#![allow(dead_code, unused_imports, clippy::unwrap_used)] // not every test file uses everything

#[cfg(unix)]
pub mod load;
mod world;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub use world::{Ran, World};

/// The command under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_onrush");

impl World {
    /// Starts a server on the database `shop`; returns with its address when it listens.
    pub fn serve(&self, more: &[&str]) -> (Child, String) {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "shop", "--listen", "127.0.0.1:0"])
            .args(more)
            .current_dir(self.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        (child, address.unwrap())
    }

    /// A database `shop` with a table `orders`: generated id, a note, an amount.
    pub fn with_orders() -> World {
        let world = World::new();
        world.ok(&[
            "create",
            "shop",
            "--table",
            "orders",
            "--column",
            "id bigint default identity(1,strict)",
            "--column",
            "note varchar(40) null",
            "--column",
            "amount int not null default 1",
            "--key",
            "id",
        ]);
        world
    }
}
