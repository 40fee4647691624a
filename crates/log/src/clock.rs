//! Where the log takes the time from.
//!
//! Invariant: without a thread of its own the log never asks the system for the milliseconds of the
//! delayed window: it is as late as the caller last said, so that a simulation decides it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use crate::options::LogWriter;

/// See the module.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Since the log was opened.
    System(Instant),
    /// Microseconds, as the caller last said; never goes back.
    Callers(AtomicU64),
}

impl Clock {
    pub(crate) fn new(writer: LogWriter) -> Clock {
        match writer {
            LogWriter::Thread { .. } => Clock::System(Instant::now()),
            LogWriter::Callers => Clock::Callers(AtomicU64::new(0)),
        }
    }

    /// Microseconds, and one more, so that 0 can mean never.
    pub(crate) fn now_micros(&self) -> u64 {
        let micros = match self {
            Clock::System(started) => micros(started.elapsed()),
            Clock::Callers(now) => now.load(Acquire),
        };
        micros.saturating_add(1)
    }

    /// The caller says how late it is; ignored by the clock of the system.
    pub(crate) fn set(&self, now: Duration) {
        if let Clock::Callers(known) = self {
            known.fetch_max(micros(now), Release);
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
