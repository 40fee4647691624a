//! The delayed window under a clock that only the simulation moves: power cuts at random moments
//! must not take a delayed commit that is older than the window.
//!
//! Commits come in bursts and with pauses, rounds of the log take their time, commits go on during
//! them, and whoever has the duty of the log's thread comes late by up to half the window. Then
//! the power is cut at each boundary, at the last moment before the next operation of the disk.
//!
//! Promises
//! 1. What is lost is the end of the commit order.
//! 2. A lost commit was acknowledged no longer ago than the window, the time not counted in which
//!    a round was being written: that is the stall of the disk, which the window does not bound.
//! 3. All lost acknowledged commits together are no more bytes of the log than the window has.
//! 4. A commit that comes while a round with an older one is being written for longer than the window
//!    is not acknowledged before the round is over.

mod helper;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onrush::{
    Background, ColumnDefinition, DataType, Database, Durability, Options, Session, Table,
    TableDefinition,
};

use crate::cuts::guarded;
use crate::disk::{CrashDisk, CrashMode};
use crate::gate::{Gate, GatedDisk, database_folder};
use crate::random::Random;
use crate::summary::Summary;
use helper::Helper;
use onrush_oracle::violation;
use onrush_oracle::{Checked, Violation};

const TABLE: &str = "commits";
/// Row and record of a commit take this much more than its payload, at most.
const RECORD_BYTES_MORE: u64 = 200;

/// Two clocks: what a watch shows, and the same without the time that rounds took.
#[derive(Clone, Copy, Default, Debug)]
struct Time {
    micros: u64,
    idle_micros: u64,
}

/// One acknowledged commit.
#[derive(Clone, Copy, Debug)]
struct Commit {
    /// Its key, and its place in the commit order.
    number: i64,
    acknowledged: Time,
    /// Operations of the disk until then.
    timestamp: usize,
    end: u64,
    durability: Durability,
}

/// What main thread, helper and visitor share.
#[derive(Debug, Default)]
struct Book {
    now: Time,
    /// In the order in which they were acknowledged.
    commits: Vec<Commit>,
    /// When each operation of the disk was done.
    operations: Vec<Time>,
    /// Why the run is over, if it is.
    failed: Option<Violation>,
}

/// What the power cuts under one window have shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss {
    /// Power cuts.
    pub cuts: u64,
    /// Those that took acknowledged commits.
    pub cuts_with_loss: u64,
    /// Acknowledged commits taken.
    pub commits: u64,
    /// The oldest of them, by the watch, in microseconds.
    pub age_micros_max: u64,
    /// The oldest of them, without the time in which a round was being written.
    pub idle_age_micros_max: u64,
    /// The largest part of the bytes of the window taken by one cut, in percent.
    pub bytes_percent_max: u64,
}

impl Loss {
    /// Adds what other cuts have shown.
    pub fn add(&mut self, other: &Loss) {
        self.cuts += other.cuts;
        self.cuts_with_loss += other.cuts_with_loss;
        self.commits += other.commits;
        self.age_micros_max = self.age_micros_max.max(other.age_micros_max);
        self.idle_age_micros_max = self.idle_age_micros_max.max(other.idle_age_micros_max);
        self.bytes_percent_max = self.bytes_percent_max.max(other.bytes_percent_max);
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { cuts, cuts_with_loss, commits, .. } = self;
        let ms = |micros: u64| micros as f64 / 1000.0;
        write!(
            f,
            "{cuts} cuts, {cuts_with_loss} took {commits} commits; the oldest {:.3} ms, \
             {:.3} without rounds; at most {} % of the bytes",
            ms(self.age_micros_max),
            ms(self.idle_age_micros_max),
            self.bytes_percent_max
        )
    }
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    window: Duration,
    window_bytes: u64,
    /// The longest round, in microseconds.
    round_micros_max: u64,
    /// The longest pause between two commits, in microseconds.
    pause_micros_max: u64,
    payload_bytes_max: u64,
    commits: usize,
}

impl Plan {
    fn draw(random: &mut Random) -> Plan {
        let millis = [1, 5, 10, 50][random.below(4) as usize];
        let micros = millis * 1000;
        Plan {
            window: Duration::from_millis(millis),
            window_bytes: [4096, 16 << 10, 64 << 10][random.below(3) as usize],
            round_micros_max: [1, micros / 10, micros / 2, micros * 4][random.below(4) as usize],
            pause_micros_max: [micros / 50, micros / 5, micros * 2][random.below(3) as usize],
            payload_bytes_max: [10, 200, 1500][random.below(3) as usize],
            commits: 60 + random.below(120) as usize,
        }
    }

    fn options(&self) -> Options {
        Options {
            delayed_window_ms: u64::try_from(self.window.as_millis()).unwrap_or(u64::MAX),
            delayed_window_bytes: self.window_bytes,
            // In the middle of a round nobody can make a segment.
            log_segment_bytes: 1 << 20,
            log_capacity_bytes: 16 << 20,
            background: Background::Callers,
            cpus_kept_free: usize::MAX,
            ..Options::small()
        }
    }

