//! A miniature of the engine: the steps of writers, transactions, evictor and checkpoint with the
//! names and in the order of the code, over shuttle's locks and atomics and a disk that can be cut
//! off after each call.
//!
//! Which file stands for which: a change of the order of steps there belongs here, too.
//!
//! | here | in `crates/engine/src` |
//! |---|---|
//! | `mod.rs` [`Fault`] | `fault.rs`, the faults of the same names |
//! | `leaf.rs` | `storage/leaf.rs`, `node/leaf.rs`, `storage/load.rs` |
//! | `image.rs` | `storage/image.rs`, `space/slots.rs` |
//! | `dirty.rs` | `storage/dirty.rs` |
//! | `imager.rs` | `storage/imager.rs`, `storage/evict.rs` |
//! | `tree.rs` | `tree/tree.rs`, `tree/write.rs`, `tree/split.rs` |
//! | `merge.rs` | `tree/merge.rs` |
//! | `transaction.rs` | `tree/intent.rs`, `session/commit.rs`, `status/states.rs` |
//! | `checkpoint.rs` | `checkpoint/mod.rs`, `checkpoint/drain.rs`, `checkpoint/walk.rs` |
//! | `pin.rs` | `checkpoint/pin.rs`, `online/mod.rs` |
//! | `log.rs` | `crates/log/src/{pool,prefix,ring,wait,writer}.rs` |
//! | `disk.rs` | `recovery/`, and the crash disk of this crate |
//!
//! What is smaller than in the engine: an LSN counts records, a leaf holds three rows, inner nodes
//! are one map, an image is one value that is there or not, the directory lies in the superblock.
//! What is missing: full disks, groups under held latches (`tree/group.rs`), old versions, DDL,
//! weak memory orders (loom has those) and a second life after the crash.

pub mod checkpoint;
pub mod dirty;
pub mod disk;
pub mod image;
pub mod imager;
pub mod join;
pub mod leaf;
pub mod log;
pub mod pin;
pub mod transaction;
pub mod tree;

use std::sync::{Arc, MutexGuard, PoisonError};

use checkpoint::{Directory, Segment, SegmentEntry};
use dirty::DirtyLists;
use disk::{Disk, Page, Superblock};
use image::{Image, ImageWrites, Space};
use leaf::{Entry, Leaves, Stamp};
use log::{History, Log, Record};
use transaction::TransactionStates;
use tree::Tree;

pub type Key = u8;
pub type Value = u32;
pub type Lsn = u64;
pub type Epoch = u64;
pub type LeafId = usize;

/// The epoch of a clean leaf.
pub const CLEAN: Epoch = 0;

/// A trap that a test re-introduces; the names and places are those of the engine's `fault.rs`,
/// where it has the trap too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    CAfterEpoch,
    EBeforeWalk,
    LogNotToE,
    FreeBeforeSuperblock,
    NoDataSync,
    WalkNoWait,
    SplitNoEpoch,
    SplitNoShare,
    CleanWithIntent,
    IntentImaged,
    NoTrim,
    RecycleToE,
    DirtyNoList,
    SegmentNotRewritten,
    ParityLists,
    DropUnwritten,
    PinKeepsNoSlots,
    PinHoldsNoLog,
    MergeKeepsImage,
    MergeImagedLate,
    /// A leaf is joined of which the inner nodes do not know yet.
    JoinUnknownLeaf,
    /// The drain takes the lists once, and misses the sibling of a leaf that was split before its
    /// turn came.
    ListsTakenOnce,
    /// Here only: a transaction reserves its LSN before its intents stand.
    GroupReservedFirst,
    /// Here only: a slot is free again while its image is still being written.
    WriterKeepsNoSlot,
    /// Here only: the walk goes by the fences that leaves had when they were imaged.
    FencesOfImage,
}

/// What all threads share.
pub struct Engine {
    fault: Fault,
    pub log: Log,
    pub disk: Arc<Disk>,
    space: Arc<Space>,
    leaves: Leaves,
    tree: Tree,
    dirty: DirtyLists,
    image_writes: ImageWrites,
    transactions: TransactionStates,
}

/// Places inside the engine: each has a mark in the log and a shard of the dirty lists. The last
/// is for checkpoint and evictor.
pub const PLACES: usize = 4;
const BACKGROUND_PLACE: usize = PLACES - 1;

impl Engine {
    /// An engine that was checkpointed with the rows of `leaves`: for each leaf its low fence and
    /// its keys. Each leaf is a segment of its own.
    pub fn checkpointed(fault: Fault, leaves: &[(Key, &[Key])]) -> (Arc<Engine>, Arc<Directory>) {
        let history = History::default();
        let space = Space::new();
        let engine_leaves = Leaves::new();
        let (mut pages, mut segments, mut lows) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (low, keys)) in leaves.iter().enumerate() {
            let id = engine_leaves.add();
            let mut leaf = engine_leaves.exclusive(id);
            leaf.is_used = true;
            leaf.low = *low;
            leaf.high = leaves.get(index + 1).map(|next| next.0);
            leaf.next = leaf.high.map(|_| id + 1);
            let mut rows = Vec::new();
            for key in *keys {
                let value = Value::from(*key);
                let lsn = history.push(Record { changes: vec![(*key, Some(value))] });
                rows.push(Entry { stamp: Stamp::Committed(lsn), key: *key, value });
            }
            let page = Page::new(&leaf, rows.clone());
            let image = Image::standing(space.allocate(), leaf.high, page.checksum);
            pages.push((image.slot(), page));
            leaf.rows = Some(rows);
            leaf.image = Some(Arc::clone(&image));
            lows.push((*low, id));
            segments.push(Segment::write(vec![SegmentEntry { low: *low, image: Some(image) }]));
        }
        let end = history.len();
        let directory = Arc::new(Directory { segments });
        let superblock =
            Superblock { checkpoint: 0, start: end, end, entries: directory.on_disk() };
        let disk = Arc::new(Disk::new(fault, history.clone(), pages, superblock));
        let engine = Engine {
            fault,
            log: Log::new(history, Arc::clone(&disk)),
            disk,
            space,
            leaves: engine_leaves,
            tree: Tree::new(&lows),
            dirty: DirtyLists::new(fault),
            image_writes: ImageWrites::default(),
            transactions: TransactionStates::new(),
        };
        (Arc::new(engine), directory)
    }

    fn planted(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

/// Locks what is no part of the schedule: held for one step, never while another thread may run.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
