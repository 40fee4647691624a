//! Keeps what checkpoints, flushes and compactions write from standing between the log and its device.
//!
//! A write of the log is durable once the device has emptied its cache, and a cache takes images faster than it is
//! emptied: behind two gigabytes of them each round of the log took 100 ms and more. So their writers
//! sync what they have written every few mebibytes. That is as long as a round has to wait for them.
//!
//! Invariant: between two syncs writers put no more than so many bytes into the device's cache, and one batch
//! each. Not while the database closes: then no commit waits.

use std::sync::atomic::{AtomicU64, Ordering};

use onrush_waits::{Recorder, Wait};
use parking_lot::Mutex;

use super::Storage;
use crate::error::Result;

/// Of a write-back, which writes as fast as the device takes it: at a gigabyte a second that is 8 ms, less than the
/// window of delayed commits.
const WRITE_BACK_BYTES_MAX: u64 = 8 << 20;
/// Of flushes and compactions, which write no faster than rows come. A sync costs a device that has little to write
/// as much as one that has much: with 8 MiB one wrote 147 MB/s, with 32 MiB 372 MB/s.
const RUN_BYTES_MAX: u64 = 64 << 20;

/// See the module. One for each write-back, and one for all flushes and compactions.
pub(crate) struct Pace {
    unsynced_bytes_max: u64,
    unsynced_bytes: AtomicU64,
    /// Held by the writer that syncs; the others wait for it.
    syncing: Mutex<()>,
}

impl Pace {
    pub(crate) fn of_write_back() -> Pace {
        Pace::with(WRITE_BACK_BYTES_MAX)
    }

    pub(super) fn of_runs() -> Pace {
        Pace::with(RUN_BYTES_MAX)
    }

    fn with(unsynced_bytes_max: u64) -> Pace {
        Pace { unsynced_bytes_max, unsynced_bytes: AtomicU64::new(0), syncing: Mutex::new(()) }
    }

    /// A writer has written so many bytes of images.
    ///
    /// # Errors
    /// A failed sync: the engine stops.
    pub(crate) fn wrote(&self, storage: &Storage, recorder: &Recorder, bytes: u64) -> Result<()> {
        self.unsynced_bytes.fetch_add(bytes, Ordering::Relaxed);
        if !self.is_due() || storage.is_closing() {
            return Ok(());
        }
        let _wait = recorder.wait(Wait::DataSync);
        let _one = self.syncing.lock();
        // Another writer's sync may have been enough.
        if self.is_due() {
            let bytes = self.unsynced_bytes.load(Ordering::Relaxed);
            storage.space.files().sync().map_err(|error| storage.stop(error))?;
            self.unsynced_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn is_due(&self) -> bool {
        self.unsynced_bytes.load(Ordering::Relaxed) >= self.unsynced_bytes_max
    }
}
