//! A check and a backup in the middle of a run, with work between the steps of the backup,
//! checkpoints included.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush::{CheckProgress, Database, OnlineOptions};
use onrush_files::{Disk, DiskError, MemoryDisk, OpenMode};

use super::checkpoints::visit;
use super::{SharedWorld, locked, state_of};
use crate::disk::CrashDisk;
use onrush_oracle::Checked;
use onrush_oracle::violation;

/// How the names of the folders of copies begin.
pub const COPY: &str = "copy-";

/// Checks the open database, then copies it; what was committed before is in the copy, and nothing
/// else. The lock on the world is free meanwhile.
pub(super) fn copy(shared: &SharedWorld) -> Checked<()> {
    let (database, gate, into, expected) = {
        let mut world = locked(shared);
        let mut expected = world.history.now().clone();
        expected.forget_unlogged();
        world.summary.copies += 1;
        let into = free_folder(&world.disk, world.timestamp());
        let gate = world.plan.visits.then(|| world.gate.clone());
        (world.database()?.clone(), gate, into, expected)
    };
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let progress = CheckProgress::default();
    match database.check(&options, &progress) {
        Ok(report) if report.is_sound() => {}
        Ok(report) => violation!("online check: {report}"),
        Err(error) => violation!("online check: {error}"),
    }
    if let Some(gate) = &gate {
        let visited = Arc::clone(shared);
        gate.open(Box::new(move || visit(&visited, true)));
    }
    let copied = database.backup(&into, &options, &progress);
    if let Some(gate) = &gate {
        gate.close();
    }
    let mut world = locked(shared);
    if let Some(violation) = world.visit_failed.take() {
        return Err(violation);
    }
    if let Err(error) = copied {
        violation!("backup: {error}");
    }
    let copy = match Database::open_on(
        in_memory(&world.disk, &into)?,
        &into,
        world.plan.options.clone(),
    ) {
        Ok(copy) => copy,
        Err(error) => violation!("open a copy: {error}"),
    };
    let found = state_of(&copy)?;
    if found.digest() != expected.digest() {
        violation!("a copy is not what was committed: {}", found.differences(&expected));
    }
    Ok(())
}

/// A folder for a copy. Timestamps begin again after a power cut, while copies made before it stay.
fn free_folder(disk: &CrashDisk, timestamp: usize) -> PathBuf {
    let mut number = timestamp;
    loop {
        let folder = PathBuf::from(format!("/{COPY}{number}"));
        if !matches!(disk.exists(&folder), Ok(true)) {
            return folder;
        }
        number += 1;
    }
}

/// The files of a copy on a disk of their own, so that opening it changes nothing here.
fn in_memory(disk: &CrashDisk, folder: &Path) -> Checked<Arc<MemoryDisk>> {
    let memory = MemoryDisk::new();
    let copied = || -> Result<(), DiskError> {
        for folder in [folder.to_owned(), folder.join("log")] {
            memory.create_folder(&folder)?;
            for name in disk.list(&folder)? {
                let path = folder.join(name);
                let Ok(from) = disk.open(&path, OpenMode::ReadOnly) else { continue };
                let mut bytes = vec![0; from.len()? as usize];
                from.read_at(&mut bytes, 0)?;
                memory.open(&path, OpenMode::CreateNew)?.write_at(&bytes, 0)?;
            }
        }
        Ok(())
    };
    match copied() {
        Ok(()) => Ok(Arc::new(memory)),
        Err(error) => violation!("read a copy: {error}"),
    }
}
