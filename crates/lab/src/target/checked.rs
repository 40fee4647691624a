//! One pass of a check of stored data, for targets that have one; and which checks each can run.

use std::time::{Duration, Instant};

use onrush_measure::machine::cpu_time;

use crate::study::{Setting, Settings};

/// What one pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Rows that are stored, and so were checked as deeply as was asked.
    pub rows: u64,
    /// Bytes that were read for it, or that the checked files and pages have.
    pub bytes: u64,
    /// Its time.
    pub elapsed: Duration,
    /// Processor time, of all threads and processes.
    pub cpu: Duration,
}

impl Checked {
    /// Times one pass in this process; `pass` gives the bytes.
    pub(super) fn of<E>(rows: u64, pass: impl FnOnce() -> Result<u64, E>) -> Result<Checked, E> {
        let (started, cpu_before) = (Instant::now(), cpu_time());
        let bytes = pass()?;
        let elapsed = started.elapsed();
        Ok(Checked { rows, bytes, elapsed, cpu: cpu_time().saturating_sub(cpu_before) })
    }
}

/// Why a server cannot run this check: its own has one depth, reads through caches, and runs in one
/// thread unless it is parallel.
pub(super) fn impossible(
    settings: &Settings,
    depth: &'static str,
    is_parallel: bool,
) -> Option<String> {
    if !settings.is(Setting::CheckDepth, depth) {
        return Some(match depth {
            "full" => "its check looks at rows and structure together".into(),
            _ => "its check looks at pages and their checksums only".into(),
        });
    }
    if settings.number(Setting::CheckThreads) > 1 && !is_parallel {
        return Some("its check runs in one thread".into());
    }
    if settings.is(Setting::CheckReads, "device") {
        return Some("its check reads through the caches, its own and the system's".into());
    }
    None
}
