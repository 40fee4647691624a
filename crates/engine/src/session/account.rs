//! The time of a session: each call from outside begins and ends here.

use onrush_waits::{LiveTotals, Phase};

use super::session::Session;
use crate::error::Result;

impl Session {
    /// What this session did and waited for since it began, or since the last reset.
    #[must_use]
    pub fn statistics(&self) -> LiveTotals {
        let recorder = &self.worker.recorder;
        self.worker.engine.registry.live_one(recorder)
    }

    /// Runs one call from outside, so that its time is known: `last` is what it does at its end.
    #[inline]
    pub(super) fn call<T>(
        &mut self,
        last: Phase,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.worker.recorder.begin_call();
        let outcome = work(self);
        self.worker.recorder.end_call(last);
        outcome
    }
}
