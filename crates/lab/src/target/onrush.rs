//! Onrush in this process, by its public API.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::LabError;
use onrush::{
    Database, DrainOptions, Durability, LargePages, Options, PastMemory, SequentialKeys,
    Statistics, TableDefinition,
};
use onrush_check::{CheckError, CheckOptions, CheckReport, DOP_MAX, Progress, check};
use onrush_files::OsDisk;
use onrush_measure::case::log_bytes_max;
use onrush_measure::classic_table::{CLASSIC_TABLE, NumberColumns, classic_front, classic_table};
use onrush_measure::load::client_keys::KeySpread;
use onrush_measure::load::{ClientLoad, Loaded};
use onrush_measure::machine;
use onrush_measure::place::Place;
use onrush_measure::progress::{Observer, Step};
use onrush_measure::result::percentiles;
use onrush_measure::settings::{DATA_FILES_MAX, Driver, Leave, Placement, commit_too_large};
use onrush_measure::stand::{Stand, StandLoad};
use onrush_measure::verify::Verification;

use super::counted::{log_writes, snapshot};
use super::record::{self, CounterRecord, Snapshot};
use super::{Checked, Instance, LoadFigures, LoadOrder, Sampler, Target};
use crate::own_table::OwnTable;
use crate::study::{Setting, Settings, TargetShown};

/// The log is cut into files of a sixteenth of its space, of these sizes: a space too small for the least is
/// refused under its own name.
const LOG_SEGMENT_BYTES_MIN: u64 = 64 << 10;
const LOG_SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// Onrush, embedded.
#[derive(Default)]
pub(super) struct Onrush {
    /// Where the page for Prometheus is served while a database is open.
    pub(super) metrics: Option<SocketAddr>,
}

impl Target for Onrush {
    fn name(&self) -> &'static str {
        "onrush"
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        let by_statements = settings.rows_per_statement() < settings.number(Setting::RowsPerCommit);
        let is_tasks = settings.is(Setting::Driver, "tasks");
        let sessions = settings.size(Setting::Sessions);
        if settings.is_check() && settings.number(Setting::CheckThreads) > DOP_MAX as u64 {
            return Some(format!("its check takes at most {DOP_MAX} threads"));
        }
        if settings.is_check() && settings.is_on(Setting::Front) {
            return Some("rows in a front are in memory only: there is nothing to check".into());
        }
        if settings.is(Setting::LoopIn, "server") {
            return Some("it runs in this process: there is no server to put the loop in".into());
        }
        if by_statements && settings.rows_per_statement() > 1 {
            return Some("a call brings one row, or all rows of a transaction".into());
        }
        if by_statements && is_tasks {
            return Some("tasks bring all rows of a transaction in one call".into());
        }
        if is_tasks && settings.number(Setting::RowsPerSecondMax) > 0 {
            return Some("tasks go as fast as they can; only threads keep a pace".into());
        }
        if !is_tasks && sessions > 4096 {
            return Some(format!("{sessions} sessions are too many for one thread each"));
        }
        let folders = placement(settings, Path::new("")).data_folders.len();
        if folders > DATA_FILES_MAX {
            return Some(format!(
                "data_folders names {folders} folders; a database has at most {DATA_FILES_MAX} data \
                 files"
            ));
        }
        let options = match options(settings) {
            Ok(options) => options,
            Err(reason) => return Some(reason),
        };
        let each = settings.rows().div_ceil(settings.number(Setting::Sessions).max(1));
        let commit = settings.number(Setting::RowsPerCommit).min(each);
        commit_too_large(commit, &options)
            .or_else(|| impossible_client(settings))
            .or_else(|| own_table(settings).err())
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let options = options(settings).map_err(LabError::Setting)?;
        let text = format!("{options:#?}");
        let lines =
            text.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "));
        let settings = lines.map(|(name, value)| (name, value.to_owned()));
        Ok(TargetShown::of(env!("CARGO_PKG_VERSION"), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        let mut options = options(settings).map_err(LabError::Setting)?;
        let place = Place::prepare(&placement(settings, folder))?;
        place.apply(&mut options);
        let rows = settings.rows()
            + settings.number(Setting::PreloadRows)
            + settings.number(Setting::WarmupRows);
        let log_bytes = log_bytes_max(rows, settings.number(Setting::RowsPerCommit), &options);
        place.check_space(rows, settings.key(), log_bytes)?;
        let mut stand = Stand::create(place.folder(), options, definitions(settings)?, true)?;
        for column in settings.indexed_columns() {
            stand.add_index(column)?;
        }
        if let Some(address) = self.metrics {
            stand.serve_metrics(address)?;
        }
        if settings.is_on(Setting::Front) {
            let interval = Duration::from_millis(settings.number(Setting::DrainIntervalMs));
            let rows_max = settings.number(Setting::DrainRows);
            let drain = DrainOptions { interval, rows_max };
            stand.add_front(self::definition(settings, true)?, drain)?;
        }
        Ok(Box::new(OnrushInstance { stand, settings: settings.clone(), place }))
    }
}

struct OnrushInstance {
    stand: Stand, // before its place: the database is closed before its files are removed
    settings: Settings,
    place: Place,
}

impl Instance for OnrushInstance {
    fn load(&mut self, order: LoadOrder, observer: &dyn Observer) -> Result<LoadFigures, LabError> {
        let settings = &self.settings;
        let sessions = settings.size(Setting::Sessions);
        let load = match order.step {
            Step::Preload => StandLoad::preload(order.rows, sessions, client_load(settings)),
            step => StandLoad {
                rows: order.rows,
                sessions,
                rows_per_commit: settings.number(Setting::RowsPerCommit),
                rows_per_statement: settings.rows_per_statement(),
                durability: durability(settings),
                driver: match settings.is(Setting::Driver, "tasks") {
                    true => Driver::Tasks,
                    false => Driver::Threads,
                },
                step,
                is_pinned: settings.is(Setting::Pinning, "session"),
                time_max: settings.time_max().filter(|_| step == Step::Load),
                rows_per_s_max: rows_per_s_max(settings).filter(|_| step == Step::Load),
                client: client_load(settings),
            },
        };
        let loaded = self.stand.load(load, observer)?;
        if order.step == Step::Preload {
            self.stand.barrier()?;
            self.stand.database()?.checkpoint()?;
        }
        Ok(figures(&loaded))
    }

