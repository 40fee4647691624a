//! Rows in and out: CSV and newline-JSON in; CSV, newline-JSON and Parquet out.
//!
//! Beside the life of an insert: it uses the engine's public API only.
//!
//! In: [`lines`] cuts the input into lines and remembers their numbers, [`csv`] or [`json`] makes a
//! row of values of each, [`import()`] inserts and commits, and what cannot be a row goes to a side
//! file ([`rejects`]) with its line number and the reason.
//!
//! Out: [`export()`] takes the rows of a scan, and [`csv`], [`json`] or [`parquet`] writes them.
//!
//! Invariants
//! 1. What was exported as CSV or JSON and is imported again is the same rows: NULL and an empty
//!    text differ, and no number is rounded. The one exception: trailing blanks of `char` columns,
//!    which never count, are left out.
//! 2. A bad row is rejected by itself: the rows around it are imported.

pub mod csv;
pub mod error;
pub mod export;
pub mod import;
pub mod json;
pub mod lines;
pub mod parquet;
pub mod rejects;

use onrush::Value;

pub use error::TransferError;
pub use export::{ExportFormat, ExportOptions, export};
pub use import::{ImportFormat, ImportOptions, ImportReport, Watcher, import};
pub use rejects::Rejects;

/// What a value takes that may be long.
fn length_of(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
