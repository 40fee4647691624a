//! Real threads, or those of the model checker: chosen here, once, by `cfg(loom)`.

#[cfg(loom)]
pub(crate) use loom::{
    cell::{ConstPtr, MutPtr, UnsafeCell},
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence},
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence},
    thread,
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

/// Where one thread sleeps until another one wakes it; a wake-up that comes first is kept.
#[cfg(not(loom))]
#[derive(Clone, Debug)]
pub(crate) struct Parker(std::thread::Thread);

#[cfg(not(loom))]
impl Parker {
    pub(crate) fn of_this_thread() -> Self {
        Self(std::thread::current())
    }

    /// Sleeps until woken, or for about `longest`; may also return for no reason. Only for the
    /// thread it is of.
    pub(crate) fn park(&self, longest: Option<std::time::Duration>) {
        longest.map_or_else(std::thread::park, std::thread::park_timeout);
    }

    pub(crate) fn unpark(&self) {
        self.0.unpark();
    }
}

/// The model's own parking forgets a wake-up of a thread that is waiting for a mutex just then, so
/// it has one made of a condition. The model has no time either: it sleeps until woken.
#[cfg(loom)]
#[derive(Clone, Debug)]
pub(crate) struct Parker(loom::sync::Arc<(loom::sync::Mutex<bool>, loom::sync::Condvar)>);

#[cfg(loom)]
impl Parker {
    pub(crate) fn of_this_thread() -> Self {
        let woken = loom::sync::Mutex::new(false);
        Self(loom::sync::Arc::new((woken, loom::sync::Condvar::new())))
    }

    pub(crate) fn park(&self, _longest: Option<std::time::Duration>) {
        let mut woken = self.0.0.lock().expect("a model ends with its first panic");
        while !*woken {
            woken = self.0.1.wait(woken).expect("a model ends with its first panic");
        }
        *woken = false;
    }

    pub(crate) fn unpark(&self) {
        *self.0.0.lock().expect("a model ends with its first panic") = true;
        self.0.1.notify_one();
    }
}
