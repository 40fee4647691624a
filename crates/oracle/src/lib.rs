//! What a database must hold, and what a crash may leave of it. The simulator compares with it, and takes its tables as
//! they are; the whole server's clients bring states of their own, as they see them by SQL.
//!
//! Beside the life of an insert: nothing here runs in production, and no product crate depends on it. It knows no
//! page, no log and no disk, and asks the engine nothing.
//!
//! - [`history`]: commits in their order. What a crash may leave is the state after some prefix of them: no shorter
//!   than what was acknowledged, or what an answer rested on; no longer than what had begun.
//! - [`state`]: tables with their rows as bytes.
//! - [`Violation`]: what comparing comes to where something is not as it must be.

pub mod history;
pub mod state;
mod violation;

pub use history::{Bounds, Expected, History, Promises, longest_prefix};
pub use state::{Effect, State};
pub use violation::{Checked, Violation};
