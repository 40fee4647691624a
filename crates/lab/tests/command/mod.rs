//! Runs `onrush-lab` in a folder of its own.

#![allow(dead_code, clippy::unwrap_used)] // not every test file uses everything

#[path = "../../../cli/tests/common/world.rs"]
mod world;

pub use world::World;

/// The command under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_onrush-lab");