    fn settle(&mut self) -> Result<(), LabError> {
        Ok(self.stand.barrier()?)
    }

    fn check(&mut self, observer: &dyn Observer) -> Result<Checked, LabError> {
        self.stand.leave(Leave::Close, observer)?;
        let disk = match self.settings.is(Setting::CheckReads, "device") {
            true => OsDisk::new(),
            false => OsDisk::buffered(),
        };
        let (rows, options) = (self.stand.rows_acknowledged(), check_options(&self.settings));
        observer.begin(Step::Check, None);
        let mut report = None;
        let passed = Checked::of(rows, || {
            let found = check(Arc::new(disk), self.place.folder(), &options, &Progress::default())?;
            let bytes = found.read_bytes;
            report = Some(found);
            Ok::<_, CheckError>(bytes)
        });
        observer.end();
        let told = |what: String| LabError::Target { target: "onrush".into(), what };
        let passed = passed.map_err(|error| told(error.to_string()))?;
        let faults = report.into_iter().filter_map(|found| fault_of(&found, rows));
        faults.map(told).next().map_or(Ok(passed), Err)
    }

    fn statistics(&mut self) -> Result<Snapshot, LabError> {
        let mut snapshot = snapshot(&self.stand.database()?.statistics());
        if let Some(drained) = self.stand.drained() {
            let behind_ms = u64::try_from(drained.behind_max.as_millis()).unwrap_or(u64::MAX);
            snapshot.counters.push(CounterRecord::level(record::DRAIN_BEHIND, "ms", behind_ms));
        }
        let large = machine::large_page_bytes_used();
        snapshot.counters.push(CounterRecord::level(record::LARGE_PAGE_BYTES, "bytes", large));
        Ok(snapshot)
    }

    fn sampler(&mut self) -> Option<Sampler> {
        let database: Database = self.stand.database().ok()?.clone();
        let mut before: Option<Statistics> = None;
        Some(Box::new(move || {
            let now = database.statistics();
            let mut snapshot = snapshot(&now);
            if let Some(before) = before.replace(now.clone()) {
                snapshot.counters.extend(log_writes(&now.since(&before)));
            }
            Some(snapshot)
        }))
    }

