//! Runs of the model: a schedule chosen at random, or by two preemptions; crashes; and what was found.

use std::pin::Pin;
use std::task::{Context, Waker};

use super::counts::Counts;
use super::plant::Plant;
use super::random::Random;
use super::schedule::{Preemptions, Schedule};
use super::types::Script;
use super::world::{REDO_WORKERS, Shared, World};
use super::{convert, flush, install, merge, reader, recovery, script, session};

/// Clients of a random run.
const CLIENTS: usize = 3;
/// Units of each in one incarnation.
const UNITS: u64 = 5;
/// Incarnations of a random run; all but the last may end by a crash.
const INCARNATIONS: usize = 3;
/// Steps after which a run is said to go nowhere.
const STEPS_MAX: usize = 30_000;
/// A step in so many is followed by a look at what a crash would leave.
const LOOK_ONE_IN: u64 = 16;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A failure: what, and the steps to it if they were asked for.
pub(super) struct Failure {
    pub(super) what: String,
    pub(super) trace: Vec<String>,
}

/// Who takes part in an incarnation, and how often each does what it does.
struct Cast {
    scripts: Vec<Script>,
    checkpoints: usize,
    space_installs: usize,
    /// For each flusher.
    flushes: Vec<usize>,
    /// For each merger.
    merges: Vec<usize>,
    evictions: usize,
    conversions: usize,
    snapshots: usize,
    /// Steps at most between two of them.
    idle: u64,
    /// The step at which the merger dies.
    merger_dies_at: usize,
}

/// The place of the merger among the tasks.
const MERGER: usize = 1;

fn tasks(shared: &Shared, cast: Cast) -> Vec<Option<Task>> {
    shared.world().active = cast.scripts.len() + 2;
    let idle = cast.idle;
    let mut tasks: Vec<Option<Task>> = vec![
        Some(Box::pin(recovery::redo(shared.clone(), 0))),
        Some(Box::pin(merge::run(shared.clone(), cast.merges[0], idle))),
        Some(Box::pin(install::write_log(shared.clone()))),
        Some(Box::pin(install::checkpoints(shared.clone(), cast.checkpoints, idle))),
        Some(Box::pin(install::space_installs(shared.clone(), cast.space_installs, idle))),
        Some(Box::pin(convert::evict(shared.clone(), cast.evictions, idle))),
        Some(Box::pin(convert::convert(shared.clone(), cast.conversions, idle))),
        Some(Box::pin(reader::run(shared.clone(), cast.snapshots, idle))),
    ];
    for worker in 1..REDO_WORKERS {
        tasks.push(Some(Box::pin(recovery::redo(shared.clone(), worker))));
    }
    for merges in cast.merges.into_iter().skip(1) {
        tasks.push(Some(Box::pin(merge::run(shared.clone(), merges, idle))));
    }
    for flushes in cast.flushes {
        tasks.push(Some(Box::pin(flush::run(shared.clone(), flushes, idle))));
    }
    for (number, script) in cast.scripts.into_iter().enumerate() {
        tasks.push(Some(Box::pin(session::run(shared.clone(), number, script))));
    }
    tasks
}

/// Runs the tasks to their end, or to a step at which the power fails or the engine stops. Returns the steps made.
fn run(
    shared: &Shared,
    mut tasks: Vec<Option<Task>>,
    schedule: &Schedule<'_>,
    (crash_at, merger_dies_at): (usize, usize),
) -> Result<usize, String> {
    let mut context = Context::from_waker(Waker::noop());
    let mut is_blocked = vec![false; tasks.len()];
    let mut current = 0;
    for step in 1..STEPS_MAX {
        if step >= crash_at {
            return Ok(step);
        }
        if step == merger_dies_at && tasks[MERGER].take().is_some() {
            let mut world = shared.world();
            if world.plant != Plant::MergerDiesUnnoticed {
                world.stop("a merger died");
                return Ok(step);
            }
        }
        let can_go = |task: usize| tasks[task].is_some() && !is_blocked[task];
        let next =
            schedule.choose(&mut shared.world().random, (step, current), tasks.len(), can_go);
        match next {
            Some(next) => current = next,
            None if tasks.iter().all(Option::is_none) => {
                shared.world().check_live()?;
                return Ok(step);
            }
            None => return Err("everybody waits for somebody".to_owned()),
        }
        let Some(task) = &mut tasks[current] else { continue };
        shared.world().is_blocked = false;
        if task.as_mut().poll(&mut context).is_ready() {
            tasks[current] = None;
        }
        let mut world = shared.world();
        world.counts.steps += 1;
        if world.is_blocked {
            is_blocked[current] = true;
        } else {
            is_blocked.fill(false);
        }
        if let Some(what) = world.violation.take() {
            return Err(what);
        }
        if world.random.one_in(LOOK_ONE_IN) {
            world.counts.crash_images += 1;
            let (disk, directory, end) = world.crash();
            world.check_recovery(&disk, &directory, end)?;
            world.check_damage(&disk, &directory)?;
        }
    }
    Err(format!("no end after {STEPS_MAX} steps"))
}

