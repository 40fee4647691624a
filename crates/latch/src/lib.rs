//! Who may touch what in memory, and how many may try at once.
//!
//! Before an insert: [`admission`] gives its session a permit inside the engine. On its way:
//! [`version`] words show whether an inner node changed while it was read, and the
//! [`latch`](mod@latch) of the leaf lets one change at a time.
//!
//! - [`latch`](mod@latch), [`guards`]: reader-writer latch with the data inside.
//! - [`version`]: version word for data made of atomics, read without writing anything shared.
//! - [`admission`]: about as many threads as processors are inside at a time.
//! - [`rank`]: the order in which latches are taken, checked where debug assertions are on.
//! - [`cpus`]: how many processors there are for us.
//!
//! Invariants
//! 1. Only this crate spins, and never for longer than some ten microseconds at a stretch.
//! 2. Whoever does not get a latch or a permit at once is counted in its recorder, by name and time.

pub mod admission;
mod backoff;
pub mod cpus;
pub mod guards;
pub mod latch;
mod permit_word;
mod queue;
pub mod rank;
mod sync;
pub mod version;

pub use admission::{Admission, Entered, Ticket};
pub use cpus::{available_cpus, usable_cpus};
pub use guards::{ExclusiveGuard, SharedGuard};
pub use latch::Latch;
pub use rank::{LatchRank, RankedMutex, RankedMutexGuard, lock_counted};
pub use version::{Version, VersionLatch, VersionWriteGuard};