    fn verify(&mut self, observer: &dyn Observer) -> Result<Option<Verification>, LabError> {
        let leave =
            if self.settings.is(Setting::Leave, "drop") { Leave::Drop } else { Leave::Close };
        self.stand.leave(leave, observer)?;
        let (verdict, _) = self.stand.verify(observer)?;
        if !verdict.passed {
            self.place.keep();
        }
        Ok(Some(verdict))
    }
}

/// What a load did, of any embedded target.
pub(super) fn figures(loaded: &Loaded) -> LoadFigures {
    LoadFigures {
        rows: loaded.ledger.rows,
        commits: loaded.ledger.commits,
        elapsed: loaded.elapsed,
        cpu: loaded.cpu,
        commit_latency_us: percentiles(&loaded.ledger.commit_times),
    }
}

fn check_options(settings: &Settings) -> CheckOptions {
    CheckOptions {
        dop: settings.size(Setting::CheckThreads),
        physical_only: settings.is(Setting::CheckDepth, "physical"),
        read_stream_per_file: settings.is_on(Setting::CheckStreamPerFile),
        one_batch: settings.is_on(Setting::CheckOneBatch),
        ..CheckOptions::default()
    }
}

/// Why a check says nothing about how fast it is: it found damage, or did not see every row.
fn fault_of(report: &CheckReport, rows: u64) -> Option<String> {
    if !report.is_sound() {
        return Some(format!("its check found: {report}"));
    }
    let seen: u64 = report.tables.iter().map(|table| table.rows).sum();
    (!report.physical_only && seen != rows)
        .then(|| format!("its check saw {seen} rows, and {rows} were acknowledged"))
}

/// The user's own table, if the settings name one.
fn own_table(settings: &Settings) -> Result<Option<OwnTable>, String> {
    let path = settings.text(Setting::Table);
    (!path.is_empty()).then(|| OwnTable::read(Path::new(&path))).transpose()
}

/// The table that is loaded, or its front.
fn definition(settings: &Settings, is_front: bool) -> Result<TableDefinition, LabError> {
    let own = own_table(settings).map_err(LabError::Setting)?;
    let definition = match (own, is_front) {
        (Some(table), false) => table.definition(settings.key(), &table.name),
        (Some(table), true) => table.front(settings.key()),
        (None, false) => classic_table(CLASSIC_TABLE, settings.key()).map_err(|e| e.to_string()),
        (None, true) => classic_front(settings.key()).map_err(|e| e.to_string()),
    };
    definition.map_err(LabError::Setting)
}

/// The tables that are loaded: copies of one, told apart by a number.
fn definitions(settings: &Settings) -> Result<Vec<TableDefinition>, LabError> {
    let mut definitions = vec![definition(settings, false)?];
    for number in 2..=settings.number(Setting::Tables) {
        let name = format!("{CLASSIC_TABLE}_{number}");
        let definition = classic_table(&name, settings.key());
        definitions.push(definition.map_err(onrush::Error::from)?);
    }
    Ok(definitions)
}

/// What sessions do that bring their keys.
fn client_load(settings: &Settings) -> Option<ClientLoad> {
    settings.is(Setting::KeySource, "client").then(|| ClientLoad {
        key: settings.key(),
        spread: settings.key_spread(),
        numbers: settings.number_columns(),
        mix: settings.mix(),
    })
}

/// Why sessions that bring their keys, or go round many tables, cannot load so.
fn impossible_client(settings: &Settings) -> Option<String> {
    let is_classic = settings.text(Setting::Table).is_empty() && !settings.is_on(Setting::Front);
    let is_single =
        settings.number(Setting::RowsPerCommit) == 1 && settings.is(Setting::Driver, "threads");
    let has_many_tables = settings.number(Setting::Tables) > 1;
    let is_mixed = !settings.mix().is_inserts_only();
    let is_client = settings.is(Setting::KeySource, "client");
    let refused = [
        (
            !is_client && (is_mixed || settings.key_spread() != KeySpread::Even),
            "key_spread, reads and updates are for key_source = \"client\"",
        ),
        (
            !is_client && settings.number_columns() == NumberColumns::Random,
            "the engine makes keys, and no random numbers: set key_source to \"client\"",
        ),
        (
            is_client && !(is_classic && is_single),
            "a client brings its keys in commits of one row, by threads, to the classic table itself",
        ),
        (has_many_tables && is_mixed, "reads and updates are of one table"),
        (has_many_tables && !is_classic, "many tables are classic ones, without a front"),
    ];
    let own = refused.into_iter().find_map(|(is_refused, why)| is_refused.then(|| why.to_owned()));
    settings.impossible_client().or(own)
}

fn rows_per_s_max(settings: &Settings) -> Option<f64> {
    let rate = settings.number(Setting::RowsPerSecondMax);
    (rate > 0).then_some(rate as f64)
}

fn durability(settings: &Settings) -> Durability {
    if settings.is_durable() { Durability::Durable } else { Durability::Delayed }
}

fn placement(settings: &Settings, folder: &Path) -> Placement {
    let text = |setting| Some(settings.text(setting)).filter(|text| !text.is_empty());
    let folders = text(Setting::DataFolders).unwrap_or_default();
    let names = folders.split(',').map(str::trim).filter(|one| !one.is_empty());
    Placement {
        folder: Some(folder.join("onrush")),
        keep: false,
        // Those that begin at the root stand as they are.
        data_folders: names.map(|one| folder.join(one)).collect(),
        data_files: settings.size(Setting::DataFiles),
        log_folder: text(Setting::LogFolder).map(|one| folder.join(one)),
    }
}

/// The engine's options, folders apart; or why there are none.
pub(super) fn options(settings: &Settings) -> Result<Options, String> {
    let text = |setting| Some(settings.text(setting)).filter(|text| !text.is_empty());
    let number = |setting: Setting| {
        let Some(text) = text(setting) else { return Ok(None) };
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.map(Some).map_err(|_| format!("{} is {text:?}; give a number", setting.name()))
    };
    let log_capacity_bytes = settings.number(Setting::LogCapacityBytes);
    let options = Options {
        durability: durability(settings),
        leaf_memory_bytes: settings.size(Setting::CacheBytes),
        prefault_leaf_memory: settings.is_on(Setting::PrefaultLeafMemory),
        past_memory: match settings.is(Setting::PastMemory, "auto") {
            true => PastMemory::Auto,
            false => PastMemory::Off,
        },
        checkpoint_seconds: settings.number(Setting::CheckpointSeconds),
        checkpoint_log_bytes: settings.number(Setting::CheckpointLogBytes),
        log_block_bytes_max: settings.size(Setting::LogBlockBytesMax),
        log_capacity_bytes,
        log_segment_bytes: (log_capacity_bytes / 16 / 4096 * 4096)
            .clamp(LOG_SEGMENT_BYTES_MIN, LOG_SEGMENT_BYTES_MAX),
        elide_defaults: settings.is_on(Setting::ElideDefaults),
        sequential_keys: match settings.is(Setting::SequentialKeys, "shared-edge") {
            true => SequentialKeys::SharedEdge,
            false => SequentialKeys::Blocks,
        },
        large_pages: match settings.text(Setting::LargePages).as_str() {
            "off" => LargePages::Off,
            "require" => LargePages::Require,
            _ => LargePages::Try,
        },
        delayed_window_ms: settings.number(Setting::DelayedWindowMs),
        delayed_window_bytes: settings.number(Setting::DelayedWindowBytes),
        commit_polling_us: settings.number(Setting::CommitPollingUs),
        cpu_mask: number(Setting::CpuMask)?,
        cpus_kept_free: settings.size(Setting::CpusKeptFree),
        log_writer_cpu: number(Setting::LogWriterCpu)?.map(|cpu| cpu as usize),
        ..Options::default()
    };
    options.validate().map_err(|error| error.to_string())?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_lie_below_the_runs_own_and_others_where_they_are() {
        let settings = Settings::default()
            .with(Setting::LogFolder, "log-apart")
            .with(Setting::DataFolders, "one, /mnt/b");
        let placement = placement(&settings, Path::new("/disk/run"));
        assert_eq!(placement.log_folder.as_deref(), Some(Path::new("/disk/run/log-apart")));
        assert_eq!(placement.data_folders, [Path::new("/disk/run/one"), Path::new("/mnt/b")]);
        assert_eq!(self::placement(&Settings::default(), Path::new("/disk/run")).log_folder, None);
    }
}