    fn window_micros(&self) -> u64 {
        u64::try_from(self.window.as_micros()).unwrap_or(u64::MAX)
    }
}

/// A run of the window: the engine, and what is known about it.
struct Run {
    plan: Plan,
    disk: CrashDisk,
    database: Database,
    table: Table,
    session: Session,
    book: Arc<Mutex<Book>>,
    random: Random,
    /// When whoever has the duty of the log's thread comes next.
    alarm: Option<u64>,
}

/// Runs one seed and cuts its power at each boundary, `modes` times.
///
/// # Errors
/// The first violation.
pub fn simulate(seed: u64, modes: u64, summary: &mut Summary) -> Checked<()> {
    guarded(&format!("window of seed {seed}"), || {
        let mut random = Random::for_part(seed, 77);
        let plan = Plan::draw(&mut random);
        summary.runs += 1;
        let gate = Gate::new();
        let mut run = Run::prepare(plan, random, &gate)?;
        let first = run.disk.operation_count();
        let helper = Arc::new(Mutex::new(Helper::start(&run)?));
        run.go(&gate, &helper)?;
        drop(helper);
        run.cut(first, modes, summary)
    })
}

impl Run {
    fn prepare(plan: Plan, random: Random, gate: &Gate) -> Checked<Run> {
        let disk = CrashDisk::new();
        let gated = Arc::new(GatedDisk::of_rounds(disk.clone(), gate.clone()));
        let prepared =
            Database::create_on(gated, database_folder(), plan.options()).and_then(|database| {
                let definition = TableDefinition::builder(TABLE)
                    .column(ColumnDefinition::new("id", DataType::Int64).not_null())
                    .column(ColumnDefinition::new("payload", DataType::Bytes))
                    .primary_key(["id"])
                    .build()?;
                let table = database.create_table(definition)?;
                let session = database.session()?;
                Ok((database, table, session))
            });
        let (database, table, mut session) =
            prepared.map_err(|error| Violation(format!("prepare: {error}")))?;
        session.set_durability(Durability::Delayed);
        let book = Arc::default();
        let run = Run { plan, disk, database, table, session, book, random, alarm: None };
        run.advance(Duration::ZERO, false);
        Ok(run)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self, by: Duration, in_round: bool) {
        advance(&self.book, &self.disk, &self.database, by, in_round);
    }

    /// Commits, pauses, alarms.
    fn go(&mut self, gate: &Gate, helper: &Arc<Mutex<Helper>>) -> Checked<()> {
        gate.open(helper::visitor(self, Arc::clone(helper)));
        while self.book().commits.len() < self.plan.commits {
            let pause = match self.random.below(4) {
                0 => self.random.below(self.plan.pause_micros_max + 1),
                _ => self.random.below(10),
            };
            self.pause(pause, helper)?;
            match self.random.below(60) {
                0 => self.done(helper, |database| database.checkpoint().map(|_| ()))?,
                1 => self.done(helper, Database::barrier)?,
                2 => self.done(helper, Database::write_log)?,
                _ => {
                    let durability = if self.random.chance(1, 40) {
                        Durability::Durable
                    } else {
                        Durability::Delayed
                    };
                    self.commit(durability, helper)?;
                }
            }
        }
        gate.close();
        // What a cut long after the last commit leaves.
        self.pause(self.plan.window_micros() * 3, helper)
    }

    /// Lets time pass, and the alarm go off in it.
    fn pause(&mut self, micros: u64, helper: &Mutex<Helper>) -> Checked<()> {
        let until = self.book().now.micros + micros;
        loop {
            let now = self.book().now.micros;
            if self.alarm.is_none() {
                self.set_alarm(helper)?;
            }
            let Some(alarm) = self.alarm.filter(|alarm| *alarm <= until) else { break };
            self.advance(Duration::from_micros(alarm.saturating_sub(now)), false);
            self.alarm = None;
            self.set_alarm(helper)?;
        }
        let now = self.book().now.micros;
        self.advance(Duration::from_micros(until.saturating_sub(now)), false);
        Ok(())
    }

    /// Does what is due, and comes again when the engine says, a little late.
    fn set_alarm(&mut self, helper: &Mutex<Helper>) -> Checked<()> {
        let mut left = None;
        self.done(helper, |database| {
            left = database.write_due()?;
            Ok(())
        })?;
        let late = self.random.below(self.plan.window_micros() / 2 + 1);
        let now = self.book().now.micros;
        self.alarm = left.map(|left| now + u64::try_from(left.as_micros()).unwrap_or(0) + late);
        Ok(())
    }

    fn done(
        &self,
        helper: &Mutex<Helper>,
        call: impl FnOnce(&Database) -> onrush::Result<()>,
    ) -> Checked<()> {
        let outcome = call(&self.database);
        helper::locked(helper).join()?;
        self.book().failed.take().map_or(Ok(()), Err)?;
        outcome.map_err(|error| Violation(error.to_string()))
    }

