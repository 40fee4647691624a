//! Runs of the model: a schedule chosen at random, or by two preemptions; crashes; and what was found.

use std::fmt::{self, Display, Formatter};
use std::pin::Pin;
use std::task::{Context, Waker};

use super::plant::Plant;
use super::random::Random;
use super::schedule::{Preemptions, Schedule};
use super::types::{SEGMENT, Script};
use super::world::{Shared, World};
use super::{client, script, storage};

/// Clients of a random run.
const CLIENTS: usize = 3;
/// Units of each in one incarnation.
const UNITS: u64 = 4;
/// Incarnations of a random run; all but the last may end by a crash.
const INCARNATIONS: usize = 3;
/// Steps after which a run is said to go nowhere.
const STEPS_MAX: usize = 20_000;
/// A step in so many is followed by a look at what a crash would leave.
const LOOK_ONE_IN: u64 = 12;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What a run did.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    runs: u64,
    /// Looks at what a crash would leave.
    crash_images: u64,
    crashes: u64,
    commits: u64,
    refusals: u64,
}

impl Display for Counts {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Counts { runs, crash_images, crashes, commits, refusals } = self;
        write!(to, "{runs} runs, {crashes} crashes, {crash_images} crash images, ")?;
        write!(to, "{commits} commits, {refusals} refusals")
    }
}

/// A failure: what, in which run, and the steps to it if they were asked for.
pub(super) struct Failure {
    pub(super) what: String,
    pub(super) trace: Vec<String>,
}

fn tasks(shared: &Shared, scripts: Vec<Script>, checkpoints: usize) -> Vec<Option<Task>> {
    shared.world().active = scripts.len() + 1;
    let mut tasks: Vec<Option<Task>> = Vec::new();
    for (number, script) in scripts.into_iter().enumerate() {
        tasks.push(Some(Box::pin(client::run(shared.clone(), number, script))));
    }
    tasks.push(Some(Box::pin(storage::checkpoints(shared.clone(), checkpoints))));
    tasks.push(Some(Box::pin(storage::write_log(shared.clone()))));
    tasks
}

/// Runs the tasks to their end, or to a step at which the power fails. Returns the steps made.
fn run(
    shared: &Shared,
    mut tasks: Vec<Option<Task>>,
    schedule: &Schedule<'_>,
    crash_at: usize,
    counts: &mut Counts,
) -> Result<usize, String> {
    let mut context = Context::from_waker(Waker::noop());
    let mut is_blocked = vec![false; tasks.len()];
    let mut current = 0;
    for step in 1..STEPS_MAX {
        if step >= crash_at {
            return Ok(step);
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
        if world.is_blocked {
            is_blocked[current] = true;
        } else {
            is_blocked.fill(false);
        }
        if let Some(what) = world.violation.take() {
            return Err(what);
        }
        if world.random.one_in(LOOK_ONE_IN) {
            counts.crash_images += 1;
            let (directory, end) = world.crash();
            world.check_recovery(&directory, end)?;
            let oldest = directory.start / SEGMENT;
            let segments = world.segments_prepared.max(oldest) - oldest + 1;
            let lost = oldest + world.random.below(segments);
            world.check_damage(&directory, end, lost)?;
        }
    }
    Err(format!("no end after {STEPS_MAX} steps"))
}

/// One random run: three incarnations, with crashes between and looks on the way.
pub(super) fn random_run(
    plant: Plant,
    seed: u64,
    traces: bool,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let mut random = Random::new(seed.wrapping_mul(7_919) + 13);
    let mut world = World::new(plant, Random::new(seed ^ 0x5DEE_CE66), CLIENTS);
    world.trace = traces.then(Vec::new);
    let mut shared = Shared::new(world);
    counts.runs += 1;
    for incarnation in 1..=INCARNATIONS {
        let scripts = (0..CLIENTS).map(|_| script::random(&mut random, UNITS)).collect();
        let checkpoints = random.below(3) as usize + 1;
        let stays = [2, 6, 20, 60][random.below(4) as usize];
        let is_last = incarnation == INCARNATIONS;
        let crash_at =
            if is_last || random.one_in(4) { usize::MAX } else { 20 + random.below(500) as usize };
        let own = tasks(&shared, scripts, checkpoints);
        let outcome = run(&shared, own, &Schedule::Random { stays }, crash_at, counts);
        let next = outcome.and_then(|_| reopen(&shared));
        match next {
            Ok(world) if is_last => {
                counts.commits += world.commits;
                counts.refusals += world.refusals;
            }
            Ok(world) => {
                counts.crashes += 1;
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

/// The power fails; the next incarnation.
fn reopen(shared: &Shared) -> Result<World, String> {
    let mut world = shared.world();
    let (directory, end) = world.crash();
    let recovered = world.check_recovery(&directory, end)?;
    let plant = world.plant;
    let old = std::mem::replace(&mut *world, World::new(plant, Random::new(1), CLIENTS));
    Ok(old.reopened(directory, end, recovered))
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

/// Finds a fault in the history of this number; the error is what it found.
pub(super) fn directed_find(plant: Plant, number: usize, limit: u64) -> Result<(), Failure> {
    let histories = script::directed();
    directed_history(plant, &histories[number], limit, &mut Counts::default())
}

fn directed_history(
    plant: Plant,
    scripts: &[Script],
    limit: u64,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let orders: [&[usize]; 2] = [&[0, 1, 2, 3], &[1, 3, 0, 2]];
    let mut length = 0;
    for order in orders {
        length = length.max(directed_run(plant, scripts, (&[], order), counts)?);
    }
    let mut all = Preemptions::new(length, 4, limit);
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
    let seed = counts.runs;
    let shared = Shared::new(World::new(plant, Random::new(seed), scripts.len()));
    counts.runs += 1;
    let own = tasks(&shared, scripts.to_vec(), 1);
    let schedule = Schedule::Directed { preemptions, order };
    let steps = run(&shared, own, &schedule, usize::MAX, counts);
    let steps = steps.map_err(|what| failure(&shared, what))?;
    counts.commits += shared.world().commits;
    Ok(steps)
}
