//! Keeps what checkpoints, flushes and compactions write from standing between the log and its device.
//!
//! A write of the log is durable once the device has emptied its cache, and a cache takes images faster than it is
//! emptied: behind two gigabytes of them each round of the log took 100 ms and more. So their writers
//! sync what they have written every few mebibytes. That is as long as a round has to wait for them.
//!
//! Invariant: between two syncs writers put no more than [`UNSYNCED_BYTES_MAX`] into the device's cache, and one batch
//! each. Not while the database closes: then no commit waits.

use std::sync::atomic::{AtomicU64, Ordering};

use onrush_waits::{Recorder, Wait};
use parking_lot::Mutex;

use super::Storage;
use crate::error::Result;

/// At a gigabyte a second a device takes it in 8 ms, less than the window of delayed commits.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

/// See the module. One for each write-back, and one for all flushes and compactions.
#[derive(Default)]
pub(crate) struct Pace {
    unsynced_bytes: AtomicU64,
    /// Held by the writer that syncs; the others wait for it.
    syncing: Mutex<()>,
}

impl Pace {
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
        self.unsynced_bytes.load(Ordering::Relaxed) >= UNSYNCED_BYTES_MAX
    }
}