    fn commit(&mut self, durability: Durability, helper: &Mutex<Helper>) -> Checked<()> {
        let payload = vec![7; self.random.below(self.plan.payload_bytes_max + 1) as usize];
        let number = helper::locked(helper).next_number();
        self.session.set_durability(durability);
        let row = [number.into(), payload.into()];
        let outcome = self.session.insert(&self.table, &row);
        outcome.map_err(|error| Violation(format!("insert: {error}")))?;
        let end = self.session.last_commit_lsn().map_or(0, |end| end.0);
        note(&self.book, &self.disk, number, (end, durability));
        helper::locked(helper).join()?;
        self.book().failed.take().map_or(Ok(()), Err)
    }

    /// The power fails at each boundary.
    fn cut(self, first: usize, modes: u64, summary: &mut Summary) -> Checked<()> {
        let Run { plan, disk, database, table, session, book, mut random, .. } = self;
        let operations_end = disk.operation_count();
        let mut sweep = disk.sweep();
        drop((session, table, database));
        let book = std::mem::take(&mut *book.lock().unwrap_or_else(PoisonError::into_inner));
        sweep.advance_to(first);
        loop {
            let boundary = sweep.at_operation();
            let at = book.operations.get(boundary).copied().unwrap_or(book.now);
            for _ in 0..modes {
                let mode = CrashMode::ALL[random.below(CrashMode::ALL.len() as u64) as usize];
                let image = sweep.image(mode, random.next_number());
                let place = format!("boundary {boundary} of {operations_end}, {mode:?}");
                *summary.images.entry(mode).or_default() += 1;
                summary.recoveries += 1;
                let window = plan.window.as_millis();
                let loss = summary.windows.entry(window as u64).or_default();
                guarded(&place, || look(&plan, &book, boundary, at, image, loss))?;
            }
            if boundary == operations_end || !sweep.advance() {
                return Ok(());
            }
        }
    }
}

/// Moves both clocks, or only the one that does not stop during rounds.
fn advance(
    book: &Mutex<Book>,
    disk: &CrashDisk,
    database: &Database,
    by: Duration,
    in_round: bool,
) {
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    let now = book.now;
    book.operations.resize(disk.operation_count(), now);
    let micros = u64::try_from(by.as_micros()).unwrap_or(0);
    book.now.micros += micros;
    book.now.idle_micros += if in_round { 0 } else { micros };
    database.set_time(Duration::from_micros(book.now.micros));
}

/// A commit was acknowledged.
fn note(book: &Mutex<Book>, disk: &CrashDisk, number: i64, (end, durability): (u64, Durability)) {
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    let acknowledged = book.now;
    let timestamp = disk.operation_count();
    book.commits.push(Commit { number, acknowledged, timestamp, end, durability });
}

/// What a power cut at `boundary`, at the time `at`, has left.
fn look(
    plan: &Plan,
    book: &Book,
    boundary: usize,
    at: Time,
    image: CrashDisk,
    loss: &mut Loss,
) -> Checked<()> {
    let found = numbers_found(Arc::new(image), &database_folder(), plan.options())?;
    loss.cuts += 1;
    let is_lost = |commit: &&Commit| commit.number >= found && commit.timestamp <= boundary;
    let lost: Vec<&Commit> = book.commits.iter().filter(is_lost).collect();
    let Some(newest) = lost.iter().map(|commit| commit.end).max() else { return Ok(()) };
    loss.cuts_with_loss += 1;
    loss.commits += lost.len() as u64;
    let kept = book.commits.iter().find(|commit| commit.number == found - 1);
    // The first of all commits has the window to itself.
    let bytes = newest.saturating_sub(kept.map_or(newest, |commit| commit.end));
    loss.bytes_percent_max = loss.bytes_percent_max.max(bytes * 100 / plan.window_bytes);
    if bytes > plan.window_bytes {
        violation!("{bytes} bytes of acknowledged commits are lost, of {}", plan.window_bytes);
    }
    for commit in lost {
        if commit.durability == Durability::Durable {
            violation!("a commit that was acknowledged as durable is lost: {commit:?}");
        }
        let age = at.micros - commit.acknowledged.micros;
        let idle_age = at.idle_micros - commit.acknowledged.idle_micros;
        loss.age_micros_max = loss.age_micros_max.max(age);
        loss.idle_age_micros_max = loss.idle_age_micros_max.max(idle_age);
        if idle_age > plan.window_micros() {
            violation!("a commit of {idle_age} us ago is lost ({age} by the watch): {commit:?}");
        }
    }
    Ok(())
}

/// How many commits are there: the first ones, without a gap.
fn numbers_found(disk: Arc<CrashDisk>, folder: &Path, options: Options) -> Checked<i64> {
    let scanned = Database::open_on(disk, folder, options).and_then(|database| {
        let table = database.table(TABLE)?;
        let scan = database.session()?.scan(&table, &Default::default())?;
        scan.map(|row| row.map(|row| row[0].clone())).collect::<onrush::Result<Vec<_>>>()
    });
    let keys = scanned.map_err(|error| Violation(format!("open: {error}")))?;
    let gap = keys.iter().zip(0i64..).find(|(key, number)| **key != (*number).into());
    match gap {
        Some((key, number)) => violation!("commit {number} is lost, and {key:?} is not"),
        None => Ok(keys.len() as i64),
    }
}
