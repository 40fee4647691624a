//! The checkpoint, step by step as in the engine.

use std::sync::Arc;

use shuttle::thread::{self, ScopedJoinHandle};

use super::disk::{EntryOnDisk, Superblock};
use super::image::Image;
use super::imager::Imager;
use super::join::EmptyLeaf;
use super::leaf::LeafState;
use super::{BACKGROUND_PLACE, CLEAN, Engine, Epoch, Fault, Key, LeafId, Lsn};

/// Threads that write images.
const WRITERS: usize = 2;
/// Entries at which a segment is divided.
const SEGMENT_ENTRIES: usize = 2;

pub struct SegmentEntry {
    pub low: Key,
    pub image: Option<Arc<Image>>,
}

/// Owns a key range, and never changes.
pub struct Segment {
    low: Key,
    /// Keep the slots.
    _images: Vec<Arc<Image>>,
    on_disk: Vec<EntryOnDisk>,
}

impl Segment {
    pub fn write(entries: Vec<SegmentEntry>) -> Arc<Segment> {
        let image_on_disk = |image: &Arc<Image>| (image.slot(), image.checksum());
        let on_disk = entries
            .iter()
            .map(|entry| EntryOnDisk {
                low: entry.low,
                image: entry.image.as_ref().map(image_on_disk),
            })
            .collect();
        let low = entries[0].low;
        let images = entries.into_iter().filter_map(|entry| entry.image).collect();
        Arc::new(Segment { low, _images: images, on_disk })
    }
}

#[derive(Default)]
pub struct Directory {
    pub segments: Vec<Arc<Segment>>,
}

impl Directory {
    pub fn on_disk(&self) -> Vec<EntryOnDisk> {
        self.segments.iter().flat_map(|segment| segment.on_disk.clone()).collect()
    }
}

/// What the checkpoints carry from one to the next.
pub struct Checkpointer {
    checkpoint: u64,
    directory: Arc<Directory>,
    imagers: [Imager; WRITERS],
    changed: Vec<Key>,
}

impl Checkpointer {
    pub fn new(directory: Arc<Directory>) -> Checkpointer {
        let (imagers, changed) = (Default::default(), Vec::new());
        Checkpointer { checkpoint: 0, directory, imagers, changed }
    }

    pub fn directory(&self) -> Arc<Directory> {
        Arc::clone(&self.directory)
    }

    pub fn take(&mut self, engine: &Engine) {
        let (start, epoch) = begin(engine);
        let early_end = engine.planted(Fault::EBeforeWalk).then(|| engine.log.tail());
        self.drain(engine, epoch);
        let late_start = engine.planted(Fault::CAfterEpoch).then(|| engine.log.position());
        let start = late_start.unwrap_or(start);
        let directory = self.collect(engine);
        let end = early_end.unwrap_or_else(|| engine.log.tail());
        if !engine.planted(Fault::LogNotToE) {
            engine.log.wait_durable(end);
        }
        self.install(engine, directory, start, end);
    }

    /// Step 3 of a checkpoint: an image for every leaf that is dirty for an older epoch.
    fn drain(&mut self, engine: &Engine, epoch: Epoch) {
        loop {
            let listed = engine.dirty.take_before(epoch);
            if listed.is_empty() {
                return;
            }
            let (leaves, empty) = in_key_order(engine, listed);
            self.join_empty_leaves(engine, epoch, &empty);
            self.changed.extend(drain_leaves(engine, &mut self.imagers, epoch, &leaves));
            // A leaf that was split before its turn came has put its sibling on the same list.
            if engine.planted(Fault::ListsTakenOnce) {
                return;
            }
        }
    }

    fn join_empty_leaves(&mut self, engine: &Engine, epoch: Epoch, empty: &[EmptyLeaf]) {
        let before = if engine.planted(Fault::MergeImagedLate) { epoch } else { epoch - 1 };
        for leaf in empty {
            if let Some(neighbour) = engine.join_empty(*leaf, before) {
                self.changed.extend([neighbour, leaf.low]);
            }
        }
    }

    /// Step 4 of a checkpoint: the leaves of every segment that changed, by their fences. Where the first leaves of
    /// segments were joined to the last one before them, the range before ends late.
    fn collect(&self, engine: &Engine) -> Directory {
        let known = &self.directory.segments;
        let mut touched = vec![false; known.len()];
        for low in &self.changed {
            let index = known.partition_point(|segment| segment.low <= *low);
            touched[index.saturating_sub(1)] = true;
        }
        let mut segments = Vec::new();
        // Where the last range ends if it is beyond its segment; outer none: where that does.
        let mut beyond: Option<Option<Key>> = None;
        for (index, segment) in known.iter().enumerate() {
            if !touched[index] || engine.planted(Fault::SegmentNotRewritten) {
                assert!(beyond.is_none(), "the walk found leaves that do not meet");
                segments.push(Arc::clone(segment));
                continue;
            }
            let high = known.get(index + 1).map(|next| next.low);
            let low = match beyond {
                None => segment.low,
                Some(None) => continue,
                Some(Some(low)) if high.is_some_and(|high| high < low) => continue,
                Some(Some(low)) if high == Some(low) => {
                    beyond = None;
                    continue;
                }
                Some(Some(low)) => low,
            };
            let (entries, end) = leaves(engine, low, high);
            beyond = (high.is_some() && end != high).then_some(end);
            for entries in divided(entries) {
                segments.push(Segment::write(entries));
            }
        }
        assert!(beyond.is_none_or(|end| end.is_none()), "the walk found leaves that do not meet");
        Directory { segments }
    }

