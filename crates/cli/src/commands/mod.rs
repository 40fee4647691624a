//! One file a subcommand.

pub mod backup;
pub mod check;
pub mod count;
pub mod create;
pub mod describe;
pub mod export;
pub mod get;
pub mod import;
mod import_mark;
pub mod insert;
pub mod lab;
pub mod repair;
pub mod scan;
#[cfg(feature = "serve")]
pub mod serve;
pub mod stats;
pub mod tables;
pub mod top;