/// Who takes part in a random incarnation.
fn random_cast(random: &mut Random) -> Cast {
    let scripts = (0..CLIENTS).map(|_| script::random(random, UNITS)).collect();
    let mut often = |limit: u64| random.below(limit) as usize;
    Cast {
        scripts,
        checkpoints: often(4),
        space_installs: often(4),
        flushes: vec![often(9), often(9)],
        merges: vec![often(7), often(3)],
        evictions: often(5),
        conversions: often(3),
        snapshots: often(4),
        idle: [0, 20, 60, 120][often(4)],
        merger_dies_at: if often(10) == 0 { 10 + often(400) } else { usize::MAX },
    }
}

/// One random run: three incarnations, with crashes between and looks on the way.
pub(super) fn random_run(
    plant: Plant,
    seed: u64,
    traces: bool,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let mut random = Random::new(seed.wrapping_mul(7_919) + 13);
    let slots = if random.one_in(4) { 14 + random.below(12) as usize } else { 1_000 };
    let mut world = World::fresh(plant, Random::new(seed ^ 0x5DEE_CE66), CLIENTS, slots);
    world.trace = traces.then(Vec::new);
    world.damages = random.one_in(4);
    let mut shared = Shared::new(world);
    for incarnation in 1..=INCARNATIONS {
        let cast = random_cast(&mut random);
        let stays = [2, 6, 20, 60][random.below(4) as usize];
        let is_last = incarnation == INCARNATIONS;
        let crash_at = match random.below(8) {
            _ if is_last => usize::MAX,
            0 => usize::MAX,
            1..=2 => 1 + random.below(80) as usize,
            _ => 40 + random.below(900) as usize,
        };
        let merger_dies_at = cast.merger_dies_at;
        let own = tasks(&shared, cast);
        let schedule = Schedule::Random { stays };
        let outcome = run(&shared, own, &schedule, (crash_at, merger_dies_at));
        let next = outcome.and_then(|_| reopen(&shared));
        match next {
            Ok(world) if is_last => {
                counts.add(&world.counts);
                counts.runs += 1;
            }
            Ok(mut world) => {
                world.counts.crashes += 1;
                shared = Shared::new(world);
            }
            Err(what) => return Err(failure(&shared, what)),
        }
    }
    Ok(())
}

fn failure(shared: &Shared, what: String) -> Failure {
    Failure { what, trace: shared.world().trace.take().unwrap_or_default() }
}

/// The power fails; the next incarnation, its redo still to be done.
fn reopen(shared: &Shared) -> Result<World, String> {
    let mut world = shared.world();
    let (disk, directory, end) = world.crash();
    world.check_recovery(&disk, &directory, end)?;
    let empty = World::new(world.plant, Random::new(1), 0, disk.clone());
    let old = std::mem::replace(&mut *world, empty);
    old.reopened(disk, &directory, end)
}

/// Schedules of the written-down histories: each with two preemptions, at any two steps. All of them where
/// `limit` allows it, else so many at random.
pub(super) fn directed_runs(plant: Plant, limit: u64, counts: &mut Counts) -> Result<(), Failure> {
    let histories = script::directed();
    let share = limit.div_ceil(histories.len() as u64);
    for (number, scripts) in histories.iter().enumerate() {
        directed_history(plant, scripts, share, counts).map_err(|found| {
            let what = format!("history {number}, {}", found.what);
            Failure { what, ..found }
        })?;
    }
    Ok(())
}

/// Tasks of a directed run: see `tasks`.
const DIRECTED: usize = 12;

fn directed_history(
    plant: Plant,
    scripts: &[Script],
    limit: u64,
    counts: &mut Counts,
) -> Result<(), Failure> {
    // Clients first; background first; and the two mixed.
    let orders: [&[usize]; 3] = [
        &[0, 8, 10, 11, 9, 1, 3, 2, 7, 4, 5, 6],
        &[0, 8, 9, 1, 6, 10, 11, 7, 3, 2, 5, 4],
        &[0, 8, 10, 9, 11, 1, 3, 7, 2, 6, 5, 4],
    ];
    let mut length = 0;
    for order in orders {
        length = length.max(directed_run(plant, scripts, (&[], order), counts)?);
    }
    let mut all = Preemptions::new(length, DIRECTED, limit);
    for index in 0..all.count() {
        let Some(preemptions) = all.number(index) else { continue };
        let steps = preemptions[0].0 + preemptions[1].0;
        let order = orders[steps % orders.len()];
        directed_run(plant, scripts, (&preemptions, order), counts).map_err(|found| {
            let what = format!("preemptions {preemptions:?}: {}", found.what);
            Failure { what, ..found }
        })?;
    }
    Ok(())
}

fn directed_run(
    plant: Plant,
    scripts: &[Script],
    (preemptions, order): (&[(usize, usize)], &[usize]),
    counts: &mut Counts,
) -> Result<usize, Failure> {
    let world = World::fresh(plant, Random::new(counts.runs), scripts.len(), 1_000);
    let shared = Shared::new(world);
    let cast = Cast {
        scripts: scripts.to_vec(),
        checkpoints: 1,
        space_installs: 1,
        flushes: vec![2],
        merges: vec![2],
        evictions: 1,
        conversions: 1,
        snapshots: 1,
        idle: 0,
        merger_dies_at: usize::MAX,
    };
    let own = tasks(&shared, cast);
    let schedule = Schedule::Directed { preemptions, order };
    let steps = run(&shared, own, &schedule, (usize::MAX, usize::MAX));
    let steps = steps.map_err(|what| failure(&shared, what))?;
    counts.add(&shared.world().counts);
    counts.runs += 1;
    Ok(steps)
}
