//! Flags that several commands share, and the words they take.

pub mod cell;
#[cfg(feature = "serve")]
pub mod config;
pub mod database;
