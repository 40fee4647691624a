//! Faults planted on purpose, for tests: those of [`onrush_fault`], which the log shares.

pub use onrush_fault::Fault;
#[cfg(feature = "planted-faults")]
pub use onrush_fault::plant;
pub(crate) use onrush_fault::{panic_if_planted, planted};
