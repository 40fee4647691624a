//! The laboratory: Onrush beside its baselines, under the loads of `onrush-measure`.
//!
//! A [`study`] is a matrix of such loads over several [`target`]s, Onrush and its baselines;
//! [`verdict`] says what held each of them back, [`page`] draws all of it, and
//! [`compare`] sets two results against each other. [`advise`] makes a short study of a table of the
//! user's own ([`own_table`]) and says what to do. [`challenge`] is the classic load at its full size, closed
//! and checked.

pub mod advise;
pub mod challenge;
pub mod compare;
pub mod error;
pub mod own_table;
pub mod page;
mod program;
pub mod study;
pub mod target;
pub mod verdict;

pub use error::LabError;

/// Ends the servers that were started, and removes the folders of every measurement that is running and was not
/// asked to keep them. For a process that is about to end because it was interrupted.
pub fn clean_up() {
    #[cfg(feature = "servers")]
    target::server::process::end_all();
    onrush_measure::remove_temporary_folders();
}
