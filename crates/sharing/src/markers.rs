//! How the traced process tells whoever reads its trace whose row runs: by a store to a line of its own.
//!
//! A trace of memory accesses does not name threads. Before a session's turn it stores to the line
//! [`begin`], after it to the line [`end`]; the addresses of both follow from [`base`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::caches::SESSIONS_MAX;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;

#[repr(align(64))]
struct Marker(AtomicU64);

static MARKERS: [Marker; 2 * SESSIONS_MAX + 1] =
    [const { Marker(AtomicU64::new(0)) }; 2 * SESSIONS_MAX + 1];

/// What a store to an address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The turn of this session begins.
    Begin(usize),
    /// The turn of this session is over.
    End(usize),
    /// From here on it counts: all caches are warm.
    Count,
}

/// The address of the first marker.
pub(crate) fn base() -> u64 {
    std::ptr::from_ref(&MARKERS[0]) as u64
}

/// Marks the begin of a session's turn.
#[inline]
pub(crate) fn begin(session: usize) {
    MARKERS[2 * session].0.store(1, Relaxed);
}

/// Marks the end of a session's turn.
#[inline]
pub(crate) fn end(session: usize) {
    MARKERS[2 * session + 1].0.store(1, Relaxed);
}

/// Marks the end of the first turns, which only warm the caches.
pub(crate) fn count_from_here() {
    MARKERS[2 * SESSIONS_MAX].0.store(1, Relaxed);
}

/// What a store to `address` says, if anything.
#[inline]
pub(crate) fn mark_at(base: u64, address: u64) -> Option<Mark> {
    let index = usize::try_from(address.checked_sub(base)? / LINE_BYTES).ok()?;
    match index {
        index if index < 2 * SESSIONS_MAX && index % 2 == 0 => Some(Mark::Begin(index / 2)),
        index if index < 2 * SESSIONS_MAX => Some(Mark::End(index / 2)),
        index if index == 2 * SESSIONS_MAX => Some(Mark::Count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_marker_says_what_its_store_means() {
        let at = |index: u64| mark_at(4096, 4096 + index * LINE_BYTES);
        assert_eq!((at(0), at(7)), (Some(Mark::Begin(0)), Some(Mark::End(3))));
        let last = 2 * SESSIONS_MAX as u64;
        assert_eq!((at(last), at(last + 1)), (Some(Mark::Count), None));
        assert_eq!(mark_at(4096, 4095), None);
    }
}
