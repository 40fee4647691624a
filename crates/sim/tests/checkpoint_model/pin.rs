//! A checkpoint that is kept as it is while later ones are taken: for an online check or a backup.

use std::sync::Arc;

use shuttle::sync::Mutex;

use super::checkpoint::{Checkpointer, Directory};
use super::disk::{Superblock, expected, redo_all};
use super::log::LogHold;
use super::{Engine, Fault, Lsn};

/// The checkpointer's place in the engine; held for a whole checkpoint.
pub type CheckpointerCell = Mutex<Checkpointer>;

pub struct Pin<'a> {
    /// Keeps the slots.
    _directory: Arc<Directory>,
    log: Option<LogHold<'a>>,
    superblock: Superblock,
    durable: Lsn,
}

impl Pin<'_> {
    pub fn take<'a>(engine: &'a Engine, cell: &CheckpointerCell) -> Pin<'a> {
        engine.log.wait_durable(engine.log.tail());
        let checkpointer = cell.lock().expect("no checkpoint panics");
        let superblock = engine.disk.superblock();
        let directory = if engine.planted(Fault::PinKeepsNoSlots) {
            Arc::default()
        } else {
            checkpointer.directory()
        };
        let hold = !engine.planted(Fault::PinHoldsNoLog);
        Pin {
            _directory: directory,
            log: hold.then(|| engine.log.hold(superblock.start)),
            superblock,
            durable: engine.log.durable(),
        }
    }

    /// Log first, then the images, each at its own moment: they must be what they were.
    pub fn check(mut self, engine: &Engine) {
        let Superblock { checkpoint, start, end, .. } = self.superblock;
        let what = format!("pinned checkpoint {checkpoint}, C {start}, E {end}");
        assert!(end <= self.durable, "what is pinned is not durable to E: {what}");
        let records = engine.disk.read_log(start, self.durable, &what);
        drop(self.log.take());
        let read = |slot| engine.disk.read(slot);
        let leaves = engine.disk.load_directory(&self.superblock.entries, read, &what);
        let found = redo_all(leaves, records);
        assert_eq!(found, expected(&engine.disk.history, self.durable), "{what}");
    }
}
