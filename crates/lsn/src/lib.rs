//! [`Lsn`]: a byte position in the log, apart from all other numbers. [`AtomicLsn`], [`LatestLsn`]: ones that threads
//! share.
//!
//! A crate of its own, because the log, the check and the backup speak of the same positions, and the check
//! shares no code with the log.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::sync::atomic::Ordering;

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

/// A byte position in the stream of records. It is also the transaction id and the commit order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Below every record: nothing has this LSN.
    pub const ZERO: Self = Self(0);
    /// The LSN of the first record of a new log.
    pub const FIRST: Self = Self(1);
    /// Above every record: no log grows so long.
    pub const MAX: Self = Self(u64::MAX);

    /// The LSN in the 8 bytes, little-endian, that [`Lsn::to_le_bytes`] made.
    #[must_use]
    pub const fn from_le_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }

    /// The LSN as 8 bytes, little-endian.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Bytes from `earlier` to here; 0 if `earlier` is the later one.
    #[must_use]
    pub const fn bytes_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Lsn {
    type Output = Self;

    #[inline]
    fn add(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl AddAssign<u64> for Lsn {
    #[inline]
    fn add_assign(&mut self, bytes: u64) {
        self.0 += bytes;
    }
}

impl Sub for Lsn {
    type Output = u64;

    /// Bytes from `earlier` to here. That it is earlier is known; else [`Lsn::bytes_since`].
    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

impl Sub<u64> for Lsn {
    type Output = Self;

    #[inline]
    fn sub(self, bytes: u64) -> Self {
        Self(self.0 - bytes)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// An [`Lsn`] that threads share; under the model checker one of its own atomics.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicLsn(AtomicU64);

impl AtomicLsn {
    /// An atomic that holds `lsn`.
    #[must_use]
    pub fn new(lsn: Lsn) -> Self {
        Self(AtomicU64::new(lsn.0))
    }

    /// As [`std::sync::atomic::AtomicU64::load`].
    #[inline]
    #[must_use]
    pub fn load(&self, order: Ordering) -> Lsn {
        Lsn(self.0.load(order))
    }

    /// As [`std::sync::atomic::AtomicU64::store`].
    #[inline]
    pub fn store(&self, lsn: Lsn, order: Ordering) {
        self.0.store(lsn.0, order);
    }

    /// Goes `bytes` further; returns where it was.
    #[inline]
    pub fn fetch_add(&self, bytes: u64, order: Ordering) -> Lsn {
        Lsn(self.0.fetch_add(bytes, order))
    }

    /// Goes to `lsn` unless it is there or further; returns where it was.
    #[inline]
    pub fn fetch_max(&self, lsn: Lsn, order: Ordering) -> Lsn {
        Lsn(self.0.fetch_max(lsn.0, order))
    }
}

impl Default for AtomicLsn {
    /// [`Lsn::ZERO`].
    fn default() -> Self {
        Self::new(Lsn::ZERO)
    }
}

/// An [`Lsn`] that threads share, once there is one.
#[derive(Debug, Default)]
pub struct LatestLsn(AtomicLsn);

impl LatestLsn {
    /// The highest so far; none if there was none.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<Lsn> {
        Some(self.0.load(Ordering::Acquire)).filter(|lsn| *lsn != Lsn::ZERO)
    }

    /// Goes to `lsn` unless it is there or further.
    #[inline]
    pub fn advance(&self, lsn: Lsn) {
        self.0.fetch_max(lsn, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_between_two_lsns() {
        let start = Lsn::FIRST;
        let end = start + 20;
        assert_eq!((end - start, end - 20), (20, start));
        assert_eq!((end.bytes_since(start), start.bytes_since(end)), (20, 0));
    }

    #[test]
    fn an_lsn_comes_back_from_its_bytes() {
        let lsn = Lsn(0x0102_0304_0506_0708);
        assert_eq!(lsn.to_le_bytes(), [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(Lsn::from_le_bytes(lsn.to_le_bytes()), lsn);
    }

    #[test]
    fn the_maximum_never_takes_an_atomic_back() {
        let reached = AtomicLsn::new(Lsn(10));
        assert_eq!(reached.fetch_max(Lsn(7), Ordering::Relaxed), Lsn(10));
        assert_eq!(reached.fetch_add(5, Ordering::Relaxed), Lsn(10));
        assert_eq!(reached.load(Ordering::Relaxed), Lsn(15));
    }
}
