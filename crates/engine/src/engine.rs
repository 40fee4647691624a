//! Everything that lives between open and close, as sessions know it. The layers below are each a struct that stands on
//! the next lower one: [`Store`], [`Relations`], [`Trees`], [`Storage`], [`Runtime`]. A function takes the lowest that
//! has what it needs.

use std::ops::Deref;
use std::sync::Arc;

use onrush_files::Disk;
use onrush_latch::Admission;
use onrush_waits::{Recorder, Registry};

use crate::catalog::Relations;
use crate::checkpoint::{Restored, Store};
use crate::memory::FramePool;
use crate::options::Options;
use crate::runtime::{Runtime, StopsWaiting};
use crate::space::Space;
use crate::status::{IntentResolver, TransactionStates};
use crate::storage::{ImageWrites, Ranges, Storage};
use crate::transaction::{IndexBuilds, OpenChanges, SerialOrder};
use crate::tree::Trees;
use crate::units::Epoch;

/// See the module.
pub(crate) struct Engine {
    store: Store,
    pub(crate) open_changes: OpenChanges,
    pub(crate) index_builds: IndexBuilds,
    pub(crate) serial_order: Arc<SerialOrder>,
    /// What a restore has noted; none in a database that was created.
    pub(crate) restored: Option<Restored>,
}

impl Deref for Engine {
    type Target = Store;

    #[inline]
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Engine {
    /// The number of the history that goes on in the database.
    pub(crate) fn history(&self) -> u128 {
        self.restored.map_or(self.database_id, |restored| restored.history)
    }
}

impl AsRef<Storage> for Engine {
    fn as_ref(&self) -> &Storage {
        self
    }
}

/// What an engine is made of; the rest starts empty.
pub(crate) struct Parts {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database_id: u128,
    pub(crate) registry: Arc<Registry>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) admission: Admission,
    pub(crate) frames: FramePool,
    pub(crate) space: Arc<Space>,
    pub(crate) epoch: Epoch,
    pub(crate) restored: Option<Restored>,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Engine {
        let Parts {
            options,
            disk,
            database_id,
            registry,
            recorder,
            admission,
            frames,
            space,
            epoch,
            restored,
        } = parts;
        let open_changes = OpenChanges::new(options.open_transactions_bytes);
        let image_writes = Arc::new(ImageWrites::default());
        let ranges = Arc::new(Ranges::default());
        let transactions = Arc::new(TransactionStates::new());
        let waiting: Vec<Arc<dyn StopsWaiting>> = vec![
            Arc::clone(&transactions) as _,
            Arc::clone(&image_writes) as _,
            Arc::clone(&ranges) as _,
        ];
        let recorders = (registry, recorder);
        let runtime = Runtime::new(options, disk, database_id, recorders, admission, waiting);
        let storage = Storage::new(runtime, (image_writes, ranges), frames, space, epoch);
        let trees = Trees::new(storage, IntentResolver::new(transactions));
        Engine {
            store: Store::new(Relations::new(trees)),
            open_changes,
            index_builds: IndexBuilds::default(),
            serial_order: Arc::default(),
            restored,
        }
    }
}
