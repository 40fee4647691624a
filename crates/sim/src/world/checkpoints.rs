//! Checkpoints, with work in the middle of them, and restarts.

use std::sync::Arc;

use onrush::Database;

use super::{Failed, SharedWorld, World, digest_of, locked};
use crate::gate::{GatedDisk, database_folder};
use crate::plan::Action;
use onrush_oracle::Checked;
use onrush_oracle::violation;

/// What may happen in the middle of a checkpoint.
const VISITS: [Action; 12] = [
    Action::Insert,
    Action::Insert,
    Action::InsertToken,
    Action::Upsert,
    Action::Update,
    Action::Update,
    Action::Delete,
    Action::Transaction,
    Action::InsertMany,
    Action::SnapshotScan,
    Action::Scan,
    Action::DropAndCreate,
];

/// A checkpoint. The lock on the world is free while it runs.
pub(super) fn checkpoint(shared: &SharedWorld) -> Checked<()> {
    visited(shared, "checkpoint", |database| database.checkpoint().map(drop))
}

/// A directory with the C of the last checkpoint, as [`checkpoint`], mostly of a stock that is another one by then.
pub(super) fn install_space(shared: &SharedWorld) -> Checked<()> {
    let flushes = locked(shared).random.chance(3, 4);
    if flushes {
        visited(shared, "flush", Database::flush_range)?;
    }
    visited(shared, "space install", |database| database.install_space().map(drop))
}

fn visited(
    shared: &SharedWorld,
    what: &str,
    take: impl FnOnce(&Database) -> onrush::Result<()>,
) -> Checked<()> {
    let (database, gate) = {
        let world = locked(shared);
        let database = world.database()?.clone();
        (database, world.plan.visits.then(|| world.gate.clone()))
    };
    if let Some(gate) = &gate {
        let visited = Arc::clone(shared);
        gate.open(Box::new(move || visit(&visited, false)));
    }
    let outcome = take(&database);
    if let Some(gate) = &gate {
        gate.close();
    }
    let mut world = locked(shared);
    if let Some(violation) = world.visit_failed.take() {
        return Err(violation);
    }
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => world.failed(what, &error).map(|_| ()),
    }
}

/// In the middle of a checkpoint, or of a copy: then there may be a checkpoint, too. The log must have
/// space: nobody else could make some.
pub(super) fn visit(shared: &SharedWorld, may_checkpoint: bool) {
    let mut world = locked(shared);
    if world.visit_failed.is_some() || world.stopped.is_some() || !world.random.chance(1, 3) {
        return;
    }
    // The image that is being written may be one that makes space for another leaf of the checkpoint. In
    // life a visitor that needs space, too, waits for the thread that makes it; here they are one thread.
    if world.database().is_ok_and(Database::is_evicting) {
        return;
    }
    if may_checkpoint
        && world.random.chance(1, 4)
        && let Err(violation) = world.checkpoint_unvisited()
    {
        world.visit_failed = Some(violation);
        return;
    }
    let most = if world.plan.crowded { 40 } else { 4 };
    let visits = 1 + world.random.below(most);
    world.in_visit = true;
    for _ in 0..visits {
        let space = world.database().is_ok_and(|database| {
            let (in_use, capacity) = database.statistics().log_space_bytes;
            in_use * 2 < capacity
        });
        if !space || world.stopped.is_some() {
            break;
        }
        let at = world.random.below(VISITS.len() as u64) as usize;
        let mut action = VISITS[at];
        if action == Action::DropAndCreate && !world.random.chance(1, 10) {
            action = Action::Insert;
        }
        if world.plan.has_front() && world.random.chance(1, 3) {
            action = Action::MoveRows;
        }
        if world.plan.alters && world.random.chance(1, 20) {
            action = Action::Alter;
        }
        if world.plan.passes_names && world.random.chance(1, 6) {
            action = Action::PassNames;
        }
        world.summary.visits += 1;
        if let Err(violation) = world.act(action) {
            world.visit_failed = Some(violation);
            break;
        }
    }
    world.in_visit = false;
}

/// Closes the database, one way or the other, and opens it again: nothing is lost.
///
/// # Errors
/// Something is.
pub fn restart(world: &mut World) -> Checked<()> {
    world.snapshots.clear();
    world.sessions.clear();
    world.tables.clear();
    let Some(database) = world.database.take() else { return Ok(()) };
    world.summary.note_engine(&database);
    if world.random.chance(1, 2) {
        if let Err(error) = database.close()
            && world.failed("close", &error)? == Failed::Unknown
        {
            return Ok(());
        }
    } else {
        drop(database);
    }
    let (timestamp, commits) = (world.timestamp(), world.history.len());
    if !world.failures_expected {
        world.history.acknowledge(timestamp, commits);
    }
    let gated = Arc::new(GatedDisk::new(world.disk.clone(), world.gate.clone()));
    let database = match Database::open_on(gated, database_folder(), world.plan.options.clone()) {
        Ok(database) => database,
        Err(error) => {
            if !world.failures_expected {
                violation!("open after a clean close: {error}");
            }
            world.stopped = Some(error.to_string());
            return Ok(());
        }
    };
    world.summary.recoveries += 1;
    let found = match digest_of(&database) {
        Err(violation) if world.failures_expected => {
            world.stopped = Some(violation.0);
            return Ok(());
        }
        found => found?,
    };
    let bounds = world.history.bounds(world.timestamp());
    let Some(commits) = world.history.prefix_of(&found, bounds) else {
        let found = super::state_of(&database)?;
        violation!("after a restart: {}", world.history.explain(&found, bounds));
    };
    if commits < world.history.len() {
        // Closing failed, and nobody was told so: what was not durable is gone.
        world.history.go_back_to(commits);
        world.ends.retain(|(_, at)| *at <= commits);
    }
    let timestamp = world.timestamp();
    world.history.reopen(timestamp);
    world.database = Some(database);
    world.reconnect();
    Ok(())
}

impl World {
    fn checkpoint_unvisited(&mut self) -> Checked<()> {
        match self.database()?.checkpoint() {
            Ok(_) => Ok(()),
            Err(error) => self.failed("checkpoint", &error).map(|_| ()),
        }
    }

    /// Ends the run without a clean close: what happens to the disk from here on is not looked
    /// at.
    pub fn finish(&mut self) {
        self.snapshots.clear();
        self.sessions.clear();
        self.tables.clear();
        if let Some(database) = self.database.take() {
            self.summary.note_engine(&database);
        }
    }
}
