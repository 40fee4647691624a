//! Flags that several commands share.

pub mod answer;
pub mod engine;
pub mod metrics;
pub mod words;
