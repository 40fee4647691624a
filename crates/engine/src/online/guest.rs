//! Who checks or copies beside sessions: keeps the checkpoint, rests, and gives way.
//!
//! The work is done by a thread of its own with a low priority. It takes no lock of the engine, so that
//! nobody waits for one that has no processor: whatever needs one is done by the caller's thread.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use onrush_check::{Companion, LogChange};
use onrush_log::Lsn;
use onrush_waits::{Recorder, Wait};
use parking_lot::Mutex;

use super::OnlineOptions;
use super::compare::Comparison;
use crate::checkpoint::Pin;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::options::Background;

/// By how much the log, which is held meanwhile, is read more busily than the images.
const LOG_HASTE: u8 = 3;

/// See the module.
pub(super) struct Guest {
    pin: Pin,
    recorder: Arc<Recorder>,
    busy_percent: u8,
    nice: u8,
    /// Whether it may have a thread of its own.
    has_thread: bool,
    comparison: Option<Comparison>,
    /// Tells the caller's thread that the log has been read; gone once that was told.
    log_is_read: Mutex<Option<Sender<()>>>,
}

impl Guest {
    pub(super) fn new(database: &Database, options: &OnlineOptions, name: &str) -> Result<Guest> {
        let OnlineOptions { busy_percent, nice, .. } = *options;
        let check = |holds: bool, setting: &'static str, given: u8, reason: &str| {
            let (given, reason) = (given.to_string(), reason.into());
            if holds { Ok(()) } else { Err(Error::BadOption { setting, given, reason }) }
        };
        check((1..=100).contains(&busy_percent), "busy_percent", busy_percent, "1 to 100")?;
        check(nice <= 19, "nice", nice, "0 to 19")?;
        let engine = database.engine();
        let recorder = Recorder::new(&engine.registry, name);
        Ok(Guest {
            pin: Pin::take(engine, &recorder)?,
            recorder,
            busy_percent,
            nice,
            has_thread: engine.options.background == Background::Threads,
            comparison: None,
            log_is_read: Mutex::new(None),
        })
    }

    pub(super) fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Takes part in the comparison of rows.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        self.comparison = Some(comparison);
    }

    pub(super) fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref()
    }

    pub(super) fn wait_durable(&self, database: &Database, lsn: Lsn) -> Result<()> {
        Ok(database.engine().log.wait_durable(lsn, &self.recorder)?)
    }

    /// Does the work on a thread that gives way to others, and lets the log go as soon as the work
    /// says that it has been read.
    pub(super) fn beside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        if !self.has_thread {
            return work();
        }
        let (tell, told) = channel();
        *self.log_is_read.lock() = Some(tell);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _told = ToldAtTheEnd(self);
                give_way(self.nice);
                work()
            });
            // An error: the work is over, and has not read the log.
            let _ = told.recv();
            self.pin.release_log();
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Paces whoever works on the caller's thread.
    pub(super) fn pace(&self) -> Pace<'_> {
        Pace { guest: self, since: Instant::now() }
    }

    fn rest_after(&self, worked: Duration, busy_percent: u8) {
        let busy = u32::from(busy_percent);
        let rest = worked * (100 - busy) / busy;
        if !rest.is_zero() {
            let _wait = self.recorder.wait(Wait::OnlineRest);
            std::thread::sleep(rest);
        }
    }
}

/// Whoever waits for the end of the log goes on, however the work ends.
struct ToldAtTheEnd<'a>(&'a Guest);

impl Drop for ToldAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.log_is_read.lock().take();
    }
}

/// Lowers the priority of the calling thread, and of those that it will start.
fn give_way(nice: u8) {
    // Without it the work is done all the same. On Linux it concerns this thread only.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, i32::from(nice));
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

/// When somebody who works without a companion last rested.
pub(super) struct Pace<'a> {
    guest: &'a Guest,
    since: Instant,
}

impl Pace<'_> {
    pub(super) fn rest(&mut self) {
        self.guest.rest(self.since.elapsed());
        self.since = Instant::now();
    }
}

impl Companion for Guest {
    fn wants_rows(&self) -> bool {
        self.comparison.is_some()
    }

    fn log_change(&self, object: u32, key: &[u8], change: LogChange<'_>) {
        if let Some(comparison) = &self.comparison {
            comparison.change(object, key, change);
        }
    }

    fn leaf(&self, object: u32, low: &[u8], rows: &mut dyn Iterator<Item = (&[u8], &[u8])>) {
        if let Some(comparison) = &self.comparison {
            comparison.leaf(object, low, rows);
        }
    }

    fn log_is_read(&self) {
        if let Some(comparison) = &self.comparison {
            comparison.log_is_read();
        }
        match self.log_is_read.lock().take() {
            Some(tell) => drop(tell.send(())),
            None => self.pin.release_log(),
        }
    }

    fn rest(&self, worked: Duration) {
        self.rest_after(worked, self.busy_percent);
    }

    fn rest_in_log(&self, worked: Duration) {
        self.rest_after(worked, self.busy_percent.saturating_mul(LOG_HASTE).min(100));
    }
}
