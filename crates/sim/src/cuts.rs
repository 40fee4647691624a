//! Power cuts: at the boundaries of a run, in the recovery from a cut, and in what comes after.
//!
//! A run is done once. Then, boundary after boundary, what a power cut would have left is opened
//! by the engine and compared with the history. Now and then the run goes on from such an image,
//! and is cut again: the operations of the recovery itself come first, so they are cut too.
//!
//! Invariant: everything follows from the plan's seed and the budget.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use onrush::Database;
use onrush_check::{CheckError, CheckOptions, Progress, check};
use onrush_files::Disk;

use crate::disk::{CrashDisk, CrashMode, Sweep};
use crate::gate::{Gate, GatedDisk, database_folder};
use crate::plan::{Action, Plan};
use crate::random::Random;
use crate::summary::Summary;
use crate::world::{self, Place, SharedWorld, World, locked};
use onrush_oracle::violation;
use onrush_oracle::{Checked, History, Violation};

/// One in so many images is checked as it is found, by decoders that are not the engine's.
const CHECK_ONE_IN: u64 = 4;

/// How many power cuts a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Images at depth 0.
    pub images: u64,
    /// At each boundary of depth 0 there is an image at least, whatever `images` says.
    pub every_boundary: bool,
    /// At each boundary at which something is unsynced there is an image in each mode.
    pub every_mode: bool,
    /// How deep cuts are nested at most: with 3, a cut, one in what follows, one in what follows that.
    pub depth_max: usize,
    /// One in so many images is gone on from.
    pub nested_one_in: u64,
    /// Images at each deeper level.
    pub nested_images: u64,
    /// Actions after a recovery, before the next cuts. Without any, all cuts are in the recovery.
    pub nested_actions: usize,
    /// What a power cut may leave.
    pub modes: &'static [CrashMode],
}

impl Budget {
    /// Few cuts in runs, and one at each boundary of each recovery from them, and of theirs.
    pub fn of_recovery() -> Budget {
        Budget {
            images: 20,
            nested_one_in: 12,
            nested_images: u64::MAX / 2,
            nested_actions: 0,
            ..Budget::default()
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            images: 600,
            every_boundary: false,
            every_mode: false,
            depth_max: 3,
            nested_one_in: 60,
            nested_images: 25,
            nested_actions: 25,
            modes: &CrashMode::ALL,
        }
    }
}

/// A run whose disk can be cut anywhere.
struct Run {
    plan: Arc<Plan>,
    disk: CrashDisk,
    history: History,
    handed: Vec<(usize, Place)>,
    /// From this boundary on the database is there.
    created_at: usize,
    /// From this boundary on the recovery that the run began with is over.
    recovered_at: usize,
    depth: usize,
}

/// Runs one seed and cuts its power at as many boundaries as the budget allows.
///
/// # Errors
/// The first violation, with what is needed to find it again.
pub fn simulate(seed: u64, budget: Budget, summary: &mut Summary) -> Checked<()> {
    guarded(&format!("seed {seed}"), || {
        let plan = Arc::new(Plan::new(seed));
        *summary.runs_by_files.entry(plan.options.data_folders.len().max(1)).or_default() += 1;
        let (shared, disk, created_at) = begun(&plan, summary)?;
        world::run(&shared, plan.actions)?;
        let run = ended(&shared, plan, disk, (created_at, 0), 0, summary);
        run.cut(0, budget, summary)
    })
}

/// A run at its beginning: its world, made ready, its disk, and where the database was complete.
fn begun(plan: &Arc<Plan>, summary: &mut Summary) -> Checked<(SharedWorld, CrashDisk, usize)> {
    summary.runs += 1;
    let disk = CrashDisk::new();
    let world = World::create(Arc::clone(plan), disk.clone())?;
    let created_at = disk.operation_count();
    let shared = Arc::new(Mutex::new(world));
    world::prepare(&shared)?;
    Ok((shared, disk, created_at))
}

