//! Counts the cache lines that sessions of Onrush take from each other.
//!
//! Not a step of an insert: it looks at all of them. Whether inserts go on getting faster with more processors
//! depends on what they share, and that can be counted on a machine that has only two: sessions insert in turn
//! ([`turns`]) while Valgrind traces every access to memory, and the trace is played against a cache for each
//! session ([`caches`]). What a line's way from one processor to another costs is published; so the counts say
//! what a large machine can reach.
//!
//! Invariants
//! 1. The counts are those of the program as it is built: nothing in the engine is instrumented.
//! 2. Only what happens within a session's turn is counted; what the engine's threads write between turns is seen
//!    as lines that come from another processor.

pub mod caches;
mod code;
pub mod count;
mod markers;
pub mod prediction;
mod stacks;
mod trace;
pub mod turns;

pub use caches::SESSIONS_MAX;
pub use count::{Place, Sharing, count};
pub use prediction::{Bounds, MACHINES, Machine};
pub use turns::{Turns, insert};
