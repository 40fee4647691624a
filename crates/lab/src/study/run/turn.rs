//! One run of one case: prepare, preload, warm up, measure, verify, clean up.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::LabError;
use onrush_files::OsDisk;
use onrush_measure::disk::{SyncTime, commits_per_s_bound, sync_time};
use onrush_measure::doubt;
use onrush_measure::machine::{FileSystem, cpus};
use onrush_measure::progress::{Observer, Step};

use super::check;
use super::sampling::{RowsOverTime, Sampling};
use super::stacks::{self, Stacks};
use crate::study::device::DeviceCount;
use crate::study::outcome::{DeviceUse, Repeat, TargetShown};
use crate::study::setting::Setting;
use crate::study::settings::Settings;
use crate::target::instances::Instances;
use crate::target::record::{LOG_BYTES, LOG_RECORD_BYTES, LOG_SYNCS, Snapshot};
use crate::target::{Instance, LoadFigures, LoadOrder, Target};

/// Time for one measurement of the sync time, before and after each run.
pub(super) const SYNC_BUDGET: Duration = Duration::from_millis(60);

/// Where a run puts what it makes.
#[derive(Clone, Copy)]
pub(super) struct Folders<'f> {
    /// Its own, which is empty.
    pub(super) own: &'f Path,
    /// The file of its flame graph, if there is to be one.
    pub(super) stacks: Option<&'f Path>,
}

/// Runs a case once.
pub(super) fn run(
    target: &dyn Target,
    settings: &Settings,
    number: usize,
    folders: Folders<'_>,
    observer: &dyn Observer,
) -> Result<(TargetShown, Repeat), LabError> {
    let folder = folders.own;
    let shown = target.shown(settings)?;
    let sync_before =
        sync_time::measure(&OsDisk::new(), &sync_folder(settings, folder), SYNC_BUDGET)?;
    let mut instance: Box<dyn Instance> = match settings.number(Setting::Instances) {
        1 => target.prepare(settings, folder)?,
        _ => Box::new(Instances::prepare(target, settings, folder)?),
    };
    let measured = measure(&mut *instance, settings, number, folders, sync_before, observer);
    let cleaned = instance.clean_up();
    let repeat = measured?;
    cleaned?;
    Ok((shown, repeat))
}

/// Where commits are made durable: a log on a device of its own has the sync time of that one.
fn sync_folder(settings: &Settings, folder: &Path) -> PathBuf {
    let log_folder = PathBuf::from(settings.text(Setting::LogFolder));
    let is_elsewhere = log_folder.is_absolute() && log_folder.is_dir();
    if is_elsewhere { log_folder } else { folder.to_owned() }
}

fn measure(
    instance: &mut dyn Instance,
    settings: &Settings,
    number: usize,
    Folders { own: folder, stacks }: Folders<'_>,
    sync_before: SyncTime,
    observer: &dyn Observer,
) -> Result<Repeat, LabError> {
    for (setting, step) in
        [(Setting::PreloadRows, Step::Preload), (Setting::WarmupRows, Step::WarmUp)]
    {
        let rows = settings.number(setting);
        if rows > 0 {
            instance.load(LoadOrder { rows, step }, observer)?;
        }
    }
    let started_unix_s = unix_seconds();
    if settings.is_check() {
        let repeat = check::measure(instance, settings, folder, sync_before, observer)?;
        return Ok(Repeat { number, started_unix_s, ..repeat });
    }
    let before = instance.statistics()?;
    let device_before = DeviceCount::under(folder);
    let sampling = instance.sampler().map(Sampling::start);
    let watched = RowsOverTime::new(observer);
    let sampled = stacks.map(|path| (path, Stacks::start()));
    let loaded = instance.load(LoadOrder { rows: settings.rows(), step: Step::Load }, &watched);
    let (mut series, mut marks) = sampling.map(Sampling::end).unwrap_or_default();
    let figures = loaded?;
    let after = DeviceCount::under(folder);
    let device =
        device_before.zip(after).map(|(before, after)| after.since(&before, figures.elapsed));
    let statistics = instance.statistics()?.since(&before);
    let graph = sampled.map(|(path, stacks)| {
        stacks.and_then(Stacks::end).and_then(|report| stacks::write(&report, path))
    });
    marks.extend(instance.marks());
    series.extend(watched.series());
    instance.settle()?;
    let verification = instance.verify(observer)?;
    let sync_after =
        sync_time::measure(&OsDisk::new(), &sync_folder(settings, folder), SYNC_BUDGET)?;
    let sync = sync_before.better(sync_after);
    let mut repeat = figures_of(settings, &figures, &statistics, device, &sync);
    repeat.number = number;
    repeat.started_unix_s = started_unix_s;
    repeat.warnings = doubts(settings, &repeat, folder, (&sync_before, &sync_after));
    match graph {
        Some(Ok(name)) => repeat.stacks = Some(name),
        Some(Err(why)) => repeat.warnings.push(why),
        None => {}
    }
    Ok(Repeat {
        waits: statistics.waits,
        phases: statistics.phases,
        counters: statistics.counters,
        series,
        marks,
        verification,
        ..repeat
    })
}