/// Does `work` on the plan's database, once a checkpoint knows it, and cuts the power from there on.
///
/// # Errors
/// The first violation.
pub(crate) fn cut_from_checkpoint(
    plan: Plan,
    work: impl FnOnce(&SharedWorld) -> Checked<()>,
    budget: Budget,
    summary: &mut Summary,
) -> Checked<()> {
    let plan = Arc::new(plan);
    let (shared, disk, created_at) = begun(&plan, summary)?;
    world::act_all(&shared, &[Action::Checkpoint])?;
    let from = disk.operation_count();
    work(&shared)?;
    ended(&shared, plan, disk, (created_at, 0), 0, summary).cut(from, budget, summary)
}

/// Takes a run apart.
fn ended(
    shared: &SharedWorld,
    plan: Arc<Plan>,
    disk: CrashDisk,
    (created_at, recovered_at): (usize, usize),
    depth: usize,
    summary: &mut Summary,
) -> Run {
    let mut world = locked(shared);
    // The moments at which keys were shown decide which must not come again.
    let mut handed: Vec<(usize, Place)> =
        world.handed.iter().map(|(place, timestamp)| (*timestamp, place.clone())).collect();
    handed.sort();
    let history = world.history.clone();
    world.finish();
    let summary_of_world = std::mem::take(&mut world.summary);
    summary.add(&summary_of_world);
    Run { plan, disk, history, handed, created_at, recovered_at, depth }
}

impl Run {
    fn cut(&self, from: usize, budget: Budget, summary: &mut Summary) -> Checked<()> {
        let mut sweep = self.disk.sweep();
        sweep.advance_to(from);
        let boundaries = (sweep.last_operation() - from) as u64 + 1;
        *summary.boundaries.entry(self.depth).or_default() += boundaries;
        let part = (self.depth as u64) << 32 | self.created_at as u64;
        let mut random = Random::for_part(self.plan.seed, 2 << 40 | part);
        let images = if self.depth == 0 { budget.images } else { budget.nested_images };
        let mut kinds = BTreeSet::new();
        loop {
            // The first boundary of each kind in this run is cut at in any case.
            let is_first_of_kind = self.depth == 0 && kinds.insert(sweep.kind());
            let must = is_first_of_kind || (self.depth == 0 && budget.every_boundary);
            // Boundaries at which nothing is unsynced have one image only.
            let wanted = if sweep.has_unsynced() { 3 } else { u64::from(random.chance(1, 8)) };
            let may = wanted > 0 && random.chance(images.min(boundaries * 2), boundaries * 2);
            let wanted = match (budget.every_mode && self.depth == 0, may) {
                (true, _) if sweep.has_unsynced() => budget.modes.len() as u64,
                (false, true) => wanted,
                _ => u64::from(must),
            };
            summary.kinds.entry(sweep.kind()).or_default();
            if wanted > 0 {
                *summary.boundaries_cut.entry(self.depth).or_default() += 1;
                for mode in some_modes(&mut random, budget.modes, wanted) {
                    let seed = random.next_number();
                    let go_on = random.chance(1, budget.nested_one_in);
                    summary.kinds.entry(sweep.kind()).or_default().insert(mode);
                    self.cut_here(&sweep, mode, seed, go_on, budget, summary)?;
                }
            }
            if !sweep.advance() {
                return Ok(());
            }
        }
    }

    fn cut_here(
        &self,
        sweep: &Sweep,
        mode: CrashMode,
        seed: u64,
        go_on: bool,
        budget: Budget,
        summary: &mut Summary,
    ) -> Checked<()> {
        let boundary = sweep.at_operation();
        let place = format!("depth {}, boundary {boundary}, {mode:?}", self.depth);
        *summary.images.entry(mode).or_default() += 1;
        *summary.images_by_depth.entry(self.depth).or_default() += 1;
        summary.images_in_recovery += u64::from(boundary < self.recovered_at);
        guarded(&place, || {
            let disk = sweep.image(mode, seed);
            if boundary >= self.created_at && seed.is_multiple_of(CHECK_ONE_IN) {
                summary.checks += 1;
                is_sound(&disk)?;
            }
            let gate = Gate::new();
            let gated = Arc::new(GatedDisk::new(disk.clone(), gate.clone()));
            let options = self.plan.options.clone();
            summary.recoveries += 1;
            let opened = Database::open_on(gated.clone(), database_folder(), options.clone());
            let database = match opened {
                Ok(database) => database,
                Err(error) if boundary < self.created_at => {
                    return create_again(&error, gated, options);
                }
                Err(error) => violation!("open: {error}"),
            };
            let bounds = self.history.bounds(boundary);
            let digest = world::digest_of(&database)?;
            let Some(commits) = self.history.prefix_of(&digest, bounds) else {
                let found = world::state_of(&database)?;
                violation!("{}", self.history.explain(&found, bounds));
            };
            if !go_on || self.depth + 1 >= budget.depth_max || boundary < self.created_at {
                return Ok(());
            }
            self.go_on(boundary, commits, (disk, gate, database), budget, summary)
        })
    }

