//! What the scheduler knows about this thread: how long it was ready to run but did not.
//!
//! Asked only about gaps of a fifth of a millisecond and more: asking takes microseconds.

use std::cell::Cell;

thread_local! {
    /// The answer of the last time, in nanoseconds since the thread began.
    static QUEUED: Cell<u64> = const { Cell::new(0) };
}

/// How long this thread was ready to run without running, since this was last asked on it, in
/// nanoseconds. 0 where the system does not say.
pub(crate) fn queued_nanos_since_last() -> u64 {
    let Some(now) = queued_nanos() else { return 0 };
    now.saturating_sub(QUEUED.replace(now))
}

/// Time on the run queue since the thread began: the second number of its scheduler statistics.
#[cfg(target_os = "linux")]
fn queued_nanos() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn queued_nanos() -> Option<u64> {
    None
}
