//! How a thread waits for something short: pause, then yield, then sleep.
//!
//! The holder of a hot latch does many short things with its lines in its own cache; who looks too
//! often takes the lines away and slows everyone down. So the pauses double up to some ten
//! microseconds together. A holder that is still not done then has probably lost its processor:
//! give it ours. Sleeping needs nobody to wake us, so that no wake-up can be lost, and letting go
//! of a latch stays one plain store. Measured in docs/decisions/0003-latches-and-admission.md.

use std::time::Duration;

use onrush_waits::Spun;

use crate::sync;

/// Pauses of the first round; each next round has twice as many.
const PAUSES_FIRST: u32 = 8;
/// Rounds of pauses, 8 + 16 + ... + 512: about 10 us where a pause takes 10 ns, as on most
/// processors.
const PAUSE_ROUNDS: u32 = 7;
/// Then so many times the processor is offered to others.
const YIELD_ROUNDS: u32 = 1;
/// Then it sleeps, for twice as long each time.
const SLEEP_FIRST: Duration = Duration::from_micros(50);
/// But no longer than this.
const SLEEP_MAX: Duration = Duration::from_micros(200);

/// One stretch of waiting, and what it took.
#[derive(Debug)]
pub(crate) struct Backoff {
    round: u32,
    sleep: Duration,
    /// What it took so far.
    pub(crate) spun: Spun,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { round: 0, sleep: SLEEP_FIRST, spun: Spun::default() }
    }

    /// Another try was in vain: waits, longer each time.
    pub(crate) fn wait(&mut self) {
        self.spun.spins += 1;
        if self.round < PAUSE_ROUNDS {
            sync::pause(PAUSES_FIRST << self.round);
            self.round += 1;
        } else if self.round < PAUSE_ROUNDS + YIELD_ROUNDS {
            self.spun.backoffs += 1;
            sync::thread::yield_now();
            self.round += 1;
        } else {
            self.spun.backoffs += 1;
            self.spun.sleeps += 1;
            sync::sleep(self.sleep);
            self.sleep = (self.sleep * 2).min(SLEEP_MAX);
        }
    }
}
