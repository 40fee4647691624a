//! The write-ahead log: one ring, one order, records that are opaque bytes.
//!
//! **The life of a record.** Before anything is latched, [`Log::has_space`] promises ring and file
//! space. Under the latch of its leaf, [`Log::reserve`] takes its LSN; [`Log::fill`] copies it into
//! the ring; [`Log::complete`] says that it is whole. From there a *write round* takes it: the
//! completed prefix becomes blocks, the blocks are written in as few calls as possible and synced,
//! and `durable` moves up. Who waits ([`Log::wait_durable`]) leads that round if nobody else does;
//! futures ([`Log::register_waker`]) and delayed commits ([`Log::note_delayed`]) have a background
//! thread that does.
//!
//! Words: *published* is in the ring, *written* is handed to the system, *durable* is synced.
//!
//! In reading order:
//!
//! - [`units`](LogPosition), [`options`](LogOptions), [`error`](LogError): the vocabulary.
//! - `log`: the calls. `core`: what they share, and the failure.
//! - `append_space`, `prefix`, `ring`, `frame`: appending. Nothing here blocks.
//! - `wait`, `group`, `wakers`, `delayed`, `clock`: waiting, and who leads.
//! - `writer`, `block`, `segment`, `pool`: a round, and where it goes. `background`: the threads.
//! - `reader`, `progress`, `recover`: reading it back, telling a torn tail from damage, going on.
//! - `tail`: whole blocks below the durable end, for whoever keeps them elsewhere.
//!
//! Who may wait for what: a thread between `reserve` and `complete` waits for nothing. A leader
//! waits for the disk alone. Nobody waits here while it holds a lock that a leader needs.
//!
//! The format is in `docs/log-format.md`; why commits are grouped as they are, and what else was
//! measured, in `docs/decisions/0002-group-commit.md`.

mod append_space;
mod background;
mod block;
mod clock;
mod core;
mod delayed;
mod error;
mod frame;
mod group;
mod log;
mod options;
mod pool;
mod prefix;
mod progress;
mod reader;
mod recover;
mod ring;
mod segment;
mod shared_time;
mod statistics;
mod sync;
mod tail;
mod units;
mod wait;
mod wakers;
mod writer;

pub use error::{Cause, LogError};
pub use log::{Log, LogHold, LogSpace};
pub use onrush_lsn::{AtomicLsn, LatestLsn, Lsn};
pub use options::{DelayedWindow, LogOptions, LogWriter};
pub use progress::ReadProgress;
pub use reader::Apply;
pub use recover::RecoveredLog;
pub use segment::{segment_header, segment_name};
pub use statistics::LogStatistics;
pub use tail::{BlockFault, LogPart, LogTail, follow_blocks};
pub use units::{LogPosition, Reservation};
