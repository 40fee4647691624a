//! The write-ahead log: one ring, one order, opaque records.
//!
//! The life of a record: [`Log::has_room`] before anything is latched, [`Log::reserve`],
//! [`Log::fill`] and [`Log::complete`] under the latch of its leaf, where nothing blocks or fails;
//! then [`Log::wait_durable`] (or [`Log::register_waker`], or [`Log::note_delayed`]).
//!
//! Words: *published* is in the ring, *written* is handed to the system, *durable* is synced.

mod background;
mod block;
mod core;
mod delayed;
mod error;
mod frame;
mod group;
mod log;
mod options;
mod pool;
mod prefix;
mod reader;
mod recover;
mod ring;
mod room;
mod segment;
mod statistics;
mod sync;
mod units;
mod wait;
mod wakers;
mod writer;

pub use error::{Cause, LogError};
pub use log::{Log, LogSpace};
pub use options::{DelayedWindow, LogOptions, WriterPlace};
pub use reader::Apply;
pub use recover::RecoveredLog;
pub use statistics::LogStatistics;
pub use units::{LogPosition, Lsn, Reservation};