    /// Goes on from an image: more work, then cuts of its own.
    fn go_on(
        &self,
        boundary: usize,
        commits: usize,
        (disk, gate, database): (CrashDisk, Gate, Database),
        budget: Budget,
        summary: &mut Summary,
    ) -> Checked<()> {
        let mut state = self.history.state_after(commits);
        state.forget_unlogged();
        let plan = Arc::clone(&self.plan);
        let part = (boundary as u64) << 8 | self.depth as u64;
        let mut world = World::around(Arc::clone(&plan), disk.clone(), gate, database, state, part);
        let shown = self.handed.partition_point(|(timestamp, _)| *timestamp <= boundary);
        for (_, place) in &self.handed[..shown] {
            world.handed.insert(place.clone(), 0);
        }
        let recovered_at = disk.operation_count();
        let shared = Arc::new(Mutex::new(world));
        world::run(&shared, budget.nested_actions)?;
        let run = ended(&shared, plan, disk, (0, recovered_at), self.depth + 1, summary);
        run.cut(0, budget, summary)
    }
}

/// What a power cut leaves is no damage: the check must say so before anybody opens it. A copy that has
/// its superblock is whole, or says that it is not finished.
fn is_sound(disk: &CrashDisk) -> Checked<()> {
    let root = Path::new("/");
    let names = disk.list(root).unwrap_or_default();
    let copies =
        names.iter().filter(|name| name.starts_with(world::COPY)).map(|name| root.join(name));
    let is_copy =
        |folder: &PathBuf| matches!(disk.exists(&folder.join("superblock.onrush")), Ok(true));
    let options = CheckOptions { dop: 1, ..CheckOptions::default() };
    for folder in copies.filter(is_copy).chain([database_folder()]) {
        let checked = check(Arc::new(disk.clone()), &folder, &options, &Progress::default());
        match checked {
            Ok(report) if report.is_sound() => {}
            Err(CheckError::Unfinished(_)) if folder != database_folder() => {}
            Ok(report) => violation!("check of {}: {report}", folder.display()),
            Err(error) => violation!("check of {}: {error}", folder.display()),
        }
    }
    Ok(())
}

/// A database whose creation was cut off is either not there or whole, and can be made again.
fn create_again(
    refused: &onrush::Error,
    disk: Arc<GatedDisk>,
    options: onrush::Options,
) -> Checked<()> {
    if !matches!(refused, onrush::Error::NotFound { .. }) {
        violation!("open during creation: {refused}");
    }
    match Database::create_on(disk, database_folder(), options) {
        Ok(_) => Ok(()),
        Err(error) => violation!("create again: {error}"),
    }
}

fn some_modes(random: &mut Random, modes: &[CrashMode], wanted: u64) -> Vec<CrashMode> {
    let mut modes = modes.to_vec();
    let mut chosen = Vec::new();
    for _ in 0..wanted.min(modes.len() as u64) {
        chosen.push(modes.swap_remove(random.below(modes.len() as u64) as usize));
    }
    chosen
}

/// A panic is a violation too; every violation says where it was.
pub(crate) fn guarded(place: &str, work: impl FnOnce() -> Checked<()>) -> Checked<()> {
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Violation(format!("panic: {}", text.unwrap_or("without words"))))
    });
    outcome.map_err(|Violation(text)| Violation(format!("{place}: {text}")))
}
