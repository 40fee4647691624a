//! What a thread holds while it holds a latch. The guard's type is the access mode.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::latch::Latch;
use crate::rank::Held;
use crate::sync::{ConstPtr, MutPtr};

/// Read access to what is behind a latch, until dropped.
#[must_use = "the latch is let go as soon as the guard is dropped"]
pub struct SharedGuard<'a, T> {
    data: ConstPtr<T>, // given back before the hold: fields are dropped in this order
    _hold: SharedHold<'a, T>,
    _held: Held,
}

struct SharedHold<'a, T>(&'a Latch<T>);

impl<T> Drop for SharedHold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.release_shared();
    }
}

impl<'a, T> SharedGuard<'a, T> {
    /// The caller has just acquired `latch` shared.
    #[inline]
    pub(crate) fn new(latch: &'a Latch<T>, held: Held) -> Self {
        Self { data: latch.data().get(), _hold: SharedHold(latch), _held: held }
    }
}

impl<T> Deref for SharedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the latch is held shared, so nobody changes the data; it is borrowed, so it stays
        // where it is. Checked by tests/loom_latch.rs.
        unsafe { self.data.deref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

/// Sole access to what is behind a latch, until dropped. A panic meanwhile leaves the latch
/// poisoned.
#[must_use = "the latch is let go as soon as the guard is dropped"]
pub struct ExclusiveGuard<'a, T> {
    data: MutPtr<T>, // given back before the hold: fields are dropped in this order
    _hold: ExclusiveHold<'a, T>,
    _held: Held,
}

struct ExclusiveHold<'a, T> {
    latch: &'a Latch<T>,
    was_panicking: bool, // acquired while unwinding: that panic says nothing about this data
}

impl<T> Drop for ExclusiveHold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let poison = !self.was_panicking && std::thread::panicking();
        self.latch.release_exclusive(poison);
    }
}

impl<'a, T> ExclusiveGuard<'a, T> {
    /// The caller has just acquired `latch` exclusively.
    #[inline]
    pub(crate) fn new(latch: &'a Latch<T>, held: Held) -> Self {
        let hold = ExclusiveHold { latch, was_panicking: std::thread::panicking() };
        Self { data: latch.data().get_mut(), _hold: hold, _held: held }
    }
}

impl<T> Deref for ExclusiveGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the latch is held exclusively by this guard, and `&self` keeps `deref_mut` away.
        // Checked by tests/loom_latch.rs.
        unsafe { self.data.deref() }
    }
}

impl<T> DerefMut for ExclusiveGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the latch is held exclusively by this guard, and `&mut self` is the only way in.
        // Checked by tests/loom_latch.rs.
        unsafe { self.data.deref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for ExclusiveGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}