    /// Steps 6 and 7 of a checkpoint: data durable, then the superblock, then old slots and log are free.
    fn install(&mut self, engine: &Engine, directory: Directory, start: Lsn, end: Lsn) {
        self.checkpoint += 1;
        if !engine.planted(Fault::NoDataSync) {
            engine.disk.sync();
        }
        if engine.planted(Fault::FreeBeforeSuperblock) {
            self.directory = Arc::new(Directory::default());
        }
        let entries = directory.on_disk();
        let checkpoint = self.checkpoint;
        engine.disk.write_superblock(Superblock { checkpoint, start, end, entries });
        let recycle_to =
            if engine.planted(Fault::RecycleToE) { engine.log.position() } else { start };
        self.directory = Arc::new(directory);
        self.changed.clear();
        engine.log.recycle_below(recycle_to);
    }
}

/// Steps 1 and 2 of a checkpoint: C first, then the epoch.
fn begin(engine: &Engine) -> (Lsn, Epoch) {
    let epoch = engine.dirty.epoch() + 1;
    let start = engine.log.position();
    engine.dirty.start_epoch(epoch);
    (start, epoch)
}

/// Divides the leaves among the writers; returns the low fence of each.
fn drain_leaves(
    engine: &Engine,
    imagers: &mut [Imager; WRITERS],
    epoch: Epoch,
    leaves: &[LeafId],
) -> Vec<Key> {
    let part = leaves.len().div_ceil(WRITERS);
    thread::scope(|scope| {
        let run = |(imager, leaves)| scope.spawn(move || drain_part(engine, imager, epoch, leaves));
        let threads: Vec<_> = imagers.iter_mut().zip(leaves.chunks(part)).map(run).collect();
        let join = |thread: ScopedJoinHandle<'_, Vec<Key>>| thread.join().expect("it went well");
        threads.into_iter().flat_map(join).collect()
    })
}

fn drain_part(engine: &Engine, imager: &mut Imager, epoch: Epoch, leaves: &[LeafId]) -> Vec<Key> {
    let mut changed = Vec::new();
    for id in leaves {
        let mut leaf = engine.leaves.exclusive(*id);
        if leaf.is_dirty() && leaf.dirty_epoch < epoch {
            if leaf.is_known_empty() {
                leaf.image = None;
                leaf.dirty_epoch = CLEAN;
            } else {
                imager.capture(engine, *id, &mut leaf);
            }
        }
        if leaf.is_used {
            changed.push(leaf.low);
            if can_be_joined(&leaf) {
                engine.dirty.push(BACKGROUND_PLACE, epoch, *id);
            }
        }
        drop(leaf);
        if imager.is_full() {
            imager.write(engine);
        }
    }
    imager.write(engine);
    changed
}

/// The leaves in key order; and those of them that can be joined.
fn in_key_order(engine: &Engine, leaves: Vec<LeafId>) -> (Vec<LeafId>, Vec<EmptyLeaf>) {
    let mut empty = Vec::new();
    let mut keyed = Vec::new();
    for id in leaves {
        let leaf = engine.leaves.shared(id);
        keyed.push((leaf.low, id));
        if can_be_joined(&leaf) {
            empty.push(EmptyLeaf { low: leaf.low, id });
        }
    }
    keyed.sort_unstable();
    keyed.dedup();
    empty.sort_unstable_by_key(|leaf| leaf.low);
    empty.dedup_by_key(|leaf| leaf.id);
    (keyed.into_iter().map(|(_, id)| id).collect(), empty)
}

fn can_be_joined(leaf: &LeafState) -> bool {
    leaf.is_used && leaf.low > 0 && leaf.is_known_empty()
}

/// The leaves from `low` on and below `high`, each with a written image or none; and where the last
/// of them ends.
fn leaves(engine: &Engine, low: Key, high: Option<Key>) -> (Vec<SegmentEntry>, Option<Key>) {
    let mut entries = Vec::new();
    let mut at = low;
    loop {
        let latched = engine.latch_shared(at);
        assert_eq!(latched.low, at, "the walk found leaves that do not meet");
        let entry = SegmentEntry { low: at, image: latched.image.clone() };
        let next = match &entry.image {
            Some(image) if engine.planted(Fault::FencesOfImage) => image.high,
            _ => latched.high,
        };
        drop(latched);
        if let Some(image) = &entry.image
            && !engine.planted(Fault::WalkNoWait)
        {
            image.wait_written(&engine.image_writes);
        }
        entries.push(entry);
        match next {
            Some(next) if high.is_none_or(|high| next < high) => at = next,
            end => return (entries, end),
        }
    }
}

fn divided(mut entries: Vec<SegmentEntry>) -> Vec<Vec<SegmentEntry>> {
    let mut divided = Vec::new();
    while entries.len() > SEGMENT_ENTRIES * 3 / 2 {
        let rest = entries.split_off(SEGMENT_ENTRIES);
        divided.push(std::mem::replace(&mut entries, rest));
    }
    divided.push(entries);
    divided
}
