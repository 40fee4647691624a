//! Inserts slow down as the log fills, smoothly and long before it is full: nobody should ever have to
//! wait for the last of its room.
//!
//! Room comes back all at once, at the end of a checkpoint. So what counts is whether the log fills
//! faster than the checkpoint proceeds. Every 64th change of a session pauses, the longer the further
//! the log is ahead of the checkpoint; and, should the checkpoint stand still, the longer the less room
//! is left: with twice the pause for half the room, the log comes near its end ever more slowly.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use onrush_log::LogSpace;

use super::progress::CheckpointProgress;

/// The longest pause. 64 changes of each session in such a time are next to nothing.
const PAUSE_MICROS_MAX: u64 = 20_000;
/// The pause where the log is a sixteenth of its capacity ahead of the checkpoint, or half of its last
/// quarter is used.
const PAUSE_MICROS: u64 = 1_000;

/// How long inserts pause. Set by the engine's own threads, read by sessions.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    pause_micros: AtomicU32,
    in_use_bytes_at_start: AtomicU64, // of the log, when the last checkpoint began
}

impl Throttle {
    /// How long a session's 64th change pauses now.
    #[inline]
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_micros(u64::from(self.pause_micros.load(Ordering::Relaxed)))
    }

    /// A checkpoint begins.
    pub(super) fn checkpoint_begins(&self, log: LogSpace) {
        self.in_use_bytes_at_start.store(log.in_use_bytes, Ordering::Relaxed);
    }

    /// Sets the pause by what the log and the running checkpoint are like.
    pub(crate) fn set(&self, log: LogSpace, checkpoint: CheckpointProgress) {
        let start = self.in_use_bytes_at_start.load(Ordering::Relaxed);
        let micros = pause_micros(log, start, checkpoint.done());
        self.pause_micros.store(micros as u32, Ordering::Relaxed);
    }
}

/// The pause with so much of the log used now, and so much when the checkpoint began that is `done` to
/// this part; `None` if there is none.
fn pause_micros(log: LogSpace, in_use_bytes_at_start: u64, done: Option<f64>) -> u64 {
    let capacity = log.capacity_bytes.max(16);
    let in_use = log.in_use_bytes.min(capacity);
    if in_use <= capacity / 2 {
        return 0;
    }
    let ahead = done.map_or(0, |done| {
        // With what it has now the checkpoint ends before nine tenths are used.
        let room = (capacity / 10 * 9).saturating_sub(in_use_bytes_at_start);
        let due = in_use_bytes_at_start + (room as f64 * done) as u64;
        PAUSE_MICROS * in_use.saturating_sub(due + capacity / 16) / (capacity / 16)
    });
    let quarter = capacity / 4;
    let over = in_use.saturating_sub(capacity - quarter);
    let short = PAUSE_MICROS * over / (quarter - over.min(quarter - 1));
    ahead.max(short).min(PAUSE_MICROS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: u64 = 1 << 30;

    fn pause(in_use_percent: u64, start_percent: u64, done: Option<f64>) -> u64 {
        let bytes = |percent| CAPACITY / 100 * percent;
        let log = LogSpace { in_use_bytes: bytes(in_use_percent), capacity_bytes: CAPACITY };
        pause_micros(log, bytes(start_percent), done)
    }

    #[test]
    fn nobody_pauses_while_half_of_the_log_is_free() {
        assert_eq!(pause(50, 10, Some(0.0)), 0);
    }

    #[test]
    fn nobody_pauses_while_the_checkpoint_keeps_up() {
        assert_eq!(pause(70, 50, Some(0.5)), 0);
    }

    #[test]
    fn a_log_that_fills_faster_than_the_checkpoint_proceeds_is_slowed_down_early() {
        assert!(pause(70, 50, Some(0.1)) > 0);
    }

    #[test]
    fn a_full_log_pauses_longest() {
        assert_eq!(pause(100, 50, None), PAUSE_MICROS_MAX);
    }

    #[test]
    fn the_pause_grows_without_a_jump_while_the_last_quarter_fills() {
        let pauses: Vec<u64> = (75..=95).map(|percent| pause(percent, 50, None)).collect();
        let steps: Vec<u64> = pauses.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.is_sorted() && steps[0] < PAUSE_MICROS / 16, "{pauses:?}");
    }

    proptest! {
        #[test]
        fn more_log_never_means_a_shorter_pause(
            less in 0..=CAPACITY, more in 0..=CAPACITY, start in 0..=CAPACITY, done in 0.0..=1.0,
        ) {
            let pause = |in_use_bytes| {
                pause_micros(LogSpace { in_use_bytes, capacity_bytes: CAPACITY }, start, Some(done))
            };
            prop_assert!(pause(less.min(more)) <= pause(less.max(more)));
        }
    }
}
