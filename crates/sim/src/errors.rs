//! Runs in which a call of the disk fails: the answer must fit the outcome, nothing acknowledged
//! may be lost, and after a full disk work goes on.
//!
//! A run is done once to count its calls, then again and again, each time with another call that
//! fails. Afterwards the database is opened twice: as after the end of the process, where reads
//! still show what was never synced, and as after a power cut.

use std::sync::{Arc, Mutex};

use onrush::Database;

use crate::cuts::guarded;
use crate::disk::{Call, CrashDisk, CrashMode, Fault, FaultError, Repeat, Unsynced};
use crate::gate::database_folder;
use crate::plan::Plan;
use crate::random::Random;
use crate::summary::Summary;
use crate::world::{self, SharedWorld, World, locked};
use onrush_oracle::Checked;
use onrush_oracle::violation;

const CALLS: [Call; 8] = [
    Call::AnyChange,
    Call::Write,
    Call::Sync,
    Call::SyncFolder,
    Call::Allocate,
    Call::SetLen,
    Call::Names,
    Call::Read,
];

/// Runs one seed with `cases` different failing calls.
///
/// # Errors
/// The first violation.
pub fn fail_calls(seed: u64, cases: u64, summary: &mut Summary) -> Checked<()> {
    guarded(&format!("errors of seed {seed}"), || {
        let plan = Arc::new(Plan::new(seed));
        summary.runs += 1;
        let (disk, shared) = prepared(&plan)?;
        let before = CALLS.map(|call| disk.calls(call));
        world::run(&shared, plan.actions)?;
        let mut calls = CALLS.map(|call| disk.calls(call));
        for (count, before) in calls.iter_mut().zip(before) {
            *count -= before;
        }
        locked(&shared).finish();
        let mut random = Random::for_part(seed, 3);
        for case in 0..cases {
            let Some(fault) = draw(&mut random, &calls) else { continue };
            guarded(&format!("case {case}, {fault:?}"), || fail(&plan, fault, summary))?;
        }
        Ok(())
    })
}

fn prepared(plan: &Arc<Plan>) -> Checked<(CrashDisk, SharedWorld)> {
    let disk = CrashDisk::new();
    let world = World::create(Arc::clone(plan), disk.clone())?;
    let shared = Arc::new(Mutex::new(world));
    world::prepare(&shared)?;
    Ok((disk, shared))
}

fn draw(random: &mut Random, calls: &[u64; CALLS.len()]) -> Option<Fault> {
    let which = random.below(CALLS.len() as u64) as usize;
    let nth = 1 + random.below(calls[which].max(1));
    let error = if random.chance(1, 2) { FaultError::Device } else { FaultError::Full };
    let repeat = if random.chance(1, 2) { Repeat::Once } else { Repeat::ForEver };
    let unsynced = if random.chance(1, 2) { Unsynced::Kept } else { Unsynced::Lost };
    let fault = Fault { call: CALLS[which], nth, error, repeat, unsynced };
    (calls[which] > 0).then_some(fault)
}

fn fail(plan: &Arc<Plan>, fault: Fault, summary: &mut Summary) -> Checked<()> {
    let (disk, shared) = prepared(plan)?;
    summary.failed_calls += 1;
    locked(&shared).failures_expected = true;
    disk.inject(fault);
    world::run(&shared, plan.actions)?;
    disk.clear_faults();
    if !locked(&shared).has_stopped() {
        // Whatever failed was no reason to stop: everything works again.
        locked(&shared).failures_expected = false;
        world::run(&shared, 20)?;
    }
    let (boundary, history) = {
        let mut world = locked(&shared);
        let boundary = disk.operation_count();
        world.failures_expected = true;
        let history = world.history.clone();
        world.finish();
        (boundary, history)
    };
    let open = |disk: &CrashDisk| -> Checked<u128> {
        let bounds = history.bounds(boundary);
        let disk = Arc::new(disk.clone());
        match Database::open_on(disk, database_folder(), plan.options.clone()) {
            Ok(database) => {
                let digest = world::digest_of(&database)?;
                if history.prefix_of(&digest, bounds).is_none() {
                    violation!("{}", history.explain(&world::state_of(&database)?, bounds));
                }
                Ok(digest)
            }
            Err(error) => violation!("open: {error}"),
        }
    };
    for mode in [CrashMode::AllLost, CrashMode::Subset, CrashMode::AllKept] {
        summary.recoveries += 1;
        *summary.images.entry(mode).or_default() += 1;
        let cut = disk.crash_image(boundary, mode, fault.nth);
        guarded(&format!("power cut, {mode:?}"), || open(&cut).map(|_| ()))?;
    }
    summary.recoveries += 2;
    let digest = open(&disk)?;
    // What a restart has shown must not be lost by a power cut.
    let cut = disk.crash_image(disk.operation_count(), CrashMode::AllLost, 0);
    if open(&cut)? != digest {
        violation!("a power cut after a restart: another state than the restart showed");
    }
    Ok(())
}