fn figures_of(
    settings: &Settings,
    figures: &LoadFigures,
    statistics: &Snapshot,
    device: Option<DeviceUse>,
    sync: &SyncTime,
) -> Repeat {
    let elapsed_s = figures.elapsed.as_secs_f64().max(1e-9);
    let (rows, commits) = (figures.rows as f64, figures.commits as f64);
    let syncs = statistics
        .counter(LOG_SYNCS)
        .or_else(|| device.filter(|_| settings.is_durable()).map(|device| device.syncs as f64))
        .filter(|syncs| *syncs > 0.0);
    let log_bytes = statistics.counter(LOG_RECORD_BYTES).or_else(|| statistics.counter(LOG_BYTES));
    let sessions = settings.number(Setting::Sessions);
    let bound = settings.is_durable().then(|| commits_per_s_bound(sessions, sync.p50_us));
    let commits_per_s = commits / elapsed_s;
    Repeat {
        number: 0,
        started_unix_s: 0,
        rows: figures.rows,
        commits: figures.commits,
        elapsed_s,
        rows_per_s: rows / elapsed_s,
        gb_per_s: None,
        commits_per_s,
        cpu_percent: 100.0 * figures.cpu.as_secs_f64() / (elapsed_s * cpus() as f64),
        cpu_s: figures.cpu.as_secs_f64(),
        commits_per_sync: syncs.map(|syncs| commits / syncs),
        log_bytes_per_row: log_bytes.filter(|_| rows > 0.0).map(|bytes| bytes / rows),
        bound_commits_per_s: bound,
        share_of_bound: bound.map(|bound| commits_per_s / bound),
        commit_latency_us: figures.commit_latency_us,
        device,
        waits: Vec::new(),
        phases: Vec::new(),
        counters: Vec::new(),
        series: Vec::new(),
        marks: Vec::new(),
        sync_time_us: *sync,
        verification: None,
        warnings: Vec::new(),
        stacks: None,
    }
}

/// Reasons not to believe the figures.
fn doubts(
    settings: &Settings,
    repeat: &Repeat,
    folder: &Path,
    (before, after): (&SyncTime, &SyncTime),
) -> Vec<String> {
    let mut doubts = Vec::new();
    if FileSystem::under(folder).is_ok_and(|file_system| file_system.is_memory()) {
        doubts.push("on a file system in memory: syncs cost nothing here".to_owned());
    }
    if !settings.is_durable() {
        return doubts;
    }
    doubts.extend(doubt::of_durable(&doubt::Durable {
        sessions: settings.number(Setting::Sessions),
        commits_per_sync: repeat.commits_per_sync,
        share_of_bound: repeat.share_of_bound,
        sync_us: (before.p50_us, after.p50_us),
    }));
    doubts
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
