//! Back-pressure: inserts slow down as log comes together faster than checkpoints free it, smoothly and
//! long before a limit is reached.
//!
//! Two limits hold: the log's capacity, and the log that recovery redoes within `recovery_seconds`. Either
//! falls all at once, at the end of a checkpoint. So what counts is whether the log grows faster than the
//! checkpoint proceeds. Every 64th change of a session pauses, the longer the further the log is ahead
//! of the checkpoint; and, should the checkpoint stand still, the longer the less is left below the limit:
//! with twice the pause for half the rest, the log comes near its limit ever more slowly.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use onrush_log::{AtomicLsn, Lsn};

use super::progress::CheckpointProgress;

/// The longest pause. 64 changes of each session in such a time are next to nothing.
const PAUSE_MICROS_MAX: u64 = 20_000;
/// The pause where the log is a sixteenth of its limit ahead of the checkpoint, or half of the last
/// quarter below its limit is used.
const PAUSE_MICROS: u64 = 1_000;

/// How much log there is of what a checkpoint frees, and how much there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogUse {
    pub(crate) used_bytes: u64,
    pub(crate) limit_bytes: u64,
}

/// How long inserts pause. Set by the engine's own threads, read by sessions.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    pause_micros: AtomicU32,
    redo_from_lsn: AtomicLsn,         // where recovery would begin now
    in_use_bytes_at_start: AtomicU64, // of the log, when the last checkpoint began
    redo_bytes_at_start: AtomicU64,   // log to be redone at that time
}

impl Throttle {
    /// How long a session's 64th change pauses now.
    #[inline]
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_micros(u64::from(self.pause_micros.load(Ordering::Relaxed)))
    }

    /// Bytes of log that recovery would redo now.
    pub(crate) fn redo_bytes(&self, tail: Lsn) -> u64 {
        tail.bytes_since(self.redo_from_lsn.load(Ordering::Relaxed))
    }

    /// A checkpoint is installed: recovery begins at `start`.
    pub(crate) fn set_redo_from(&self, start: Lsn) {
        self.redo_from_lsn.store(start, Ordering::Relaxed);
    }

    /// A checkpoint begins, with so many bytes of log in use, whose last LSN is `tail`.
    pub(super) fn checkpoint_begins(&self, log_in_use_bytes: u64, tail: Lsn) {
        self.in_use_bytes_at_start.store(log_in_use_bytes, Ordering::Relaxed);
        self.redo_bytes_at_start.store(self.redo_bytes(tail), Ordering::Relaxed);
    }

    /// Sets the pause by the log's files, the log to be redone, and the running checkpoint.
    pub(crate) fn set(&self, files: LogUse, redo: LogUse, checkpoint: CheckpointProgress) {
        let done = checkpoint.done();
        let pause = |log: LogUse, at_start: &AtomicU64| {
            pause_micros(log, at_start.load(Ordering::Relaxed), done)
        };
        let micros =
            pause(files, &self.in_use_bytes_at_start).max(pause(redo, &self.redo_bytes_at_start));
        self.pause_micros.store(micros as u32, Ordering::Relaxed);
    }
}

/// The pause with so much log now, and so much when the checkpoint began that is `done` to this part;
/// `None` if there is none.
fn pause_micros(log: LogUse, used_bytes_at_start: u64, done: Option<f64>) -> u64 {
    let limit = log.limit_bytes.max(16);
    let used = log.used_bytes.min(limit);
    if used <= limit / 2 {
        return 0;
    }
    let ahead = done.map_or(0, |done| {
        // With what it has now the checkpoint ends before nine tenths are used.
        let space = (limit / 10 * 9).saturating_sub(used_bytes_at_start);
        let due = used_bytes_at_start + (space as f64 * done) as u64;
        PAUSE_MICROS * used.saturating_sub(due + limit / 16) / (limit / 16)
    });
    let quarter = limit / 4;
    let over = used.saturating_sub(limit - quarter);
    let short = PAUSE_MICROS * over / (quarter - over.min(quarter - 1));
    ahead.max(short).min(PAUSE_MICROS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1 << 30;

    fn pause(in_use_percent: u64, start_percent: u64, done: Option<f64>) -> u64 {
        let bytes = |percent| LIMIT / 100 * percent;
        let log = LogUse { used_bytes: bytes(in_use_percent), limit_bytes: LIMIT };
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

    #[test]
    fn the_limit_that_is_nearer_sets_the_pause() {
        let throttle = Throttle::default();
        throttle.set_redo_from(Lsn(100));
        throttle.checkpoint_begins(LIMIT / 100, Lsn(100));
        let files = LogUse { used_bytes: LIMIT / 100, limit_bytes: LIMIT };
        let redo = |limit_bytes| LogUse {
            used_bytes: throttle.redo_bytes(Lsn(100 + LIMIT / 100)),
            limit_bytes,
        };
        throttle.set(files, redo(u64::MAX), CheckpointProgress::default());
        assert_eq!(throttle.pause(), Duration::ZERO);
        throttle.set(files, redo(LIMIT / 100), CheckpointProgress::default());
        assert_eq!(throttle.pause(), Duration::from_micros(PAUSE_MICROS_MAX));
    }

    proptest! {
        #[test]
        fn more_log_never_means_a_shorter_pause(
            less in 0..=LIMIT, more in 0..=LIMIT, start in 0..=LIMIT, done in 0.0..=1.0,
        ) {
            let pause = |used_bytes| {
                pause_micros(LogUse { used_bytes, limit_bytes: LIMIT }, start, Some(done))
            };
            prop_assert!(pause(less.min(more)) <= pause(less.max(more)));
        }
    }
}
