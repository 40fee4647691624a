//! The log writer, the checkpoint, and what a crash leaves of them.

use std::collections::BTreeMap;

use super::plant::Plant;
use super::types::{Definition, Directory, LEAVES, Lsn, Object, SEGMENT, SYSTEM, TableId};
use super::world::{Shared, World};

/// Writes the log up to the completed prefix, then syncs it, while there are others.
pub(super) async fn write_log(shared: Shared) {
    loop {
        shared.until(|world| world.active == 0 || world.prefix() > world.durable).await;
        let written = shared.world().prefix();
        if written == shared.world().durable {
            return;
        }
        shared.world().prepare_segments(written);
        shared.step().await;
        shared.world().written = written;
        shared.step().await;
        shared.world().durable = written;
    }
}

impl World {
    /// Before a record is written into a segment the next one is there, so that the loss of one with records
    /// leaves a gap.
    fn prepare_segments(&mut self, written: Lsn) {
        let newest = written.saturating_sub(1) / SEGMENT;
        let ahead = if self.is_planted(Plant::SegmentNotPrepared) { 0 } else { 1 };
        self.segments_prepared = self.segments_prepared.max(newest + ahead);
    }
}

/// Takes checkpoints, one after the other.
pub(super) async fn checkpoints(shared: Shared, count: usize) {
    for _ in 0..count {
        let steps = shared.world().random.below(60);
        for _ in 0..steps {
            shared.step().await;
        }
        checkpoint(&shared).await;
    }
    shared.world().active -= 1;
}

async fn checkpoint(shared: &Shared) {
    let plant = shared.world().plant;
    let mut start = shared.world().prefix();
    shared.step().await;
    drain(shared).await;
    if plant == Plant::StartReadAfterDrain {
        start = shared.world().prefix();
    }
    let early_end = shared.world().tail();
    shared.step().await;
    let has_mutex = plant != Plant::ListedWithoutMutex;
    if has_mutex {
        shared.until(|world| !std::mem::replace(&mut world.definitions_mutex, true)).await;
    }
    let mut directory = shared.world().list(start);
    shared.step().await;
    directory.end = match plant {
        Plant::EndReadBeforeListing => early_end,
        _ => shared.world().tail(),
    };
    if has_mutex {
        shared.world().definitions_mutex = false;
        shared.step().await;
    }
    if plant == Plant::EndReadAfterListing {
        directory.end = shared.world().tail();
    }
    if plant == Plant::ImagesTakenAfterMutex {
        drain(shared).await;
        shared.world().collect_images(&mut directory);
    }
    if plant != Plant::LogNotDurableToEnd {
        shared.until_durable(directory.end).await;
    }
    shared.world().note(|| format!("checkpoint: install {directory:?}"));
    shared.world().installing = Some(directory.clone());
    shared.step().await;
    let mut world = shared.world();
    world.installing = None;
    world.installed = directory;
}

/// Images every dirty leaf of every object that is there by now.
async fn drain(shared: &Shared) {
    let objects: Vec<Object> = shared.world().trees.keys().copied().collect();
    for object in objects {
        for leaf in 0..LEAVES {
            shared.world().image(object, leaf);
            shared.step().await;
        }
    }
}

impl World {
    /// Copies the committed rows of a leaf.
    fn image(&mut self, object: Object, leaf: usize) {
        self.fold(object, leaf);
        let is_planted = self.is_planted(Plant::CleanWithIntent);
        let Some(tree) = self.trees.get_mut(&object) else { return };
        let leaf = &mut tree[leaf];
        if !leaf.is_dirty {
            return;
        }
        leaf.image = leaf.cells.iter().filter_map(|(key, cell)| Some((*key, cell.row?))).collect();
        let has_intent = leaf.cells.values().any(|cell| cell.intent.is_some());
        leaf.is_dirty = has_intent && !is_planted;
    }

    /// What the directory holds of the catalogue, counters included.
    fn list(&mut self, start: Lsn) -> Directory {
        let has_counters = !self.is_planted(Plant::CounterNotInDirectory);
        let reserved = |id: &TableId| self.counters.get(id).map_or(0, |counter| counter.reserved);
        let table = |definition: &Definition| {
            let counter = if has_counters { reserved(&definition.id) } else { 0 };
            (definition.id, (*definition, counter))
        };
        let tables = self.catalogue.values().map(table).collect();
        let (images, next_id) = (BTreeMap::new(), self.next_id);
        let mut directory = Directory { start, end: start, tables, images, next_id };
        self.collect_images(&mut directory);
        directory
    }

    fn collect_images(&self, directory: &mut Directory) {
        let listed = directory.tables.values().map(|(definition, _)| definition.object);
        for object in listed.chain([SYSTEM]).collect::<Vec<_>>() {
            let leaves = self.trees.get(&object).into_iter().flatten();
            let rows = leaves.flat_map(|leaf| leaf.image.clone()).collect();
            directory.images.insert(object, rows);
        }
    }

    /// What a loss of power now leaves: one of the directories, and the log up to a block's end.
    pub(super) fn crash(&mut self) -> (Directory, Lsn) {
        let end = self.durable + self.random.below(self.written - self.durable + 1);
        let installing = self.installing.clone().filter(|_| self.random.one_in(2));
        (installing.unwrap_or_else(|| self.installed.clone()), end)
    }
}
