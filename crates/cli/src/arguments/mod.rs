//! Flags that several commands share, and the words they take.

pub mod case;
#[cfg(feature = "serve")]
pub mod config;
pub mod database;
