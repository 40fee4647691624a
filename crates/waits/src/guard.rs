//! The time of one wait: from when the guard is made until it is dropped.
//!
//! Slow paths only: making one reads the clock.

use std::time::Instant;

use crate::catalog::Wait;
use crate::recorder::Recorder;

/// Counts one wait, and its time, when dropped.
///
/// *Resource* time lasts until what was waited for is there, *signal* time from then until the
/// thread runs again. A guard that is never told splits nothing: all its time is resource time.
#[must_use = "a wait lasts as long as its guard"]
#[derive(Debug)]
pub struct WaitGuard<'a> {
    recorder: &'a Recorder,
    wait: Wait,
    started: Option<Instant>, // None: statistics are off
    signalled: Option<Instant>,
}

impl<'a> WaitGuard<'a> {
    pub(crate) fn start(recorder: &'a Recorder, wait: Wait) -> Self {
        let started = recorder.is_on().then(Instant::now);
        Self { recorder, wait, started, signalled: None }
    }

    /// What was waited for is there now; from here on it is signal time.
    pub fn signalled(&mut self) {
        if self.started.is_some() {
            self.signalled = Some(Instant::now());
        }
    }

    /// What was waited for has been there since `when`, as noted by whoever gave it.
    pub fn signalled_at(&mut self, when: Instant) {
        self.signalled = Some(when);
    }

    /// When the wait began; `None` if statistics are off.
    pub fn started(&self) -> Option<Instant> {
        self.started
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let Some(started) = self.started else { return };
        let ended = Instant::now();
        // A signal older than the wait itself means that all of it was signal time.
        let signal = self.signalled.map(|when| ended.saturating_duration_since(when.max(started)));
        let total = ended.saturating_duration_since(started);
        self.recorder.waited(self.wait, total, signal.unwrap_or_default());
    }
}
