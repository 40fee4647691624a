//! What every session was doing, and what it was waiting for.
//!
//! Not a step of an insert but beside all of them: whoever may have to wait holds a [`WaitGuard`],
//! whoever did something worth a number counts it, and now and then a call has its phases timed.
//!
//! - [`catalog`]: the lists. Every wait, latch class, spin, counter and phase there is, each with
//!   its sentence.
//! - [`recorder`]: the numbers of one session or background thread, written by it alone.
//! - [`guard`]: the time of one wait, from when it began until it ended; [`task_guard`]: that of a task.
//! - [`registry`]: all recorders of a database, live and retired.
//! - [`totals`]: their sum, the difference of two sums, and the classic reports.
//! - [`exposition`]: the same for Prometheus.
//! - `sampling`: which calls are timed, and what the time between them says.
//!
//! Invariants
//! 1. The fast path of a recorder has one writer at a time; readers only sum. So writing is a load
//!    and a store, both relaxed, never a read-modify-write on a shared line.
//! 2. A retired recorder is folded into one sum in the same step that removes it: totals never go
//!    back.
//! 3. No clock is read where nothing is waited for, except by the calls that are timed.
//! 4. The time of a session is its phases, its waits, and its client's time between calls.

pub mod catalog;
pub mod exposition;
pub mod guard;
mod numbers;
pub mod recorder;
pub mod registry;
pub mod report;
mod sampling;
mod scheduler;
pub mod task_guard;
pub mod totals;

pub use catalog::{
    Counter, CounterUnit, LatchClass, LatchKind, Phase, PhaseClass, Spin, SpinKind, Wait, WaitClass,
};
pub use guard::WaitGuard;
pub use numbers::Spun;
pub use recorder::{Recorder, WorkGuard};
pub use registry::{LiveSummary, LiveTotals, RecorderKind, Registry, SessionClient, Statistics};
pub use sampling::SAMPLE_INTERVAL_MAX;
pub use task_guard::TaskWaitGuard;
pub use totals::{CounterTotal, LatchTotal, PhaseTotal, SpinTotal, Totals, WaitTotal};

/// Whether anything is recorded: the feature `statistics`.
pub const ENABLED: bool = cfg!(feature = "statistics");
