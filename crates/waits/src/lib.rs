//! What every session was doing, and what it was waiting for.
//!
//! Not a step of an insert but beside all of them: whoever may have to wait holds a [`WaitGuard`],
//! whoever did something worth a number counts it, and one operation in 256 has its phases timed.
//!
//! - [`catalog`]: the lists. Every wait, latch class, counter and phase there is, each with its
//!   sentence.
//! - [`recorder`]: the numbers of one session or background thread, written by it alone.
//! - [`guard`]: the time of one wait, from when it began until it ended.
//! - [`registry`]: all recorders of a database, live and retired.
//! - [`totals`]: their sum, the difference of two sums, and the classic report.
//!
//! Invariants
//! 1. A recorder has one writer at a time; readers only sum. So writing is a load and a store, both
//!    relaxed, never a read-modify-write on a shared line.
//! 2. A retired recorder is folded into one sum in the same step that removes it: totals never go
//!    back.
//! 3. No clock is read where nothing is waited for, except by the one operation in 256.

pub mod catalog;
pub mod guard;
pub mod recorder;
pub mod registry;
pub mod report;
pub mod totals;

pub use catalog::{
    Counter, CounterUnit, LatchClass, LatchKind, Phase, PhaseClass, Wait, WaitClass,
};
pub use guard::WaitGuard;
pub use recorder::{PhaseTimer, Recorder, SAMPLE_INTERVAL};
pub use registry::{Registry, Statistics};
pub use totals::{CounterTotal, LatchTotal, PhaseTotal, Totals, WaitTotal};
