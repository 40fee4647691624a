//! Real threads, or those of the model checker: chosen here, once, by `cfg(loom)`.
//!
//! Only [`crate::prefix`] and [`crate::group`] are modelled, so only they take their atomics from
//! here.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};

/// A word that threads can sleep on until it changes.
///
/// A wake without a change of the value can be missed by a thread on its way to sleep: change the
/// value first.
#[derive(Debug)]
pub(crate) struct FutexWord {
    pub(crate) value: AtomicU32,
    #[cfg(loom)]
    sleepers: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl FutexWord {
    pub(crate) fn new(value: u32) -> Self {
        Self {
            value: AtomicU32::new(value),
            #[cfg(loom)]
            sleepers: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
        }
    }

    /// Sleeps if the value is still `seen`; may return for no reason.
    pub(crate) fn sleep_while(&self, seen: u32) {
        #[cfg(not(loom))]
        atomic_wait::wait(&self.value, seen);
        #[cfg(loom)]
        {
            let guard = self.sleepers.0.lock().expect("a model ends with its first panic");
            if self.value.load(std::sync::atomic::Ordering::Relaxed) == seen {
                drop(self.sleepers.1.wait(guard));
            }
        }
    }

    /// Wakes one sleeper.
    pub(crate) fn wake_one(&self) {
        #[cfg(not(loom))]
        atomic_wait::wake_one(&self.value);
        #[cfg(loom)]
        {
            drop(self.sleepers.0.lock());
            self.sleepers.1.notify_one();
        }
    }

    /// Wakes every sleeper.
    pub(crate) fn wake_all(&self) {
        #[cfg(not(loom))]
        atomic_wait::wake_all(&self.value);
        #[cfg(loom)]
        {
            drop(self.sleepers.0.lock());
            self.sleepers.1.notify_all();
        }
    }
}
