//! One measured load from beginning to end: folders, device, database, load, reopening, verdict.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onrush::{Database, Durability, LogStatistics, Options, Table};
use onrush_files::OsDisk;

use crate::classic_table::{CLASSIC_TABLE, classic_table};
use crate::disk::{SyncTime, sync_time};
use crate::error::LabError;
use crate::load::ledger::{KeySample, LedgerKind};
use crate::load::{self, LoadPlan, Loaded};
use crate::machine::FileSystem;
use crate::place::Place;
use crate::progress::{Observer, Step};
use crate::result::{CellResult, Measured};
use crate::settings::{CellSettings, Driver, Leave};
use crate::verify::{self, Acknowledged, Verification};

/// Time for one measurement of the sync time, before and after the load.
const SYNC_BUDGET: Duration = Duration::from_millis(700);
/// The same for a load of few rows, whose figures are rough anyway.
const SYNC_BUDGET_SMALL: Duration = Duration::from_millis(50);
/// Few rows.
const SMALL_ROWS: u64 = 20_000;

/// Makes a database, loads it, opens it again and compares. A failed comparison is part of the
/// result; the database is then kept, whatever was asked for.
///
/// # Errors
/// Settings out of range, too little room, and whatever the engine or the disk reports.
pub fn run_cell(settings: &CellSettings, observer: &dyn Observer) -> Result<CellResult, LabError> {
    settings.validate().map_err(LabError::Setting)?;
    let mut place = Place::prepare(&settings.placement)?;
    let file_system = FileSystem::under(place.sync_folder())
        .map_err(|error| LabError::folder("measure", place.sync_folder(), error))?;
    let sync_before = measure_sync(settings, &place, observer)?;
    let rows = settings.rows_on(&sync_before);
    let all_rows = rows.saturating_add(settings.preload_rows);
    place.check_room(all_rows, settings.key, log_bytes_max(settings, all_rows))?;

    let mut options = settings.engine.clone();
    options.durability = settings.durability;
    place.apply(&mut options);
    let started_micros = unix_micros();
    let database = Database::create(place.folder(), options.clone())?;
    let table = database.create_table(definition(settings)?)?;
    let mut acknowledged = Acknowledged {
        rows: 0,
        fingerprint: crate::Fingerprint::default(),
        keys: KeySample::default(),
        inserted_micros: (started_micros, started_micros),
    };
    if settings.preload_rows > 0 {
        let loaded = preload(settings, &database, &table, observer)?;
        acknowledged.add(loaded);
    }
    let plan = LoadPlan {
        database: &database,
        table: &table,
        rows,
        sessions: settings.sessions,
        rows_per_commit: settings.rows_per_commit,
        durability: settings.durability,
        driver: settings.driver,
        ledger: ledger_kind(settings, settings.durability),
        step: Step::Load,
    };
    let before = database.statistics();
    let loaded = load::run(&plan, observer)?;
    let load_ended = Instant::now();
    database.barrier()?;
    let durable_after = load_ended.elapsed();
    acknowledged.inserted_micros.1 = unix_micros();
    let after = database.statistics();

    let mut measured = Measured {
        elapsed: loaded.elapsed,
        cpu: loaded.cpu,
        rows: loaded.ledger.rows,
        commits: loaded.ledger.commits,
        commit_times: loaded.ledger.commit_times.clone(),
        durable_after,
        log: difference(&after.log, &before.log),
        waits: after.totals.since(&before.totals),
        sync: sync_before,
        sync_before,
        sync_after: sync_before,
        close: Duration::ZERO,
        reopen: Duration::ZERO,
    };
    acknowledged.add(loaded);
    drop(table);
    measured.close = leave(settings.leave, database, observer)?;
    measured.sync_after = measure_sync(settings, &place, observer)?;
    measured.sync = sync_before.better(measured.sync_after);
    let mut verification = None;
    if settings.verify {
        let (verdict, reopen) =
            reopen_and_verify(place.folder(), options, &acknowledged, observer)?;
        measured.reopen = reopen;
        if !verdict.passed {
            place.keep();
        }
        verification = Some(verdict);
    }
    let kept = place.is_kept().then(|| place.folder().to_owned());
    Ok(CellResult::new(settings, &file_system, &measured, verification, kept.as_deref()))
}

