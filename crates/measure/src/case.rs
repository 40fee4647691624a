//! One measured load from beginning to end: folders, device, database, load, reopening, verdict.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use onrush::Options;
use onrush_files::OsDisk;

use crate::classic_table::{CLASSIC_TABLE, classic_table};
use crate::disk::{SyncTime, sync_time};
use crate::error::{FolderError, MeasureError};
use crate::machine::{self, FileSystem};
use crate::place::Place;
use crate::progress::{Observer, Step};
use crate::result::{CaseResult, Measured};
use crate::settings::CaseSettings;
use crate::stand::{Reopened, Stand, StandLoad};

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
/// Settings out of range, too little space, and whatever the engine or the disk reports.
pub fn run_case(
    settings: &CaseSettings,
    observer: &dyn Observer,
) -> Result<CaseResult, MeasureError> {
    settings.validate().map_err(MeasureError::Setting)?;
    let definition = classic_table(CLASSIC_TABLE, settings.key).map_err(onrush::Error::from)?;
    if let Some(address) = settings.metrics {
        // Given back at once: whoever takes it in between is told of later.
        TcpListener::bind(address).map_err(|source| MeasureError::Metrics { address, source })?;
    }
    let mut place = Place::prepare(&settings.placement)?;
    let file_system = FileSystem::under(place.sync_folder())
        .map_err(|error| FolderError::new("measure", place.sync_folder(), error))?;
    let check_space = |rows: u64| {
        let all_rows = rows.saturating_add(settings.preload_rows);
        let log_bytes = log_bytes_max(all_rows, settings.rows_per_commit, &settings.engine);
        place.check_space(all_rows, settings.key, log_bytes)
    };
    settings.rows.map_or(Ok(()), check_space)?;
    let sync_before = measure_sync(settings, &place, observer)?;
    let rows = settings.rows_on(&sync_before);
    check_space(rows)?;

    let mut options = settings.engine.clone();
    options.durability = settings.durability;
    place.apply(&mut options);
    let mut stand = Stand::create(place.folder(), options, vec![definition], settings.verify)?;
    if let Some(address) = settings.metrics {
        let served = stand.serve_metrics(address)?;
        observer.tell(&format!("statistics for Prometheus: http://{served}/metrics"));
    }
    if settings.preload_rows > 0 {
        stand.load(StandLoad::preload(settings.preload_rows, settings.sessions, None), observer)?;
        stand.barrier()?;
        stand.database()?.checkpoint()?;
    }
    let load = StandLoad {
        rows,
        sessions: settings.sessions,
        rows_per_commit: settings.rows_per_commit,
        rows_per_statement: settings.rows_per_commit,
        durability: settings.durability,
        driver: settings.driver,
        step: Step::Load,
        is_pinned: false,
        time_max: None,
        rows_per_s_max: None,
        client: None,
    };
    let before = stand.database()?.statistics();
    let loaded = stand.load(load, observer)?;
    let load_ended = Instant::now();
    stand.barrier()?;
    let durable_after = load_ended.elapsed();
    let after = stand.database()?.statistics();
    let large_page_bytes = machine::large_page_bytes_used();

    let close = stand.leave(settings.leave, observer)?;
    let sync_after = measure_sync(settings, &place, observer)?;
    let mut measured = Measured {
        elapsed: loaded.elapsed,
        cpu: loaded.cpu,
        rows: loaded.ledger.rows,
        commits: loaded.ledger.commits,
        commit_times: loaded.ledger.commit_times,
        durable_after,
        log: after.log.since(&before.log),
        waits: after.totals.since(&before.totals),
        large_page_bytes,
        sync: sync_before.better(sync_after),
        sync_before,
        sync_after,
        close,
        reopened: Reopened::default(),
    };
    let mut verification = None;
    if settings.verify {
        let (verdict, reopened) = stand.verify(observer)?;
        measured.reopened = reopened;
        if !verdict.passed {
            place.keep();
        }
        verification = Some(verdict);
    }
    let kept = place.is_kept().then(|| place.folder().to_owned());
    Ok(CaseResult::new(settings, &file_system, &measured, verification, kept.as_deref()))
}

fn measure_sync(
    settings: &CaseSettings,
    place: &Place,
    observer: &dyn Observer,
) -> Result<SyncTime, MeasureError> {
    let is_small = settings.rows.is_some_and(|rows| rows <= SMALL_ROWS);
    let budget = if is_small { SYNC_BUDGET_SMALL } else { SYNC_BUDGET };
    observer.begin(Step::MeasureSync, None);
    let sync = sync_time::measure(&OsDisk::new(), place.sync_folder(), budget);
    observer.end();
    Ok(sync?)
}

/// The log takes at most its capacity, and no more than the rows need.
pub fn log_bytes_max(rows: u64, rows_per_commit: u64, engine: &Options) -> u64 {
    let blocks = (rows / rows_per_commit.max(1)).saturating_mul(4096);
    let needed = rows.saturating_mul(256).saturating_add(blocks) + 4 * engine.log_segment_bytes;
    needed.min(engine.log_capacity_bytes)
}
