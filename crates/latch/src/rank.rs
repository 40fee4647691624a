//! The order in which a thread takes latches, checked where debug assertions are on.
//!
//! A thread waits only for ranks above all that it holds; so no circle of threads can wait for one
//! another. The first time that code breaks the order it panics, whether or not anybody was in its
//! way. In release builds nothing is left of the check.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use onrush_waits::{LatchClass, Recorder, Spun};

/// The order: a thread that holds one may wait for a later one, never for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LatchRank {
    /// Tables and columns.
    Catalog,
    /// The shape of one tree.
    TreeStructure,
    /// The rows of a leaf. A thread may hold several: it takes them from low keys to high ones.
    Leaf,
    /// An inner node.
    Inner,
    /// A generator of default keys (a strict sequence draws under the latch of the edge leaf).
    KeyGenerator,
    /// The table from leaves to their memory.
    FrameTable,
    /// The state of a transaction.
    Transaction,
    /// Previous row versions.
    Versions,
    /// The right to write the log.
    LogWriter,
}

impl LatchRank {
    /// The rank of the latches of a class.
    pub const fn of(class: LatchClass) -> Self {
        match class {
            LatchClass::Catalog => Self::Catalog,
            LatchClass::TreeStructure => Self::TreeStructure,
            LatchClass::Leaf => Self::Leaf,
            LatchClass::Inner => Self::Inner,
            LatchClass::KeyGenerator => Self::KeyGenerator,
            LatchClass::FrameTable => Self::FrameTable,
            LatchClass::Transaction => Self::Transaction,
            LatchClass::Versions => Self::Versions,
            LatchClass::LogWriter => Self::LogWriter,
        }
    }
}

/// The model checker runs all its threads on one: there the check would mix them up.
#[cfg(all(debug_assertions, not(loom)))]
mod check {
    use std::cell::RefCell;

    use super::LatchRank;

    thread_local! {
        static HELD: RefCell<Vec<LatchRank>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn enter(rank: LatchRank) {
        HELD.with_borrow_mut(|held| {
            if let Some(highest) = held.iter().max() {
                let in_order = rank > *highest || (rank == *highest && rank == LatchRank::Leaf);
                assert!(in_order, "latch order: {rank:?} asked for while {highest:?} is held");
            }
            held.push(rank);
        });
    }

    pub(super) fn note(rank: LatchRank) {
        HELD.with_borrow_mut(|held| held.push(rank));
    }

    pub(super) fn leave(rank: LatchRank) {
        HELD.with_borrow_mut(|held| {
            if let Some(place) = held.iter().rposition(|other| *other == rank) {
                held.swap_remove(place);
            }
        });
    }
}

/// A rank that this thread holds, until dropped. Nothing at all where the check is off.
///
/// For locks that are not in this crate: make one before waiting for the lock, and keep it as long
/// as the lock.
#[derive(Debug)]
pub struct Held {
    #[cfg(all(debug_assertions, not(loom)))]
    rank: Option<LatchRank>,
    same_thread: PhantomData<*const ()>,
}

impl Held {
    /// The thread is about to wait for a latch of this rank. Panics, where the check is on, if that
    /// is out of order.
    #[inline]
    pub fn enter(rank: LatchRank) -> Self {
        #[cfg(all(debug_assertions, not(loom)))]
        {
            check::enter(rank);
            Self { rank: Some(rank), same_thread: PhantomData }
        }
        #[cfg(not(all(debug_assertions, not(loom))))]
        {
            let _ = rank;
            Self { same_thread: PhantomData }
        }
    }

    /// The thread holds a latch of this rank without having waited for it, which is allowed in any
    /// order.
    pub(crate) fn note(rank: LatchRank) -> Self {
        #[cfg(all(debug_assertions, not(loom)))]
        {
            check::note(rank);
            Self { rank: Some(rank), same_thread: PhantomData }
        }
        #[cfg(not(all(debug_assertions, not(loom))))]
        {
            let _ = rank;
            Self { same_thread: PhantomData }
        }
    }

    /// The thread holds a latch whose rank it did not say.
    #[inline]
    pub(crate) fn unknown() -> Self {
        Self {
            #[cfg(all(debug_assertions, not(loom)))]
            rank: None,
            same_thread: PhantomData,
        }
    }
}

#[cfg(all(debug_assertions, not(loom)))]
impl Drop for Held {
    fn drop(&mut self) {
        if let Some(rank) = self.rank {
            check::leave(rank);
        }
    }
}

/// A mutex with a place in the order, whose waits are counted. For what is held briefly but too
/// long to spin for.
pub struct RankedMutex<T> {
    class: LatchClass,
    mutex: parking_lot::Mutex<T>,
}

impl<T> RankedMutex<T> {
    /// A free mutex around `value`. Its rank is that of its class.
    pub fn new(class: LatchClass, value: T) -> Self {
        Self { class, mutex: parking_lot::Mutex::new(value) }
    }

    /// Waits until nobody else holds it.
    #[inline]
    pub fn lock(&self, recorder: &Recorder) -> RankedMutexGuard<'_, T> {
        let held = Held::enter(LatchRank::of(self.class));
        RankedMutexGuard { guard: lock_counted(&self.mutex, recorder, self.class), _held: held }
    }

    /// As [`RankedMutex::lock`], but a wait is counted nowhere: for code that belongs to no session
    /// or thread of the database, such as a drop.
    pub fn lock_uncounted(&self) -> RankedMutexGuard<'_, T> {
        let held = Held::enter(LatchRank::of(self.class));
        RankedMutexGuard { guard: self.mutex.lock(), _held: held }
    }

    /// The guard if nobody holds it; does not wait, and so may be called in any order.
    pub fn try_lock(&self) -> Option<RankedMutexGuard<'_, T>> {
        let guard = self.mutex.try_lock()?;
        Some(RankedMutexGuard { guard, _held: Held::note(LatchRank::of(self.class)) })
    }

    /// The data, without locking: `&mut self` shows that nobody holds a guard.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut()
    }

    /// The data, at the end of the mutex.
    pub fn into_inner(self) -> T {
        self.mutex.into_inner()
    }
}

/// Locks a mutex that has no rank, and counts the request and the wait as those of a latch of this
/// class.
#[inline]
pub fn lock_counted<'m, T>(
    mutex: &'m parking_lot::Mutex<T>,
    recorder: &Recorder,
    class: LatchClass,
) -> parking_lot::MutexGuard<'m, T> {
    recorder.latch_requests(class, 1);
    match mutex.try_lock() {
        Some(guard) => guard,
        None => wait_for(mutex, recorder, class),
    }
}

#[cold]
fn wait_for<'m, T>(
    mutex: &'m parking_lot::Mutex<T>,
    recorder: &Recorder,
    class: LatchClass,
) -> parking_lot::MutexGuard<'m, T> {
    let started = std::time::Instant::now();
    let waiting = recorder.wait(class.exclusive_wait());
    let guard = mutex.lock();
    drop(waiting);
    let spun = Spun { spins: 1, ..Spun::default() };
    recorder.latch_wait(class, started.elapsed(), spun);
    guard
}

impl<T: fmt::Debug> fmt::Debug for RankedMutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mutex.fmt(formatter)
    }
}

/// Sole access to what is in a [`RankedMutex`], until dropped.
#[must_use = "the mutex is let go as soon as the guard is dropped"]
#[derive(Debug)]
pub struct RankedMutexGuard<'a, T> {
    guard: parking_lot::MutexGuard<'a, T>, // let go before the rank: dropped in this order
    _held: Held,
}

impl<T> Deref for RankedMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