fn definition(settings: &CellSettings) -> Result<onrush::TableDefinition, LabError> {
    Ok(classic_table(CLASSIC_TABLE, settings.key).map_err(onrush::Error::from)?)
}

fn measure_sync(
    settings: &CellSettings,
    place: &Place,
    observer: &dyn Observer,
) -> Result<SyncTime, LabError> {
    let is_small = settings.rows.is_some_and(|rows| rows <= SMALL_ROWS);
    let budget = if is_small { SYNC_BUDGET_SMALL } else { SYNC_BUDGET };
    observer.begin(Step::MeasureSync, None);
    let sync = sync_time::measure(&OsDisk::new(), place.sync_folder(), budget);
    observer.end();
    Ok(sync?)
}

/// The log takes at most its capacity, and no more than the rows need.
fn log_bytes_max(settings: &CellSettings, rows: u64) -> u64 {
    let blocks = (rows / settings.rows_per_commit.max(1)).saturating_mul(4096);
    let needed =
        rows.saturating_mul(256).saturating_add(blocks) + 4 * settings.engine.log_segment_bytes;
    needed.min(settings.engine.log_capacity_bytes)
}

fn ledger_kind(settings: &CellSettings, durability: Durability) -> LedgerKind {
    LedgerKind { is_durable: durability == Durability::Durable, remembers_rows: settings.verify }
}

/// Rows that are there before the clock starts: inserted as fast as possible, then checkpointed.
fn preload(
    settings: &CellSettings,
    database: &Database,
    table: &Table,
    observer: &dyn Observer,
) -> Result<Loaded, LabError> {
    let loaded = load::run(
        &LoadPlan {
            database,
            table,
            rows: settings.preload_rows,
            sessions: settings.sessions,
            rows_per_commit: 1,
            durability: Durability::Delayed,
            driver: Driver::Tasks,
            ledger: ledger_kind(settings, Durability::Delayed),
            step: Step::Preload,
        },
        observer,
    )?;
    database.barrier()?;
    database.checkpoint()?;
    Ok(loaded)
}

fn leave(how: Leave, database: Database, observer: &dyn Observer) -> Result<Duration, LabError> {
    observer.begin(Step::Close, None);
    let started = Instant::now();
    let closed = match how {
        Leave::Close => database.close(),
        Leave::Drop => {
            drop(database);
            Ok(())
        }
    };
    observer.end();
    closed?;
    Ok(started.elapsed())
}

fn reopen_and_verify(
    folder: &Path,
    options: Options,
    acknowledged: &Acknowledged,
    observer: &dyn Observer,
) -> Result<(Verification, Duration), LabError> {
    observer.begin(Step::Reopen, None);
    let started = Instant::now();
    let database = Database::open(folder, options);
    observer.end();
    let database = database?;
    let reopen = started.elapsed();
    let table = database.table(CLASSIC_TABLE)?;
    let verdict = verify::verify(&database, &table, acknowledged, observer)?;
    drop(table);
    database.close()?;
    Ok((verdict, reopen))
}

impl Acknowledged {
    fn add(&mut self, loaded: Loaded) {
        self.rows += loaded.ledger.rows;
        self.fingerprint.merge(&loaded.ledger.fingerprint);
        self.keys.merge(loaded.ledger.keys);
    }
}

fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// What the log did between two moments. The longest gap is that of the whole time.
fn difference(after: &LogStatistics, before: &LogStatistics) -> LogStatistics {
    LogStatistics {
        blocks: after.blocks - before.blocks,
        bytes: after.bytes - before.bytes,
        padding_bytes: after.padding_bytes - before.padding_bytes,
        record_bytes: after.record_bytes - before.record_bytes,
        syncs: after.syncs - before.syncs,
        rounds: after.rounds - before.rounds,
        waiters_served: after.waiters_served - before.waiters_served,
        ..after.clone()
    }
}
