//! What a database must hold, and what a crash may leave of it. The simulator compares with it, and takes its tables as
//! they are; so do processes that are killed, random histories and the whole server's clients, with states of their
//! own.
//!
//! Beside the life of an insert: nothing here runs in production, and no product crate depends on it. It knows no
//! page, no log and no disk, and asks the engine nothing.
//!
//! - [`history`]: commits in their order. What a crash may leave is the state after some prefix of them: no shorter
//!   than what was acknowledged, or what an answer rested on; no longer than what had begun.
//! - [`Transaction`]: what one sees and leaves, and which of two wins. [`Changed`]: who changed what last.
//! - [`session`]: commits that follow from their numbers, for processes that are killed.
//! - [`state`]: tables with their rows as bytes. A map of rows is a state, too.
//! - [`Violation`]: what comparing comes to where something is not as it must be.

pub mod history;
mod rows;
pub mod session;
pub mod state;
mod transaction;
mod violation;

pub use history::{Bounds, Expected, History, Placed, Promises, longest_prefix};
pub use session::{Known, follow};
pub use state::{Effect, State};
pub use transaction::{Changed, Transaction};
pub use violation::{Checked, Violation};
