//! A disk whose log can be held: what is to become durable waits until it is released. A copy of it is
//! what a power cut at that moment would leave. Or the log fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use onrush_files::{Disk, DiskError, DiskErrorKind, DiskFile, DiskLayer, FileLayer, MemoryDisk};

#[derive(Clone, Debug, Default)]
pub struct HeldDisk {
    memory: MemoryDisk,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_held: Mutex<bool>,
    released: Condvar,
    fails: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        let held = self.is_held.lock().unwrap();
        drop(self.released.wait_while(held, |is_held| *is_held).unwrap());
    }
}

impl HeldDisk {
    /// From now on nothing of the log becomes durable.
    pub fn hold(&self) {
        *self.gate.is_held.lock().unwrap() = true;
    }

    /// From now on every write of the log fails.
    pub fn fail(&self) {
        self.gate.fails.store(true, Ordering::Release);
    }

    pub fn release(&self) {
        *self.gate.is_held.lock().unwrap() = false;
        self.gate.released.notify_all();
    }

    /// What is left when the power is cut now.
    pub fn after_a_power_cut(&self) -> MemoryDisk {
        self.memory.copy()
    }
}

/// A failed test must not leave its server waiting.
impl Drop for HeldDisk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.release();
        }
    }
}

impl DiskLayer for HeldDisk {
    fn below(&self) -> &dyn Disk {
        &self.memory
    }

    fn around(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(HeldFile { file, gate: Arc::clone(&self.gate) })
    }
}

#[derive(Debug)]
struct HeldFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl FileLayer for HeldFile {
    fn below(&self) -> &dyn DiskFile {
        &*self.file
    }

    fn write_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        self.gate.pass();
        if self.gate.fails.load(Ordering::Acquire) {
            return Err(DiskError::new(DiskErrorKind::Other, "write", self.file.path()));
        }
        self.file.write_at_durable(buffer, offset)
    }
}
