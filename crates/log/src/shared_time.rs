//! A time in microseconds that threads share, if there is one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{self, AcqRel, Relaxed, Release};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SharedTime(AtomicU64); // 0: none, as no clock here is ever 0

fn some_time(micros: u64) -> Option<u64> {
    (micros != 0).then_some(micros)
}

impl SharedTime {
    pub(crate) fn new(micros: Option<u64>) -> SharedTime {
        SharedTime(AtomicU64::new(micros.unwrap_or(0)))
    }

    #[inline]
    pub(crate) fn get(&self, order: Ordering) -> Option<u64> {
        some_time(self.0.load(order))
    }

    pub(crate) fn set(&self, micros: Option<u64>) {
        self.0.store(micros.unwrap_or(0), Release);
    }

    pub(crate) fn take(&self) -> Option<u64> {
        some_time(self.0.swap(0, AcqRel))
    }

    /// Sets the time if there is none; whether that was so.
    pub(crate) fn set_first(&self, micros: u64) -> bool {
        self.0.compare_exchange(0, micros, AcqRel, Relaxed).is_ok()
    }

    /// Sets the time, unless there is a later one.
    pub(crate) fn raise(&self, micros: u64) {
        self.0.fetch_max(micros, AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_time_before_the_first_and_after_it_was_taken() {
        let time = SharedTime::new(None);
        assert_eq!(time.get(Relaxed), None);
        assert!(time.set_first(5));
        assert!(!time.set_first(6));
        time.raise(4);
        assert_eq!(time.get(Relaxed), Some(5));
        time.raise(7);
        assert_eq!(time.take(), Some(7));
        assert_eq!(time.take(), None);
    }
}
