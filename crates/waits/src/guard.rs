//! The time of one wait: from when the guard is made until it is dropped.
//!
//! Slow paths only: making one reads the clock.
//!
//! Invariant: a moment of a thread is counted for one wait only, the innermost. A session that
//! evicts leaves because it waits for memory waits for the disk while it writes them.

use std::time::Instant;

use crate::catalog::Wait;
use crate::recorder::{Recorder, nanos_of};
use crate::sampling::{set_waited_on_thread, waited_on_thread};

/// Counts one wait, and its time, when dropped.
///
/// *Resource* time lasts until what was waited for is there, *signal* time from then until the
/// thread runs again. A guard that is never told splits nothing: all its time is resource time.
#[must_use = "a wait lasts as long as its guard"]
#[derive(Debug)]
pub struct WaitGuard<'a> {
    recorder: &'a Recorder,
    wait: Wait,
    began: Option<Began>, // None: statistics are off
    signalled: Option<Instant>,
}

#[derive(Debug)]
struct Began {
    when: Instant,
    /// What this thread had waited until then.
    waited: u64,
    /// What the recorder waited for around this.
    around: u64,
}

impl<'a> WaitGuard<'a> {
    pub(crate) fn start(recorder: &'a Recorder, wait: Wait) -> Self {
        let began = recorder.is_on().then(|| {
            let now = &recorder.numbers().waits_now;
            let around = now.get();
            now.set(wait.index() as u64 + 1);
            Began { when: Instant::now(), waited: waited_on_thread(), around }
        });
        Self { recorder, wait, began, signalled: None }
    }

    /// What was waited for is there now; from here on it is signal time.
    pub fn signalled(&mut self) {
        if self.began.is_some() {
            self.signalled = Some(Instant::now());
        }
    }

    /// What was waited for has been there since `when`, as noted by whoever gave it.
    pub fn signalled_at(&mut self, when: Instant) {
        self.signalled = Some(when);
    }

    /// When the wait began; `None` if statistics are off.
    pub fn started(&self) -> Option<Instant> {
        self.began.as_ref().map(|began| began.when)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let Some(Began { when: started, waited, around }) = self.began else { return };
        let ended = Instant::now();
        let total = nanos_of(ended.saturating_duration_since(started));
        let inside = waited_on_thread().saturating_sub(waited);
        set_waited_on_thread(waited + total);
        // A signal older than the wait itself means that all of it was signal time.
        let signal = self.signalled.map(|when| ended.saturating_duration_since(when.max(started)));
        let numbers = self.recorder.numbers();
        numbers.waits_now.set(around);
        let signal_nanos = signal.map_or(0, nanos_of);
        numbers.waited(self.wait, total.saturating_sub(inside), signal_nanos);
    }
}
