//! Real threads, or those of the model checker: chosen here, once, by `cfg(loom)`.

#[cfg(loom)]
pub(crate) use loom::{
    cell::{ConstPtr, MutPtr, UnsafeCell},
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence},
    thread::{self, Thread},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence},
    thread::{self, Thread},
};

#[cfg(not(loom))]
pub(crate) use cell::{ConstPtr, MutPtr, UnsafeCell};

/// The model checker's cell, for real threads: its pointers say for how long the data is used.
#[cfg(not(loom))]
mod cell {
    #[derive(Debug, Default)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[derive(Debug)]
    pub(crate) struct ConstPtr<T>(*const T);

    #[derive(Debug)]
    pub(crate) struct MutPtr<T>(*mut T);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn get(&self) -> ConstPtr<T> {
            ConstPtr(self.0.get())
        }

        #[inline]
        pub(crate) fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T> ConstPtr<T> {
        /// # Safety
        /// Nobody changes the data, and it stays where it is, as long as the reference lives.
        #[inline]
        pub(crate) unsafe fn deref(&self) -> &T {
            // SAFETY: the caller's promise; tests/loom_latch.rs checks the guards that call this.
            unsafe { &*self.0 }
        }
    }

    impl<T> MutPtr<T> {
        /// # Safety
        /// Nobody else uses the data, and it stays where it is, as long as the reference lives.
        #[inline]
        #[expect(clippy::mut_from_ref, reason = "as in the model checker's own type")]
        pub(crate) unsafe fn deref(&self) -> &mut T {
            // SAFETY: the caller's promise; tests/loom_latch.rs checks the guards that call this.
            unsafe { &mut *self.0 }
        }
    }
}

/// A mutex without poisoning.
#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;

/// A mutex without poisoning.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("a model ends with its first panic")
    }
}

/// Lets a moment pass without giving up the processor.
#[inline]
pub(crate) fn pause(times: u32) {
    #[cfg(loom)]
    {
        let _ = times;
        loom::thread::yield_now();
    }
    #[cfg(not(loom))]
    for _ in 0..times {
        std::hint::spin_loop();
    }
}

/// Sleeps about that long. The model has no time: somebody else runs.
pub(crate) fn sleep(time: std::time::Duration) {
    #[cfg(loom)]
    {
        let _ = time;
        loom::thread::yield_now();
    }
    #[cfg(not(loom))]
    std::thread::sleep(time);
}

/// Parks for about that long at most. The model has no time: it parks until it is woken.
pub(crate) fn park_timeout(time: std::time::Duration) {
    #[cfg(loom)]
    {
        let _ = time;
        loom::thread::park();
    }
    #[cfg(not(loom))]
    std::thread::park_timeout(time);
}
